package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// field is one field of a struct as its source documents it.
type field struct {
	name    string
	typ     string // the type's name, if it has one
	meaning string // the comment without the words about the zero value
	zero    string // what the zero value stands for, as the comment says it
}

// fieldsOf reads the fields of a struct type from the source of its package.
func fieldsOf(dir, typ string) (list []field, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	types := map[string]string{} // comments of the package's types
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.TypeSpec)
				types[spec.Name.Name] = spec.Doc.Text() + decl.Doc.Text()
				if s, ok := spec.Type.(*ast.StructType); ok && spec.Name.Name == typ {
					list = fieldsOfStruct(s)
				}
			}
		}
	}
	for i, f := range list { // a field without words has those of its type
		if f.meaning == "" {
			list[i].meaning = plain(types[f.typ], f.typ)
		}
	}
	if len(list) == 0 {
		err = fmt.Errorf("%s: no struct %s with fields", dir, typ)
	}
	return list, err
}

func fieldsOfStruct(s *ast.StructType) (list []field) {
	for _, f := range s.Fields.List {
		text := f.Doc.Text()
		if text == "" {
			text = f.Comment.Text()
		}
		meaning, zero := splitZero(strings.Join(strings.Fields(text), " "))
		var typ string
		if id, ok := f.Type.(*ast.Ident); ok {
			typ = id.Name
		}
		zeros := strings.Split(zero, ", ")
		for i, name := range f.Names {
			if len(f.Names) > 1 && len(zeros) == len(f.Names) { // one comment for several fields
				zero = zeros[i]
			}
			if name.IsExported() {
				list = append(list, field{name.Name, typ, plain(meaning, name.Name), zero})
			}
		}
	}
	return list
}

var links = regexp.MustCompile(`\[((?:[a-z]\w*\.)?[A-Z]\w*)\]`)

// plain turns a comment into a cell of a table: without the name in front that
// the row shows already, without links.
func plain(text, name string) string {
	text = strings.Join(strings.Fields(links.ReplaceAllString(text, "`$1`")), " ")
	for _, front := range []string{name + " is ", name + " are ", name + " "} {
		if rest, ok := strings.CutPrefix(text, front); ok && !strings.HasPrefix(rest, "and ") {
			return capital(rest)
		}
	}
	return capital(text)
}

// capital begins a sentence, unless with a name of code.
func capital(s string) string {
	if word, _, _ := strings.Cut(s, " "); s == "" || strings.Contains(word, ".") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// zeroWords are how comments say what the zero value stands for: "0 = 64.",
// `"" = none.`, "nil = slog.Default(); … = none."
var zeroWords = regexp.MustCompile(`(?:^|[ ;])(0|""|nil) = ([^.;]+(?:\.[^ .;]+)*)[.;]?`)

func splitZero(text string) (meaning, zero string) {
	m := zeroWords.FindStringSubmatchIndex(text)
	if m == nil {
		return text, ""
	}
	before, after := text[:m[0]], text[m[1]:]
	if rest := strings.TrimLeft(after, " "); strings.HasSuffix(text[:m[1]], ";") {
		after = " " + capital(rest) // what followed a semicolon stands alone now
	}
	return strings.TrimSpace(before + after), strings.TrimSpace(text[m[4]:m[5]])
}

// human writes a duration as the comments do.
func human(d time.Duration) string {
	for _, u := range []struct {
		one, many string
		d         time.Duration
	}{
		{"year", "years", 365 * 24 * time.Hour}, {"day", "days", 24 * time.Hour},
		{"h", "h", time.Hour}, {"min", "min", time.Minute}, {"s", "s", time.Second}, {"ms", "ms", time.Millisecond},
	} {
		switch n := d / u.d; {
		case n == 0 || d%u.d != 0:
		case n == 1 && u.d == 24*time.Hour:
			return "24 h"
		case n == 1:
			return "1 " + u.one
		default:
			return fmt.Sprintf("%d %s", n, u.many)
		}
	}
	return d.String()
}

// size writes a number of bytes or things with its thousands apart.
func size(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
