package redistest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Error is an error reply of a server, such as "LOADING Redis is loading …".
type Error string

func (e Error) Error() string { return string(e) }

// writeCommand writes a command as an array of texts.
func writeCommand(w *bufio.Writer, words []string) {
	fmt.Fprintf(w, "*%d\r\n", len(words))
	for _, s := range words {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(s), s)
	}
}

// readReply reads one reply: string, int64, nil, []any or Error. An error of its
// own says that the connection is broken. Source: Redis serialization protocol, 2.
func readReply(r *bufio.Reader) (any, error) {
	kind, rest, err := readLine(r)
	if err != nil {
		return nil, err
	}
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return Error(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$', '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		if kind == '$' {
			return readText(r, n)
		}
		return readList(r, n)
	}
	return nil, fmt.Errorf("redis answers %q", string(kind)+rest)
}

func readLine(r *bufio.Reader) (kind byte, rest string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return 0, "", fmt.Errorf("redis answers an empty line")
	}
	return line[0], line[1:], nil
}

func readText(r *bufio.Reader, n int) (string, error) {
	b := make([]byte, n+2)
	_, err := io.ReadFull(r, b)
	return string(b[:n]), err
}

func readList(r *bufio.Reader, n int) (list []any, err error) {
	list = make([]any, n)
	for i := range list {
		if list[i], err = readReply(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readCommand reads what writeCommand wrote.
func readCommand(r *bufio.Reader) (words []string, err error) {
	got, err := readReply(r)
	if err != nil {
		return nil, err
	}
	list, _ := got.([]any)
	for _, w := range list {
		s, ok := w.(string)
		if !ok {
			return nil, fmt.Errorf("no command: %v", got)
		}
		words = append(words, s)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("no command: %v", got)
	}
	return words, nil
}
