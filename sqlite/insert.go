package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// ready is a job that has been checked.
type ready struct {
	settle.New
	tries int
}

// check checks all jobs, before a transaction and so that none is written if
// one is wrong.
func (s *Store) check(jobs []settle.New) ([]ready, error) {
	now := fromMicro(s.now())
	out := make([]ready, len(jobs))
	for i, n := range jobs {
		r, policy, err := n.Prepare(now)
		if err != nil {
			return nil, numbered(i, len(jobs), err)
		}
		out[i] = ready{r, policy.Attempts}
	}
	return out, nil
}

// Insert stores jobs, all or none. At the limit of bytes ended jobs make room.
func (s *Store) Insert(ctx context.Context, jobs ...settle.New) (out []settle.Inserted, err error) {
	checked, err := s.check(jobs)
	if err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	for {
		err = s.write(ctx, "insert", func(t *tx) (err error) {
			out, err = t.insert(checked)
			return err
		})
		var full *noSpace
		if err == nil || !errors.As(err, &full) {
			break
		}
		removed := 0
		if more := s.write(ctx, "make room", func(t *tx) (err error) {
			removed, err = t.makeRoom()
			return err
		}); more != nil || removed == 0 {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// insert stores jobs that have been checked, if there is room for all.
func (t *tx) insert(jobs []ready) ([]settle.Inserted, error) {
	size := 0
	for i := range jobs {
		size += len(jobs[i].Input) + rowBytes
	}
	if err := t.s.room.check(t, len(jobs), int64(size)); err != nil {
		if out, all, more := t.repeated(jobs); all && more == nil {
			return out, nil // a lost answer can be asked for again, also now
		}
		return nil, err
	}
	out := make([]settle.Inserted, len(jobs))
	for i := range jobs {
		in, err := t.insertOne(&jobs[i])
		if err != nil {
			return nil, numbered(i, len(jobs), err)
		}
		out[i] = in
	}
	return out, nil
}

// repeated answers for jobs that are all stored already.
func (t *tx) repeated(jobs []ready) (out []settle.Inserted, all bool, err error) {
	for _, n := range jobs {
		known, err := number(t, `select count(*) from body where id = ?`, n.ID[:])
		if err != nil || known == 0 {
			return nil, false, err
		}
		in, err := t.existing(n.ID)
		if err != nil {
			return nil, false, err
		}
		out = append(out, in)
	}
	return out, true, nil
}

func numbered(i, n int, err error) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("job %d of %d: %w", i+1, n, err)
}

// insertOne stores a job, unless its id exists or its key is taken.
func (t *tx) insertOne(n *ready) (settle.Inserted, error) {
	queue, err := t.queue(n.Queue)
	if err != nil {
		return settle.Inserted{}, err
	}
	lane, stream := laneOf(queue, n.Tenant), streamOf(queue, n.Kind)
	if n.Key != "" {
		if in, found, err := t.taken(n, lane, stream); found || err != nil {
			return in, err
		}
	}
	// Not "on conflict do nothing": that would use up a row number, and the
	// audit knows by the numbers how many jobs were ever accepted. A statement
	// that fails gives its number back.
	r, err := t.exec(`insert into body (id, at, queue, kind, tenant, key, policy, gated, input) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		n.ID[:], t.now, queue, n.Kind, n.Tenant, null(n.Key), n.RawPolicy, n.Gated, nonNil(n.Input))
	if code(err) == zs.ResultConstraintUnique {
		return t.existing(n.ID)
	}
	if err != nil {
		return settle.Inserted{}, err
	}
	due := t.now + ceilMicro(n.Delay)
	if !n.Due.IsZero() { // exactly, however long the transaction was waited for
		due = max(t.now, ceilMicro(n.Due.Sub(time.UnixMicro(0))))
	}
	ord := due
	if due == t.now {
		ord -= n.HeadStart.Microseconds()
	}
	deadline := due + ceilMicro(n.Deadline)
	_, err = t.exec(`insert into live (n, lane, stream, ord, due, alarm, deadline, since, tries, gated, key)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.id, lane, stream, ord, due, deadline, deadline, due, n.tries, n.Gated, null(n.Key))
	if err != nil {
		return settle.Inserted{}, err
	}
	t.jobs++
	t.nudge.lane(n.Queue, lane)
	return settle.Inserted{ID: n.ID, State: settle.Pending, Lane: settle.Lane(lane)}, nil
}

// existing answers for an id that is stored already.
func (t *tx) existing(id settle.ID) (in settle.Inserted, err error) {
	in = settle.Inserted{ID: id, Existing: true}
	found, err := one(t, `select coalesce(l.state, e.state), coalesce(l.lane, 0) from body b
		left join live l on l.n = b.n left join ended e on e.n = b.n where b.id = ?`,
		func(r row) error {
			in.State, in.Lane = stateAt(r.int(0)), settle.Lane(r.int(1))
			return nil
		}, id[:])
	if err == nil && !found {
		err = fmt.Errorf("job %s: its row vanished within a transaction", id)
	}
	return in, err
}

// taken looks for a live job that has the key. An id that exists already wins:
// then it is a repeated enqueue.
func (t *tx) taken(n *ready, lane, stream int64) (in settle.Inserted, found bool, err error) {
	known, err := number(t, `select count(*) from body where id = ?`, n.ID[:])
	if err != nil {
		return in, false, err
	}
	if known > 0 {
		in, err = t.existing(n.ID)
		return in, true, err
	}
	same := false
	found, err = one(t, `select b.id, l.state, b.kind = ? and b.tenant = ? from live l join body b using (n)
		where l.key = ? and l.stream = ? and l.lane = ?`,
		func(r row) error {
			in = settle.Inserted{ID: idAt(r, 0), Existing: true, State: stateAt(r.int(1)), Lane: settle.Lane(lane)}
			same = r.int(2) == 1
			return nil
		}, n.Kind, n.Tenant, n.Key, stream, lane)
	if found && !same && err == nil {
		err = &settle.InvalidError{Field: "key", Problem: fmt.Sprintf("%q meets another tenant's or kind's by an accident of hashing: choose another", n.Key)}
	}
	return in, found, err
}

// ceilMicro rounds up: nothing is due early.
func ceilMicro(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
