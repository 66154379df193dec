package sqlite

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/settle-go/settle"
)

// One list of columns for live rows and one for ended ones: shown alike.
const (
	liveCols = `select l.n, b.id, b.at, b.queue, b.kind, b.tenant, b.key, b.policy, ` + counterCols + `, l.state, l.due, l.alarm, l.deadline,
		l.since, l.suspect, l.worker, l.batch, l.wait, 0, '', null, 0, `
	selectLive = liveCols + `(select max(until) from hold h where h.queue = b.queue and (h.whole = 1 or h.tenant = b.tenant)), b.input, null
		from live l join body b using (n)`
	selectWait  = liveCols + `null, null, null from live l join body b using (n)` // what an answer is decided on
	selectEnded = `select l.n, b.id, b.at, b.queue, b.kind, b.tenant, b.key, b.policy, ` + counterCols + `, l.state, 0, 0, 0,
		l.since, 0, l.worker, null, null, l.at, l.reason, l.output, l.acked, null, b.input, l.note
		from ended l join body b using (n)`
)

// liveJob reads a row of selectLive or selectEnded.
func (s *Store) liveJob(c conn, r row, now int64) (j settle.Job, err error) {
	n := r.int(0)
	j.Fence.Handle = n
	j.ID, j.Enqueued = idAt(r, 1), fromMicro(r.int(2))
	j.Kind, j.Tenant, j.Key = r.text(4), r.text(5), r.text(6)
	j.Counters = countersAt(r, 8)
	j.State = stateAt(r.int(15))
	j.Due, j.Alarm, j.Deadline = fromMicro(r.int(16)), fromMicro(r.int(17)), fromMicro(r.int(18))
	j.FirstDue, j.Suspect, j.Worker = fromMicro(r.int(19)), r.int(20) == 1, r.int(21)
	j.Batch = idAt(r, 22)
	j.EndedAt, j.Reason = fromMicro(r.int(24)), settle.EndReason(r.text(25))
	j.Output, j.Acked = r.blob(26), r.int(27) == 1
	if until := r.int(28); until > now && j.State == settle.Pending {
		j.Held = fromMicro(until)
	}
	j.Input, j.Note = r.blob(29), r.text(30)
	j.Now = fromMicro(now)
	j.Fence.Attempt, j.Fence.State, j.Fence.Seen = j.Attempt, j.State, r.int(17)
	if j.State.Live() {
		j.EndsBy = settle.EndsBy(j.Deadline)
	}
	s.policy(r.blob(7), &j.Policy)
	if j.Queue, err = s.queueName(c, r.int(3)); err != nil {
		return j, err
	}
	return j, s.waiting(c, &j, n, r.blob(23))
}

// waiting fills in what is known of the step that a job waits for.
func (s *Store) waiting(c conn, j *settle.Job, n int64, doc []byte) error {
	if doc == nil {
		return nil
	}
	w, err := readWait(doc)
	if err != nil {
		return nil // one unreadable wait must not end a sweep of all: it is over
	}
	j.Wait, j.WaitEnds = &w.Wait, fromMicro(w.Until)
	spent, err := number(c, `select count(*) from attempt where n = ? and k > ? and step = ? and ticket is not null`,
		n, j.Base, w.Step)
	j.StepSpent = int(spent)
	if err == nil && j.State == settle.Running {
		j.Answer, err = kept(c, w.Ticket)
	}
	return err
}

// policies are few and decoded once; jobs with deadlines of their own have
// policies of their own, so at the limit all are forgotten.
var (
	policies sync.Map // stored form → settle.Policy
	known    atomic.Int64
)

const maxPolicies = 4096

// policy decodes a stored policy. One that cannot be read, from a newer program
// or a damaged row, counts as the default one: it must neither keep the claims
// and sweeps of all others from going on nor keep its job from ending.
func (s *Store) policy(stored []byte, p *settle.Policy) {
	if v, ok := policies.Load(string(stored)); ok {
		*p = v.(settle.Policy)
		return
	}
	if p.UnmarshalBinary(stored) != nil {
		*p = settle.DefaultPolicy()
		return
	}
	if known.Add(1) > maxPolicies {
		policies.Clear()
		known.Store(1)
	}
	policies.Store(string(stored), *p)
}

// Job reads one job with attempts and steps.
func (s *Store) Job(ctx context.Context, id settle.ID) (j settle.Job, err error) {
	err = s.read(ctx, "job", func(c conn, now int64) error {
		j, err = s.jobByID(c, id, now)
		return err
	})
	return j, err
}

func (s *Store) jobByID(c conn, id settle.ID, now int64) (j settle.Job, err error) {
	n, err := number(c, `select n from body where id = ?`, id[:])
	if err != nil {
		return j, err
	}
	read := func(r row) error { j, err = s.liveJob(c, r, now); return err }
	found, err := one(c, selectLive+` where n = ?`, read, n)
	if err == nil && !found {
		found, err = one(c, selectEnded+` where n = ?`, read, n)
	}
	if err == nil && !found {
		err = settle.ErrNotFound
	}
	if err != nil {
		return j, err
	}
	if j.Steps, err = readSteps(c, n); err != nil {
		return j, err
	}
	err = c.query(`select k, reason, error, step, ticket, node, worker, at, retryable from attempt where n = ? order by k`, func(r row) error {
		j.Attempts = append(j.Attempts, settle.Attempt{N: int(r.int(0)), Reason: settle.AttemptReason(r.text(1)), Error: r.text(2),
			Step: r.text(3), Ticket: idAt(r, 4), Node: r.text(5), Worker: r.int(6), At: fromMicro(r.int(7)), Retryable: r.int(8) == 1})
		return nil
	}, n)
	return j, err
}

// Page sizes, and how many rows one page looks at at most: a filter that
// matches little gives short pages, never a long read.
const (
	defaultPage = 100
	maxPage     = 1000
	maxWalk     = 20_000
)

// Jobs lists one page, in order of acceptance.
func (s *Store) Jobs(ctx context.Context, f settle.Filter) (jobs []settle.Job, next settle.Cursor, err error) {
	err = s.read(ctx, "jobs", func(c conn, now int64) (err error) {
		jobs, next, err = s.list(c, f, now)
		return err
	})
	return jobs, next, err
}

func (s *Store) list(c conn, f settle.Filter, now int64) ([]settle.Job, settle.Cursor, error) {
	if f.Limit < 1 {
		f.Limit = defaultPage
	}
	f.Limit = min(f.Limit, maxPage)
	q, err := s.filter(c, f)
	if err != nil || q == nil {
		return nil, settle.Cursor{}, err
	}
	return s.page(c, f, *q, now)
}

// tables is which tables a filter reads, and under which conditions.
type tables struct {
	live, ended string // "" = not read
	args        []any  // conditions on body, for either
	where       string
}

// filter turns a Filter into SQL; nil if nothing can match.
func (s *Store) filter(c conn, f settle.Filter) (*tables, error) {
	var q tables
	var live, done []string
	for _, st := range settle.States {
		if len(f.States) > 0 && !slices.Contains(f.States, st) {
			continue
		}
		if n := string(rune('0' + stateOf(st))); st.Live() {
			live = append(live, n)
		} else {
			done = append(done, n)
		}
	}
	if live != nil {
		q.live = "l.state in (" + strings.Join(live, ",") + ")"
	}
	if done != nil {
		q.ended = "l.state in (" + strings.Join(done, ",") + ")"
	}
	if slices.Equal(done, []string{"4"}) {
		q.ended = "l.state = 4" // lets the partial index serve
	}
	if f.Unacked && q.ended != "" {
		q.ended += " and l.acked = 0"
	}
	if f.Queue != "" {
		id, err := s.queueID(c, f.Queue)
		if err != nil || id == 0 {
			return nil, err
		}
		q.where, q.args = " and b.queue = ?", []any{id}
	}
	for _, t := range []struct{ col, val string }{{"kind", f.Kind}, {"tenant", f.Tenant}, {"key", f.Key}} {
		if t.val != "" {
			q.where += " and b." + t.col + " = ?"
			q.args = append(q.args, t.val)
		}
	}
	return &q, nil
}

// page reads rows after the cursor from both tables, up to the first row that
// neither has looked at, so that nothing is skipped.
func (s *Store) page(c conn, f settle.Filter, q tables, now int64) (jobs []settle.Job, next settle.Cursor, err error) {
	end := int64(1<<62 - 1) // rows above it have not been looked at
	for _, part := range []struct{ sel, table, state string }{{selectLive, "live", q.live}, {selectEnded, "ended", q.ended}} {
		if part.state == "" {
			continue
		}
		stop, err := number(c, `select n from `+part.table+` l where `+part.state+` and n > ? order by n limit 1 offset ?`, f.After.Row, maxWalk)
		if err != nil {
			return nil, next, err
		}
		if stop > 0 {
			end = min(end, stop-1)
		}
		args := append([]any{f.After.Row, end}, q.args...)
		count := 0
		err = c.query(part.sel+` where `+part.state+` and l.n > ? and l.n <= ?`+q.where+` order by l.n limit ?`, func(r row) error {
			j, err := s.liveJob(c, r, now)
			jobs = append(jobs, j)
			if count++; count == f.Limit {
				end = min(end, j.Fence.Handle)
			}
			return err
		}, append(args, f.Limit)...)
		if err != nil {
			return nil, next, err
		}
	}
	slices.SortFunc(jobs, func(a, b settle.Job) int { return int(a.Fence.Handle - b.Fence.Handle) })
	if len(jobs) > f.Limit {
		end = min(end, jobs[f.Limit-1].Fence.Handle)
	}
	jobs = slices.DeleteFunc(jobs, func(j settle.Job) bool { return j.Fence.Handle > end })
	if end < 1<<62-1 {
		next = settle.Cursor{Row: end}
	}
	return jobs, next, nil
}
