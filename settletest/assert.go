package settletest

import (
	"context"
	"database/sql"
	"encoding/json"
	"testing"

	"github.com/settle-go/settle"
)

// Enqueued fails the test unless exactly one job of the kind exists that match
// accepts (nil accepts all), and returns its input and the job. Jobs that have
// ended count too.
func Enqueued[In, Out any](t testing.TB, k *Kit, kind settle.Kind[In, Out], match func(In, settle.Job) bool) (In, settle.Job) {
	t.Helper()
	return only(t, kind, match, func(f settle.Filter) ([]settle.Job, settle.Cursor, error) { return k.Store.Jobs(t.Context(), f) })
}

// EnqueuedTx is [Enqueued] as a transaction of [sqlite.Store.InTx] sees it,
// before it commits.
func EnqueuedTx[In, Out any](t testing.TB, k *Kit, tx *sql.Tx, kind settle.Kind[In, Out], match func(In, settle.Job) bool) (In, settle.Job) {
	t.Helper()
	return only(t, kind, match, func(f settle.Filter) ([]settle.Job, settle.Cursor, error) {
		return k.Store.JobsTx(context.WithoutCancel(t.Context()), tx, f)
	})
}

// NotEnqueued fails the test if a job of the kind exists that match accepts.
func NotEnqueued[In, Out any](t testing.TB, k *Kit, kind settle.Kind[In, Out], match func(In, settle.Job) bool) {
	t.Helper()
	found := find(t, kind, match, func(f settle.Filter) ([]settle.Job, settle.Cursor, error) { return k.Store.Jobs(t.Context(), f) })
	if len(found) > 0 {
		t.Fatalf("settletest: %d jobs of kind %s exist, want none; the first is %s", len(found), kind.Name(), found[0].job.ID)
	}
}

// Output returns the output of a job that has succeeded, and fails the test
// with the job's end otherwise.
func Output[In, Out any](t testing.TB, k *Kit, kind settle.Kind[In, Out], id settle.ID) Out {
	t.Helper()
	j := Job(t, k, id)
	var out Out
	if j.State != settle.Succeeded {
		t.Fatalf("settletest: job %s is %s (%v), want succeeded", id, j.State, j.EndError())
	}
	if len(j.Output) > 0 {
		if err := json.Unmarshal(j.Output, &out); err != nil {
			t.Fatalf("settletest: output of job %s of kind %s: %v", id, kind.Name(), err)
		}
	}
	return out
}

// Job reads a job with its attempts.
func Job(t testing.TB, k *Kit, id settle.ID) settle.Job {
	t.Helper()
	j, err := k.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

type found[In any] struct {
	in  In
	job settle.Job
}

type lister func(settle.Filter) ([]settle.Job, settle.Cursor, error)

func only[In, Out any](t testing.TB, kind settle.Kind[In, Out], match func(In, settle.Job) bool, list lister) (In, settle.Job) {
	t.Helper()
	all := find(t, kind, match, list)
	if len(all) != 1 {
		t.Fatalf("settletest: %d jobs of kind %s match, want exactly one", len(all), kind.Name())
	}
	return all[0].in, all[0].job
}

func find[In, Out any](t testing.TB, kind settle.Kind[In, Out], match func(In, settle.Job) bool, list lister) (out []found[In]) {
	t.Helper()
	for f := (settle.Filter{Kind: kind.Name()}); ; {
		page, next, err := list(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page {
			var in In
			if err := json.Unmarshal(j.Input, &in); err != nil {
				t.Fatalf("settletest: input of job %s of kind %s: %v", j.ID, kind.Name(), err)
			}
			if match == nil || match(in, j) {
				out = append(out, found[In]{in, j})
			}
		}
		if next == (settle.Cursor{}) {
			return out
		}
		f.After = next
	}
}
