package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/settle-go/settle"
)

// checkJSON says where b is not one JSON document in valid UTF-8.
func checkJSON(b []byte) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return errors.New("is empty: want a JSON document")
	}
	if i := invalidAt(b); i >= 0 {
		return fmt.Errorf("is not valid UTF-8 at %s", place(b, i))
	}
	var doc json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&doc); errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("is not JSON: it ends in the middle, after byte %d", len(b))
	}
	err := json.Unmarshal(b, &doc)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("is not JSON at %s: %s", place(b, int(syntax.Offset)-1), safeLine(syntax.Error()))
	}
	return err
}

// invalidAt returns the place of the first byte that is not UTF-8, or -1.
func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// place names the byte at offset i for people: line and column in bytes from 1.
func place(b []byte, i int) string {
	i = max(min(i, len(b)), 0)
	line := bytes.Count(b[:i], []byte("\n")) + 1
	column := i - bytes.LastIndexByte(b[:i], '\n')
	return fmt.Sprintf("byte %d (line %d, column %d)", i+1, line, column)
}

// readPayload reads r up to the limit of a payload.
func readPayload(r io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, settle.MaxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(b) > settle.MaxPayload {
		return nil, usagef("%s: is larger than %d bytes, the limit of an input; store large data elsewhere and enqueue a reference to it", name, settle.MaxPayload)
	}
	return b, nil
}

// source opens what --file names; "" and "-" are standard input.
func (a *app) source(file string) (r io.Reader, name string, shut func() error, err error) {
	if file == "" || file == "-" {
		return a.in, "standard input", func() error { return nil }, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, "", nil, &exitError{exitUsage, fmt.Errorf("--file: %w", err)}
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, "", nil, errors.Join(usagef("--file: %s is a folder", file), f.Close())
	}
	return f, file, f.Close, nil
}

// eachLine calls f for each line that is not blank, with its number. A line may
// be as long as a payload.
func eachLine(r io.Reader, name string, f func(n int, line []byte) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), settle.MaxPayload+2)
	n := 0
	for in.Scan() {
		n++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		if err := f(n, bytes.Clone(in.Bytes())); err != nil {
			return err
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return usagef("%s: line %d is larger than %d bytes, the limit of an input", name, n+1, settle.MaxPayload)
	}
	if in.Err() != nil {
		return fmt.Errorf("read %s: %w", name, in.Err())
	}
	return nil
}
