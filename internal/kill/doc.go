// Package kill is the proof by real processes: a child works on a real file and
// is killed, and what it leaves is judged. It consists of tests, for Linux.
//
//	go test ./internal/kill                       some sixty kills
//	SETTLE_LONG=1 go test -v ./internal/kill      more than five hundred, counted
//	go test ./internal/kill -kill.seed 7          other moments
//
// A child is the test program started anew (child_test.go). It dies at a named
// point of its own accord: its store is wrapped (mortal_test.go), so the product
// has no hook for it. "Before" and "after" a call are exact. "During" is a
// moment drawn from the time that such calls take, and the count says how many
// calls had been done by then: of both kinds there must be some.
//
// A child tells in a diary what it is about to do and what it was told is done,
// line by line, appended to a file (diary_test.go): a killed process has written
// what it has written. The parent opens the store anew and compares the two
// (judge_test.go).
package kill
