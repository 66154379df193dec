package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/settle-go/settle"
)

// Job is one job in the hands of a handler: the claimed row and its decoded
// input. It must not be changed.
type Job[In any] struct {
	settle.ClaimedJob
	In In

	held *attempt // nil in a job that a test made up, and in batches
}

// Handle registers the handler of a kind. It must be called before Run; a
// second handler for a kind is a fault that Run reports.
//
// A nil error means done, and the output is stored. [settle.Terminal] ends the
// job, [settle.RetryAfter] and [settle.Snooze] say when to try again, and any
// other error is tried again with backoff until the policy's budget ends it.
// The handler may run again after a crash, so its effects must be idempotent.
// Its context ends at the policy's Timeout and when the worker no longer holds
// the job; context.Cause tells why: [ErrTimedOut], [ErrLeaseLost],
// [ErrShutdown].
//
// An input that is not an In is terminal ("undecodable"), an output that is not
// JSON or too large is terminal ("output").
func Handle[In, Out any](w *Worker, k settle.Kind[In, Out], f func(context.Context, *Job[In]) (Out, error)) {
	HandleRaw(w, k.Name(), func(ctx context.Context, raw *Job[[]byte]) ([]byte, error) {
		j := Job[In]{ClaimedJob: raw.ClaimedJob, held: raw.held}
		if err := decode(raw.Input, &j.In); err != nil {
			return nil, err
		}
		out, err := f(ctx, &j)
		if err != nil {
			return nil, err
		}
		return encode(out)
	})
}

// HandleRaw registers a handler that takes the input and gives the output as
// bytes: for commands and HTTP targets. All else is as with [Handle].
func HandleRaw(w *Worker, kind string, f func(context.Context, *Job[[]byte]) ([]byte, error)) {
	w.register(kind)
	w.singles[kind] = func(ctx context.Context, a *attempt) {
		j := Job[[]byte]{ClaimedJob: a.jobs[0], In: a.jobs[0].Input, held: a}
		a.answers[0].out, a.answers[0].err = f(ctx, &j)
	}
}

// handler runs one attempt: one answer per job, in order. It may panic.
type handler func(ctx context.Context, a *attempt)

// answer is what a handler said of one job.
type answer struct {
	out  []byte
	err  error
	seal seal
}

// seal is the batch that a job belongs to from now on, if set.
type seal struct {
	batch settle.ID
	set   bool
}

// faultError is a fault of the payload, not of the work: it has a reason of
// its own and is terminal.
type faultError struct {
	reason settle.AttemptReason
	err    error
}

func (e *faultError) Error() string { return e.err.Error() }
func (e *faultError) Unwrap() error { return e.err }

// decode reads an input. Kinds without input (settle.None) take an empty one.
func decode[In any](b []byte, in *In) error {
	if _, none := any(in).(*settle.None); none && len(b) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, in); err != nil {
		return &faultError{settle.AttemptUndecodable, fmt.Errorf("input is not a %T: %w", *in, err)}
	}
	return nil
}

func encode[Out any](out Out) ([]byte, error) {
	b, err := json.Marshal(out)
	if err != nil {
		return nil, &faultError{settle.AttemptOutput, fmt.Errorf("output cannot be encoded: %w", err)}
	}
	return b, nil
}

// reported carries the exact event that an attempt came to.
type reported struct{ ev settle.Event }

func (e *reported) Error() string { return fmt.Sprintf("reported: %T", e.ev) }

// Report returns an error by which a handler says exactly what its attempt came
// to, where an error value is not enough: a [settle.Settled] with its own
// reason and node, a [settle.Deferred], or a [settle.Parked]. Other events are
// not a handler's to give and count as an error. Texts are made safe here.
func Report(ev settle.Event) error { return &reported{ev} }
