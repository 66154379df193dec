package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/worker"
)

// film is a job of two steps on two pools, with work of its own between them.
type film struct {
	began  atomic.Int64 // calls of its handler
	after  func() error // what it does when both steps are done
	errors []error      // what Call said
}

func (f *film) serve(r *rig, w *worker.Worker) {
	cpu := r.newPool("cpu", r.set.pool, "c", "d")
	r.hub.Attach(w)
	worker.Handle(w, render, func(ctx context.Context, j *worker.Job[in]) (out, error) {
		f.began.Add(1)
		probe, err := remote.Call(ctx, cpu, j, remote.Step{Name: "probe"})
		if err != nil {
			f.errors = append(f.errors, err)
			return nil, fmt.Errorf("probe of %s: %w", j.In.Text, err)
		}
		film, err := remote.Call(ctx, r.pool, j, remote.Step{Name: "render", Input: map[string]any{"probe": json.RawMessage(probe)}})
		if err != nil {
			f.errors = append(f.errors, err)
			return nil, fmt.Errorf("first wrapper: %w", fmt.Errorf("second: %w", err))
		}
		if f.after != nil {
			return film, f.after()
		}
		return film, nil
	})
}

func TestSeveralStepsInOneHandler(t *testing.T) {
	f := &film{}
	bubble(t, setup{serve: f.serve}, func(r *rig) {
		id := r.enqueue()
		probe := r.parked(id)
		is(r, "first step", probe.Step, "probe")
		is(r, "input of the first step: the job's", string(probe.Input), `{"Text":"x"}`)
		r.answer(probe, `"status":"done","output":{"fps":25}`)
		film := r.parked(id)
		is(r, "second step", film.Step, "render")
		is(r, "its input", string(film.Input), `{"probe":{"fps":25}}`)
		holds(r, "each step has nodes of its own", (probe.Node == "c" || probe.Node == "d") && (film.Node == "a" || film.Node == "b"))
		holds(r, "each submission is another attempt", probe.Attempt != film.Attempt)
		r.answer(film, done)
		j := r.job(id)
		r.ended("in the end", j, settle.Succeeded, settle.EndOK)
		is(r, "output", string(j.Output), `{"frames":240}`)
		is(r, "the handler ran from its beginning after each", f.began.Load(), 3)
		is(r, "submissions", len(r.net.all(id)), 2)
		is(r, "finished steps", len(j.Steps), 2)
		is(r, "P10 steps that succeeded cost no attempt", j.Charged(), 1)
		for _, err := range f.errors {
			holds(r, "what Call returns is no terminal error", !settle.IsTerminal(err))
		}
	})
}

// Each step has a budget of its own: two, unless a node says more.
func TestP10EachStepHasItsOwnBudget(t *testing.T) {
	bubble(t, setup{serve: (&film{}).serve}, func(r *rig) {
		id := r.enqueue()
		r.answer(r.parked(id), failed)
		r.answer(r.again(id), done)
		r.answer(r.parked(id), failed)
		is(r, "state after each step has failed once", r.job(id).State, settle.Pending)
		r.answer(r.again(id), failed)
		r.ended("after the second failure of one", r.job(id), settle.Dead, settle.EndExhausted)
		steps := ""
		for _, s := range r.net.all(id) {
			steps += s.Step + " "
		}
		is(r, "a finished step is not submitted again", steps, "probe probe render render ")
	})
}

// A person's redrive gives the failed step a new budget; what is done stays done.
func TestP10ARedriveKeepsFinishedSteps(t *testing.T) {
	bubble(t, setup{serve: (&film{}).serve}, func(r *rig) {
		id := r.enqueue()
		r.answer(r.parked(id), done)
		r.answer(r.parked(id), failed)
		r.answer(r.again(id), failed)
		r.ended("before", r.job(id), settle.Dead, settle.EndExhausted)
		if _, err := r.Redrive(r.Context(), id); err != nil {
			r.Fatal(err)
		}
		s := r.parked(id)
		is(r, "the step that is submitted after the redrive", s.Step, "render")
		r.answer(s, failed)
		is(r, "P10 the new budget is whole: state after one failure", r.job(id).State, settle.Pending)
		r.answer(r.again(id), done)
		r.ended("in the end", r.job(id), settle.Succeeded, settle.EndOK)
		is(r, "submissions", len(r.net.all(id)), 5)
	})
}

// Work of the handler itself that fails runs again, without the steps.
func TestAFinishedStepIsNotSubmittedAgain(t *testing.T) {
	var tries atomic.Int64
	f := &film{after: func() error {
		if tries.Add(1) < 3 {
			return errors.New("cannot store the film")
		}
		return nil
	}}
	bubble(t, setup{serve: f.serve}, func(r *rig) {
		id := r.enqueue()
		r.answer(r.parked(id), done)
		r.answer(r.parked(id), done)
		r.nap(3 * backoff)
		j := r.job(id)
		r.ended("in the end", j, settle.Succeeded, settle.EndOK)
		is(r, "submissions", len(r.net.all(id)), 2)
		is(r, "recorded attempts", len(j.Attempts), 2)
		is(r, "they are the handler's", attempt(r, j, 0).Reason, settle.AttemptError)
	})
}

// Errors of Call may be wrapped in any way that unwraps: they keep their meaning.
func TestWrappedErrorsOfCallKeepTheirMeaning(t *testing.T) {
	for _, one := range []struct {
		name string
		does func(r *rig)
		want func(r *rig, j settle.Job)
	}{
		{"parked", func(*rig) {}, func(r *rig, j settle.Job) { is(r, "state", j.State, settle.Awaiting) }},
		{"busy", func(r *rig) { r.every(replies(reply{status: 429})) }, func(r *rig, j settle.Job) {
			is(r, "charged", j.Charged(), 0)
			is(r, "reason", attempt(r, j, 0).Reason, settle.AttemptBusy)
		}},
		{"failed", func(r *rig) { r.every(replies(reply{status: 500})) }, func(r *rig, j settle.Job) {
			is(r, "charged", j.Charged(), 1)
			is(r, "reason", attempt(r, j, 0).Reason, settle.AttemptSubmitFailed)
			holds(r, "node", attempt(r, j, 0).Node != "")
		}},
		{"refused", func(r *rig) { r.every(replies(reply{status: 422})) }, func(r *rig, j settle.Job) {
			r.ended("by the refusal", j, settle.Dead, settle.EndRefused)
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{serve: func(r *rig, w *worker.Worker) {
				one.does(r)
				r.hub.Attach(w)
				worker.Handle(w, render, func(ctx context.Context, j *worker.Job[in]) (out, error) {
					_, err := remote.Call(ctx, r.pool, j, remote.Step{})
					if err == nil {
						r.Error("the step is not done, but Call says so")
					}
					return nil, errors.Join(errors.New("beside it"), fmt.Errorf("step of %s: %w", j.In.Text, err))
				})
			}}, func(r *rig) { one.want(r, r.job(r.enqueue())) })
		})
	}
}

// An output that is not what the job wants never becomes one by trying again.
func TestAnOutputThatIsNotWantedIsTerminal(t *testing.T) {
	count := settle.Define[in, int]("count", policy)
	for _, one := range []struct {
		name, says string
		decode     []func([]byte) (int, error)
		words      string
	}{
		{"of another type", done, nil, "the output of step count is not what count wants"},
		{"refused by the job's own decoder", done, []func([]byte) (int, error){func(b []byte) (int, error) {
			return 0, fmt.Errorf("no count in %d bytes", len(b))
		}}, "no count in 14 bytes"},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{serve: func(r *rig, w *worker.Worker) {
				remote.Handle(w, count, r.pool, remote.Step{}, one.decode...)
			}}, func(r *rig) {
				id, err := count.Enqueue(r.Context(), r.Client, in{"x"})
				is(r, "error", err, nil)
				r.answer(r.parked(id), one.says)
				j := r.job(id)
				r.ended("at once", j, settle.Dead, settle.EndTerminal)
				is(r, "submissions", len(r.net.all(id)), 1)
				holds(r, "the text says why: "+attempt(r, j, 0).Error, contains(attempt(r, j, 0).Error, one.words))
			})
		})
	}
}

// An input that cannot be sent is a fault of the program.
func TestAnInputThatCannotBeEncodedIsTerminal(t *testing.T) {
	bubble(t, setup{step: remote.Step{Input: func() {}}}, func(r *rig) {
		j := r.job(r.enqueue())
		r.ended("at once", j, settle.Dead, settle.EndTerminal)
		is(r, "submissions", len(r.net.all(j.ID)), 0)
	})
}
