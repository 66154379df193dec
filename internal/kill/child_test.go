//go:build linux

package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

const childVar = "SETTLE_KILL_CHILD"

// order is what a child is started with.
type order struct {
	Do          string
	Path, Diary string
	Ahead       time.Duration // of its store's clock: leases pass without waiting
	Normal      bool          // synchronous, else full
	Op, When    string        // where it dies; "" = it is killed from outside
	Nth         int           // in which call of the operation
	Part        float64       // during: after this part of the usual time
	Producers   int
	Shift       shift
	Hang        bool // handlers never end
}

// shift is what a child's worker is told, as in worker.Config.
type shift struct {
	Slots              int
	Lease, Sweep, Poll time.Duration
	UntilIdle          bool
}

// programs are what a child can do. None of them returns, unless there is
// nothing left to do.
var programs = map[string]func(*child) error{
	"enqueue": enqueueFlatOut, "work": work, "submit": submit, "sweep": sweepPages,
	"renew": renewOnAndOn, "prune": prunePages, "migrate": migrateFiles, "load": load,
}

// child is what a program has: the mortal store, and its diary.
type child struct {
	order
	*mortality
	diary diary
	st    mortal
}

func obey(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	d, err := openDiary(o.Diary)
	if err != nil {
		return err
	}
	c := &child{order: o, mortality: newMortality(o), diary: d}
	if o.Do != "migrate" {
		st, err := openStore(o.Path, o.Ahead, o.Normal)
		if err != nil {
			return err
		}
		c.st = mortal{st, c.mortality, d}
	}
	d.write(line{word: up})
	if err := programs[o.Do](c); err != nil {
		return err
	}
	return c.st.Store.(*sqlite.Store).Close()
}

// fullAt keeps files small, however fast the producers are.
const fullAt = 1000

func openStore(path string, ahead time.Duration, normal bool) (*sqlite.Store, error) {
	cfg := sqlite.Config{KeepFree: -1, MaxJobs: fullAt, Clock: clock.From(func() time.Time { return time.Now().Add(ahead) })}
	if normal {
		cfg.Synchronous = sqlite.Normal
	}
	return sqlite.Open(path, cfg)
}

// Three kinds: one does its work, one lets a node do it, and one kills whoever
// works on it.
var (
	distant = settle.Define[int, int]("distant", settle.Policy{Attempts: 12, Crashes: 6, StepAttempts: 12, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Deadline: 365 * 24 * time.Hour})
	plain   = settle.Define[int, int]("plain", settle.Policy{Attempts: 12, Crashes: 6, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Deadline: 365 * 24 * time.Hour})
	poison  = settle.Define[int, int]("poison", settle.Policy{Attempts: 12, Crashes: 3, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Deadline: 365 * 24 * time.Hour})
)

// fresh makes jobs of several tenants, whose ids are known before the call.
func fresh(n int) []settle.New { return freshOf(plain, n) }

func freshOf(k settle.Kind[int, int], n int) []settle.New {
	out := make([]settle.New, n)
	for i := range out {
		out[i] = k.New(i, settle.EnqueueOpts{ID: settle.NewID(), Tenant: fmt.Sprint("tenant ", i%3)})
	}
	return out
}

var ctx = context.Background()

// enqueueFlatOut enqueues as fast as it can. When the store is full, the same
// jobs are brought again a little later.
func enqueueFlatOut(c *child) error {
	for i := 0; ; i++ {
		jobs := fresh(1 + i*7%30)
		_, err := c.st.Insert(ctx, jobs...)
		for errors.Is(err, settle.ErrFull) {
			pause(10 * time.Millisecond)
			_, err = c.st.Insert(ctx, jobs...)
		}
		if err != nil {
			return err
		}
	}
}

// work is a real worker. It ends when nothing is left, if its Config says so.
func work(c *child) error {
	w := c.worker()
	worker.Handle(w, plain, func(ctx context.Context, j *worker.Job[int]) (int, error) {
		fatal := c.fatal(opHandler)
		c.diary.write(line{word: started, job: j.ID, n: j.Attempt})
		if fatal {
			die()
		}
		if c.Hang {
			<-ctx.Done()
		}
		return j.In, ctx.Err()
	})
	worker.Handle(w, poison, func(_ context.Context, j *worker.Job[int]) (int, error) {
		c.diary.write(line{word: started, job: j.ID, n: j.Attempt})
		dieIn(20 * time.Millisecond) // others have begun beside it
		return 0, nil
	})
	return w.Run(ctx)
}

func (c *child) worker() *worker.Worker {
	return worker.New(c.st, worker.Config{Slots: c.Shift.Slots, Lease: c.Shift.Lease, Sweep: c.Shift.Sweep, Poll: c.Shift.Poll,
		UntilIdle: c.Shift.UntilIdle, Keep: settle.Keep{Succeeded: 1000 * time.Hour}, Logger: slog.New(slog.DiscardHandler)})
}

// submit is a real worker whose steps are done by a node that answers at once:
// before the park.
func submit(c *child) error {
	w := c.worker()
	worker.Handle(w, distant, func(ctx context.Context, j *worker.Job[int]) (int, error) {
		c.diary.write(line{word: started, job: j.ID, n: j.Attempt})
		if len(j.Steps) > 0 {
			return j.In, nil
		}
		wait := settle.Wait{Ticket: settle.NewID(), Step: "s", Node: "n"}
		if err := j.Submitting(ctx, wait, 0); err != nil {
			return 0, err
		}
		open, err := c.st.Waits(ctx, []settle.ID{j.ID})
		if err != nil {
			return 0, err
		}
		answer := open[0].Answered(settle.Delivered{Ticket: wait.Ticket, Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte("1")}})
		if _, err := c.st.Apply(ctx, []settle.Transition{open[0].Decide(answer, 0.5, false)}); err != nil {
			return 0, err
		}
		return 0, worker.Report(settle.Parked{Wait: wait})
	})
	return w.Run(ctx)
}

// load is what the children under load do: they enqueue, work, or both.
func load(c *child) error {
	errs := make(chan error)
	for range c.Producers {
		go func() { errs <- enqueueFlatOut(c) }()
	}
	if c.Shift.Slots > 0 {
		go func() { errs <- work(c) }()
	}
	return <-errs
}

// page is how many jobs one call is about where programs call the store
// themselves: enough that a call takes longer than it takes to be killed.
const page = 20

// ghost claims a page as a worker that dies at once.
func (c *child) ghost(lease time.Duration) ([]settle.ClaimedJob, error) {
	got, err := c.st.Claim(ctx, settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: []string{plain.Name()}, Limit: page, Lease: lease, Worker: 13})
	if err == nil && len(got.Jobs) < page {
		err = fmt.Errorf("%d jobs to claim, want %d", len(got.Jobs), page)
	}
	return got.Jobs, err
}

// sweepPages ends leases page by page. A worker's own sweep does the same, but
// lets ten seconds pass before the first.
func sweepPages(c *child) error {
	for {
		if _, err := c.ghost(time.Microsecond); err != nil {
			return err
		}
		if err := sweep(c.st); err != nil {
			return err
		}
	}
}

// sweep ends all leases that are over.
func sweep(st settle.Store) error {
	for after := (settle.Cursor{}); ; {
		page, err := st.Overdue(ctx, after, page)
		if err != nil {
			return err
		}
		var ts []settle.Transition
		for _, j := range page.Jobs {
			if ev := j.Passed(true, true); ev != nil {
				ts = append(ts, j.Decide(ev, 0.5, true))
			}
		}
		if _, err := st.Apply(ctx, ts); err != nil {
			return err
		}
		if after = page.Next; after == (settle.Cursor{}) {
			return nil
		}
	}
}

// firstRenewal is what the first renewal makes of a lease, in seconds. Each
// further one gives 10 s more, so that one can see which ones counted.
const firstRenewal = 100

func renewOnAndOn(c *child) error {
	jobs, err := c.ghost(time.Second)
	if err != nil {
		return err
	}
	var held []settle.Held
	for _, j := range jobs {
		held = append(held, settle.Held{Job: j.ID, Attempt: j.Attempt, Handle: j.Handle})
	}
	for lease := firstRenewal * time.Second; ; lease += 10 * time.Second {
		lost, err := c.st.Renew(ctx, 13, held, lease)
		if err != nil || len(lost) > 0 {
			return fmt.Errorf("%d leases were lost: %w", len(lost), err)
		}
	}
}

func prunePages(c *child) error {
	at := time.Millisecond
	for {
		if _, err := c.st.Prune(ctx, settle.Keep{Succeeded: at, Cancelled: at, Dead: at}, page); err != nil {
			return err
		}
	}
}

// migrateFiles opens new files, the last of which is the parent's.
func migrateFiles(c *child) error {
	for i := 1; ; i++ {
		path := c.Path
		if i < c.Nth {
			path += fmt.Sprint(".", i)
		}
		if err := c.around(opMigrate, func() error {
			st, err := openStore(path, c.Ahead, false)
			if err == nil && i < c.Nth {
				err = st.Close()
			}
			return err
		}); err != nil {
			return err
		}
	}
}
