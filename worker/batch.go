package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// BatchOpts bounds the batches of one kind.
type BatchOpts struct {
	// Max is the largest number of jobs in a batch. 0 = 100.
	Max int
	// Bytes bounds the sum of their inputs; one job always fits. 0 = no bound.
	Bytes int
	// Linger lets a due job take jobs of its lane along that are due within
	// this time. 0 = due jobs only.
	Linger time.Duration
	// Slots is how many batches run at once, each of another lane. They do not
	// use the slots of the worker's other kinds. 0 = Config.Slots.
	Slots int
}

// Result is what a batch handler says of one job.
type Result[Out any] struct {
	Out Out
	Err error // as the error of a single handler
	// Batch, if SetBatch, replaces the seal of a job that will be tried again;
	// zero clears it. Else the job stays in the batch it was sealed in.
	Batch    settle.ID
	SetBatch bool
}

var errNoResult = errors.New("the batch handler gave no result for this job")

// HandleBatch registers a handler that takes several jobs of one kind and one
// lane (tenant) at once. The jobs of a call are sealed: ClaimedJob.Batch names
// the batch, and those that are tried again come back as the same batch, unless
// their Result says otherwise. It answers one Result per job, in order; a
// missing one is an error of that job, surplus ones are ignored. At most one
// batch of a lane runs at once in this process. All else is as with [Handle].
func HandleBatch[In, Out any](w *Worker, k settle.Kind[In, Out], o BatchOpts, f func(context.Context, []*Job[In]) []Result[Out]) {
	w.register(k.Name())
	w.fault(o.validate(k.Name()))
	w.batches[k.Name()] = batchKind{o, func(ctx context.Context, a *attempt) {
		claimed, answers := a.jobs, a.answers
		jobs := make([]*Job[In], 0, len(claimed))
		place := make([]int, 0, len(claimed)) // of jobs in claimed
		for i := range claimed {
			j := &Job[In]{ClaimedJob: claimed[i]}
			if answers[i].err = decode(claimed[i].Input, &j.In); answers[i].err == nil {
				answers[i].err = errNoResult
				jobs, place = append(jobs, j), append(place, i)
			}
		}
		if len(jobs) == 0 {
			return
		}
		for n, r := range f(ctx, jobs) {
			if n == len(place) {
				break
			}
			a := &answers[place[n]]
			a.seal = seal{r.Batch, r.SetBatch}
			if a.err = r.Err; a.err == nil {
				a.out, a.err = encode(r.Out)
			}
		}
	}}
}

// batchKind is a kind with a batch handler.
type batchKind struct {
	opts BatchOpts
	run  handler
}

func (o BatchOpts) withDefaults(slots int) BatchOpts {
	if o.Max == 0 {
		o.Max = 100
	}
	if o.Slots == 0 {
		o.Slots = slots
	}
	return o
}

func (o BatchOpts) validate(kind string) error {
	if o.Max < 0 || o.Max > maxClaim || o.Bytes < 0 || o.Linger < 0 || o.Slots < 0 || o.Slots > maxSlots {
		return fmt.Errorf("worker: batches of kind %q: %+v: want Max up to %d, Slots up to %d and nothing negative", kind, o, maxClaim, maxSlots)
	}
	return nil
}
