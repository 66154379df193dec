package remote_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
)

var errDown = errors.New("the store is down")

// watched counts the calls by which answers are recorded, and can let them fail,
// before or after they have had their effect.
type watched struct {
	settle.Store
	calls         atomic.Int64
	applied       atomic.Int64 // transitions
	before, after atomic.Pointer[func(op string) error]
	meets         func([]settle.Transition) // called before they are applied
}

func (w *watched) over(s settle.Store) settle.Store { w.Store = s; return w }

func (w *watched) fail(at *atomic.Pointer[func(string) error], ops ...string) {
	f := func(op string) error {
		for _, o := range ops {
			if o == op {
				return errDown
			}
		}
		return nil
	}
	at.Store(&f)
}

func (w *watched) ask(at *atomic.Pointer[func(string) error], op string) error {
	if f := at.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

func (w *watched) Waits(ctx context.Context, ids []settle.ID) ([]settle.Job, error) {
	w.calls.Add(1)
	if err := w.ask(&w.before, "waits"); err != nil {
		return nil, err
	}
	return w.Store.Waits(ctx, ids)
}

func (w *watched) Job(ctx context.Context, id settle.ID) (settle.Job, error) {
	w.calls.Add(1)
	if err := w.ask(&w.before, "job"); err != nil {
		return settle.Job{}, err
	}
	return w.Store.Job(ctx, id)
}

func (w *watched) Apply(ctx context.Context, ts []settle.Transition) ([]settle.Applied, error) {
	w.calls.Add(1)
	if err := w.ask(&w.before, "apply"); err != nil {
		return nil, err
	}
	if w.meets != nil {
		w.meets(ts)
	}
	said, err := w.Store.Apply(ctx, ts)
	w.applied.Add(int64(len(ts)))
	if err == nil {
		err = w.ask(&w.after, "apply")
	}
	return said, err
}

// A store that fails records nothing, or nobody knows: the node says it again, and
// it counts once.
func TestP9AnAnswerThatIsNotRecordedIsSentAgain(t *testing.T) {
	for _, one := range []struct {
		name string
		cut  func(w *watched)
		says string
		fate remote.Fate // of the repeat
		end  settle.EndReason
	}{
		{"it cannot be read", func(w *watched) { w.fail(&w.before, "waits") }, done, remote.Applied, settle.EndOK},
		{"it cannot be written", func(w *watched) { w.fail(&w.before, "apply") }, done, remote.Applied, settle.EndOK},
		{"its reply is lost", func(w *watched) { w.fail(&w.after, "apply") }, done, remote.Duplicate, settle.EndOK},
		{"its reply to an error is lost", func(w *watched) { w.fail(&w.after, "apply") }, useless, remote.Duplicate, settle.EndTerminal},
	} {
		t.Run(one.name, func(t *testing.T) {
			watch := &watched{}
			bubble(t, setup{store: watch.over}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				one.cut(watch)
				said := r.post(s, s.doc(one.says))
				is(r, "HTTP status", said.Code, 503)
				is(r, "Retry-After", said.Header().Get("Retry-After"), "2")
				watch.before.Store(nil)
				watch.after.Store(nil)
				is(r, "HTTP status of the repeat", r.answer(s, one.says), 200)
				is(r, "fate of the repeat", r.fates(one.fate), 1)
				j := r.job(id)
				is(r, "how it ended", j.Reason, one.end)
				is(r, "P3 it counts once", len(j.Steps)+len(j.Attempts), 1)
			})
		})
	}
	t.Run("what became of it before cannot be read", func(t *testing.T) {
		watch := &watched{}
		bubble(t, setup{store: watch.over}, func(r *rig) {
			s := r.parked(r.enqueue())
			r.answer(s, failed)
			watch.fail(&watch.before, "job")
			is(r, "HTTP status", r.answer(s, failed), 503)
			watch.before.Store(nil)
			is(r, "HTTP status of the repeat", r.answer(s, failed), 200)
		})
	})
}

// Between the look at a job and the note of its answer the job moves: it is looked
// at again, and the answer counts, or not, as things stand then.
func TestP3TheJobMovesWhileItsAnswerIsJudged(t *testing.T) {
	t.Run("it parks", func(t *testing.T) {
		watch := &watched{}
		bubble(t, setup{store: watch.over}, func(r *rig) {
			parked := make(chan struct{})
			watch.meets = func(ts []settle.Transition) {
				if ts[0].Keep != nil {
					<-parked
				}
			}
			r.every(func(_ context.Context, s sub) reply { go r.answer(s, done); return reply{} })
			id := r.enqueue()
			is(r, "state", r.job(id).State, settle.Awaiting)
			close(parked)
			r.ended("P9 the answer counts", r.job(id), settle.Succeeded, settle.EndOK)
			is(r, "fates", r.fates(remote.Applied), 1)
		})
	})
	for name, move := range map[string]func(r *rig, s sub){
		"it is cancelled":             func(r *rig, s sub) { r.cancel(s.Job) },
		"another answer comes":        func(r *rig, s sub) { r.answer(s, failed) },
		"another answer ends it":      func(r *rig, s sub) { r.answer(s, useless) },
		"it is cancelled and removed": func(r *rig, s sub) { r.cancel(s.Job); r.remove(s.Job) },
	} {
		t.Run(name, func(t *testing.T) {
			watch := &watched{}
			bubble(t, setup{store: watch.over}, func(r *rig) {
				s := r.parked(r.enqueue())
				var before string
				watch.meets = func([]settle.Transition) {
					watch.meets = nil
					move(r, s)
					before = r.shown(s.Job)
				}
				status := r.answer(s, done)
				holds(r, "a HTTP status that ends it", status == 200 || status == 410)
				is(r, "P3 the job", r.shown(s.Job), before)
				is(r, "failures at breakers", r.breaker(s.Node).Failures, 0)
			})
		})
	}
}
