package remote_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
)

// box is an inbox in memory. What lies in it is read when the test says so, or by
// a last look.
type box struct {
	mu       sync.Mutex
	lies     []remote.Incoming
	deliver  remote.Deliver // of the process that reads; nil = nobody does
	deaf     bool           // it could not be read of late
	broken   error          // what a last look comes to
	fails    error          // what Run comes to at once
	looks    int
	readers  int
	runs     int
	describe string
}

func (b *box) Address(job, attempt settle.ID) any { return job.String() + "." + attempt.String() }
func (b *box) Name() string                       { return "box" }
func (b *box) Describe() string                   { return b.describe }

func (b *box) Readable(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.deaf && d >= time.Minute
}

func (b *box) Run(ctx context.Context, deliver remote.Deliver) error {
	if b.fails != nil {
		return b.fails
	}
	b.mu.Lock()
	b.deliver = deliver
	b.readers++
	b.runs++
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deliver = nil
	b.readers--
	return nil
}

func (b *box) LastLook(ctx context.Context) error {
	b.mu.Lock()
	b.looks++
	err := b.broken
	b.mu.Unlock()
	if err == nil {
		err = b.read(ctx)
	}
	return err
}

// read delivers what lies there, and removes what is done.
func (b *box) read(ctx context.Context) error {
	b.mu.Lock()
	list, deliver := b.lies, b.deliver
	b.mu.Unlock()
	if deliver == nil {
		return errors.New("nobody reads")
	}
	if len(list) == 0 {
		return nil
	}
	done, err := deliver(ctx, list)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest []remote.Incoming
	for i, ok := range done {
		if !ok {
			rest = append(rest, list[i])
		}
	}
	b.lies = append(rest, b.lies[len(list):]...)
	return nil
}

// put lays a document into the box, in answer to a submission.
func (b *box) put(s sub, doc string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lies = append(b.lies, remote.Incoming{Job: s.Job, Attempt: s.Attempt, Doc: []byte(doc)})
}

func (b *box) left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lies)
}

func (b *box) looked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.looks
}

// boxed is a setup whose answers come by an inbox, and by callbacks too.
func boxed(b *box, s setup) setup {
	s.hub.Inbox = b
	s.hub.Callback = "https://jobs.example/answers"
	return s
}

func (r *rig) read(b *box) {
	r.Helper()
	if err := b.read(r.Context()); err != nil {
		r.Fatal(err)
	}
}

func TestAnswersByAnInbox(t *testing.T) {
	b := &box{describe: "read 0 s ago"}
	bubble(t, boxed(b, setup{pool: never}), func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		is(r, "the way stands in the submission", s.Answer["box"].(string), s.Job.String()+"."+s.Attempt.String())
		b.put(s, s.doc(progress))
		b.put(s, s.doc(done))
		b.put(s, s.doc(done))
		r.read(b)
		r.ended("after the answer", r.job(id), settle.Succeeded, settle.EndOK)
		is(r, "left in the inbox", b.left(), 0)
		is(r, "fates: applied", r.fates(remote.Applied), 1)
		is(r, "fates: duplicate", r.fates(remote.Duplicate), 1)
		is(r, "HTTP status by the other way", r.answer(s, done), 200)

		id = r.enqueue()
		s = r.parked(id)
		b.put(s, s.doc(failed))
		b.put(s, s.doc(done)) // in one batch
		b.put(s, "nonsense")
		b.put(sub{Submission: remote.Submission{Job: settle.NewID(), Attempt: s.Attempt}}, s.doc(done))
		r.read(b)
		is(r, "P3 the first of a batch counts", attempt(r, r.job(id), 0).Reason, settle.AttemptStepError)
		is(r, "left in the inbox", b.left(), 0)
		is(r, "fates: unknown", r.fates(remote.Unknown), 1)

		nodes := r.hub.Nodes()
		last := nodes[len(nodes)-1]
		is(r, "the inbox is shown", last.Pool+last.State+": "+last.Text, "box: read 0 s ago")
	})
}

// What is not recorded stays in the inbox.
func TestP9TheInboxKeepsWhatIsNotRecorded(t *testing.T) {
	t.Run("the store fails", func(t *testing.T) {
		b, watch := &box{}, &watched{}
		bubble(t, boxed(b, setup{store: watch.over}), func(r *rig) {
			s := r.parked(r.enqueue())
			b.put(s, s.doc(done))
			watch.fail(&watch.before, "apply")
			is(r, "error", errors.Is(b.read(r.Context()), errDown), true)
			is(r, "left in the inbox", b.left(), 1)
			watch.before.Store(nil)
			r.read(b)
			is(r, "left in the inbox", b.left(), 0)
			is(r, "state", r.job(s.Job).State, settle.Succeeded)
		})
	})
	t.Run("the pool is another process's", func(t *testing.T) {
		b := &box{}
		bubble(t, boxed(b, setup{}), func(r *rig) {
			s := r.parked(r.enqueue())
			other, err := remote.New(r.st, remote.Config{Inbox: &box{}})
			is(r, "error", err, nil)
			removed, err := other.Deliver(r.Context(), []remote.Incoming{{Job: s.Job, Attempt: s.Attempt, Doc: []byte(s.doc(done))}})
			is(r, "error", err, nil)
			is(r, "it may be removed", removed[0], false)
			is(r, "state", r.job(s.Job).State, settle.Awaiting)
		})
	})
}

// An answer of which whoever looked at it died is booked, not looked at.
func TestAPoisonedAnswerIsBooked(t *testing.T) {
	b := &box{}
	bubble(t, boxed(b, setup{}), func(r *rig) {
		s := r.parked(r.enqueue())
		b.put(s, s.doc(done))
		b.lies[0].Poisoned = true
		r.read(b)
		is(r, "reason", attempt(r, r.job(s.Job), 0).Reason, settle.AttemptProtocol)
		is(r, "P11 failures at the breaker", r.breaker(s.Node).Failures, 0)
		is(r, "left in the inbox", b.left(), 0)
	})
}

// An inbox that cannot be read is tried again, and told of.
func TestAnInboxThatCannotBeRead(t *testing.T) {
	b := &box{fails: errors.New("dial redis://user:hunter2@r.example: refused")}
	bubble(t, boxed(b, setup{}), func(r *rig) {
		r.nap(3500 * time.Millisecond)
		log := r.logs.text()
		is(r, "tries", strings.Count(log, "the inbox cannot be read"), 4)
		is(r, "P12 secrets in the log", contains(log, "hunter2"), false)
		s := r.parked(r.enqueue())
		is(r, "HTTP status by the other way", r.answer(s, done), 200)
	})
}

// Of the workers of a process one reads; when it stops, another does.
func TestOneOfSeveralWorkersReads(t *testing.T) {
	b := &box{}
	bubble(t, boxed(b, setup{}), func(r *rig) {
		first := r.stop
		second := r.another()
		r.nap(5 * time.Second)
		is(r, "readers", b.readers, 1)
		is(r, "error of Run", first(), nil)
		r.nap(2 * time.Second)
		is(r, "readers after the first has stopped", b.readers, 1)
		is(r, "error of Run", second(), nil)
		is(r, "readers after both have stopped", b.readers, 0)
	})
}
