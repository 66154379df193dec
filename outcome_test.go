package settle

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestP5HandlersSayWhatFollows(t *testing.T) {
	wrapped := fmt.Errorf("read mail: %w", Terminal(io.ErrUnexpectedEOF))
	if !IsTerminal(wrapped) || !errors.Is(wrapped, io.ErrUnexpectedEOF) || wrapped.Error() != "read mail: unexpected EOF" {
		t.Errorf("%v", wrapped)
	}
	if !IsTerminal(Terminal(nil)) || Terminal(nil).Error() == "" {
		t.Error("Terminal(nil) is not terminal, or says nothing")
	}
	if IsTerminal(io.EOF) || IsTerminal(nil) {
		t.Error("any error is terminal")
	}
	if d, ok := RetryDelay(fmt.Errorf("later: %w", RetryAfter(time.Minute, io.EOF))); !ok || d != time.Minute {
		t.Errorf("%s, %v", d, ok)
	}
	if d, ok := SnoozeDelay(errors.Join(io.EOF, Snooze(time.Hour))); !ok || d != time.Hour {
		t.Errorf("%s, %v", d, ok)
	}
	if _, ok := RetryDelay(io.EOF); ok || RetryAfter(time.Second, nil).Error() == "" {
		t.Error("RetryAfter")
	}
	if _, ok := SnoozeDelay(Terminal(io.EOF)); ok {
		t.Error("SnoozeDelay")
	}
}

func TestErrorsAreAskedByPredicate(t *testing.T) {
	stale := fmt.Errorf("settle: %w", &StaleError{Job: ID{1}, Attempt: 2, State: Dead, Detail: "too late"})
	if !IsStale(stale) || IsStale(io.EOF) {
		t.Error("IsStale")
	}
	refused := &RefusedError{What: "settle.db", Why: "is damaged", Recover: "settle repair --db settle.db", Err: io.EOF}
	if !errors.Is(refused, io.EOF) {
		t.Error("the cause is lost")
	}
	if want := "settle.db: is damaged: EOF; to recover: settle repair --db settle.db"; refused.Error() != want { // P15
		t.Errorf("%s", refused)
	}
}

func TestEndTextSaysReasonAndLastErrorTogether(t *testing.T) {
	for want, got := range map[string]string{
		"exhausted: step_error on node b: out of memory": EndText(EndExhausted, AttemptStepError, "b", "out of memory"),
		"cancelled: a duplicate":                         EndText(EndCancelled, AttemptCancelled, "", "a duplicate"),
		"ok":                                             EndText(EndOK, AttemptOK, "", ""),
		"expired":                                        EndText(EndExpired, "", "", ""),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
