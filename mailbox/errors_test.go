package mailbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/mailbox"
)

type single struct{ err error }

func (s single) Error() string { return "single" }
func (s single) Unwrap() error { return s.err }

type several struct{ errs []error }

func (s several) Error() string   { return "several" }
func (s several) Unwrap() []error { return s.errs }

// wrappers are the ways in which an error travels on.
var wrappers = map[string]func(error) error{
	"bare":              func(err error) error { return err },
	"%w":                func(err error) error { return fmt.Errorf("step render: %w", err) },
	"%w twice":          func(err error) error { return fmt.Errorf("%w: %w", errors.New("await"), err) },
	"joined first":      func(err error) error { return errors.Join(err, errors.New("close")) },
	"joined last":       func(err error) error { return errors.Join(errors.New("close"), err) },
	"Unwrap":            func(err error) error { return single{err} },
	"Unwrap of several": func(err error) error { return several{[]error{errors.New("other"), err}} },
	"url.Error":         func(err error) error { return &url.Error{Op: "Get", URL: "redis://h", Err: err} },
	"fs.PathError":      func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} },
	"settle.Terminal":   settle.Terminal,
	"settle.RetryAfter": func(err error) error { return settle.RetryAfter(time.Second, err) },
}

func TestTheVerdictIsFoundThroughEveryWrapper(t *testing.T) {
	step, protocol := &mailbox.StepError{Reason: "gpu_oom"}, &mailbox.ProtocolError{Reason: mailbox.ReasonEmpty}
	for outer, out := range wrappers {
		for inner, in := range wrappers {
			t.Run(outer+" around "+inner, func(t *testing.T) {
				wrap := func(err error) error { return out(fmt.Errorf("job: %w", in(err))) }
				var s *mailbox.StepError
				if err := wrap(step); !errors.As(err, &s) || s != step || !mailbox.IsFinal(err) {
					t.Errorf("a step error is lost in %#v", err)
				}
				var p *mailbox.ProtocolError
				if err := wrap(protocol); !errors.As(err, &p) || p != protocol || !mailbox.IsFinal(err) {
					t.Errorf("a protocol error is lost in %#v", err)
				}
				for _, wait := range []error{mailbox.ErrNotReady, mailbox.ErrProgress, mailbox.ErrStale} {
					if err := wrap(wait); !errors.Is(err, wait) || mailbox.IsFinal(err) {
						t.Errorf("%v is lost in %#v", wait, err)
					}
				}
			})
		}
	}
}

func TestOnlyFinalAnswersAreFinal(t *testing.T) {
	for _, err := range []error{nil, errors.New("connection refused"), fmt.Errorf("no chain: %v", &mailbox.StepError{})} {
		if mailbox.IsFinal(err) {
			t.Errorf("%v is final", err)
		}
	}
}

// TestAVerdictByValueDoesNotCompile: errors.As would not find it.
func TestAVerdictByValueDoesNotCompile(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[mailbox.StepError](), reflect.TypeFor[mailbox.ProtocolError]()} {
		if typ.Implements(reflect.TypeFor[error]()) {
			t.Errorf("a %s is an error without its pointer", typ)
		}
	}
}
