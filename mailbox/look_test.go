package mailbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var errOfJudge = errors.New("unexpected end of input near canary")

// says is a judge that always returns the same.
func says(err error) Judge { return func(Ticket, []byte) (Answer, error) { return Answer{}, err } }

// faulty is an error whose methods panic.
type faulty struct{}

func (faulty) Error() string { panic("canary") }
func (faulty) As(any) bool   { panic("canary") }

func TestP5AJudgeThatDoesNotKnowEndsTheWait(t *testing.T) {
	for name, j := range map[string]Judge{
		"an error of its own":           says(errOfJudge),
		"a wrapped error":               says(fmt.Errorf("canary: %w", errOfJudge)),
		"a panic":                       func(Ticket, []byte) (Answer, error) { panic("canary") },
		"an index out of range":         func(_ Ticket, doc []byte) (Answer, error) { return Answer{Output: doc[len(doc)+1:]}, nil },
		"a nil step error":              says((*StepError)(nil)),
		"a nil protocol error":          says((*ProtocolError)(nil)),
		"an error whose methods panic":  says(faulty{}),
		"a reason that is not listed":   says(&ProtocolError{Reason: "canary"}),
		"no reason":                     says(&ProtocolError{}),
		"a wait wrapped without unwrap": says(fmt.Errorf("canary: %v", ErrNotReady)),
	} {
		t.Run(name, func(t *testing.T) {
			doc := []byte("canary")
			a, err := j.Look(ticket, doc, true)
			if got := checkLook(t, ticket, doc, a, err); got != "protocol" || err.(*ProtocolError).Reason != ReasonJudge || !IsFinal(err) {
				t.Errorf("is %s: %v", got, err)
			}
			if s := fmt.Sprint(printed(err)); strings.Contains(s, "canary") {
				t.Errorf("shows what was in the document: %s", s)
			}
		})
	}
	_, err := says(fmt.Errorf("canary: %w", errOfJudge)).Look(ticket, nil, true)
	if !errors.Is(err, errOfJudge) {
		t.Error("whoever wrote the judge cannot find its error")
	}
}

func TestP12AJudgeOfYourOwnShowsSafeText(t *testing.T) {
	own := &StepError{Step: "other", Node: "other", Reason: "\x1b[2Jno\x00", Message: "password=hunter2 \u202e", Retry: "perhaps", RetryAfter: 1 << 62}
	_, err := says(fmt.Errorf("canary: %w", own)).Look(ticket, nil, true)
	e, ok := err.(*StepError)
	if !ok || e.Message != "password=[redacted]" || e.Reason != "no" || e.Retry != RetryUnsaid || e.RetryAfter != MaxRetryAfter {
		t.Fatalf("%+v", err)
	}
	checkStepError(t, ticket, e)
	if e == own || own.Retry != "perhaps" {
		t.Error("the judge's own error was changed")
	}

	_, err = says(&ProtocolError{Step: "canary", Node: "canary", Reason: ReasonUnknown, Field: "state\x1b[2J", Size: -1, cause: errOfJudge}).Look(ticket, []byte("12"), true)
	p, ok := err.(*ProtocolError)
	if !ok || p.Reason != ReasonUnknown || p.Field != "state" || p.Step != "render" || p.Node != "gpu-3" || p.Size != 2 || string(p.Raw()) != "12" || !errors.Is(p, errOfJudge) {
		t.Errorf("%+v", err)
	}

	a, err := Judge(func(_ Ticket, doc []byte) (Answer, error) { return Answer{doc, "a\x1b[2J\u202eb"}, nil }).Look(Ticket{}, []byte("x"), true)
	if err != nil || a.Node != "ab" || string(a.Output) != "x" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAJudgeOfYourOwnMayWait(t *testing.T) {
	for _, wait := range []error{ErrNotReady, ErrProgress, ErrStale} {
		for name, err := range map[string]error{"bare": wait, "wrapped": fmt.Errorf("canary: %w", wait), "joined": errors.Join(errOfJudge, wait)} {
			if _, got := says(err).Look(ticket, []byte("canary"), true); got != wait || IsFinal(got) {
				t.Errorf("%s: %v, want %v", name, got, wait)
			}
		}
	}
	for _, err := range []error{errors.Join(ErrNotReady, &StepError{}), fmt.Errorf("%w: %w", ErrStale, &ProtocolError{Reason: ReasonNotJSON})} {
		if _, got := says(err).Look(ticket, nil, true); !IsFinal(got) {
			t.Errorf("%v is both, and waits", err)
		}
	}
}

// TestLookAddsNothingToAJudgeOfThisPackage.
func TestLookAddsNothingToAJudgeOfThisPackage(t *testing.T) {
	for _, set := range []string{"contract", "status"} {
		for _, d := range documents(t, set) {
			want, werr := judges[set](ticket, d.bytes)
			got, gerr := judges[set].Look(ticket, d.bytes, true)
			if string(want.Output) != string(got.Output) || want.Node != got.Node || kind(werr) != kind(gerr) || fmt.Sprint(werr) != fmt.Sprint(gerr) {
				t.Errorf("%s %s: %v, and looked at %v", d.verdict, d.name, werr, gerr)
			}
		}
	}
}
