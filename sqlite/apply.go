package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// Apply carries out transitions, each for itself, in one transaction.
func (s *Store) Apply(ctx context.Context, ts []settle.Transition) (said []settle.Applied, err error) {
	if len(ts) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "apply", func(t *tx) error {
		said = make([]settle.Applied, len(ts))
		for i := range ts {
			a, err := t.apply(&ts[i])
			if err != nil {
				return err
			}
			said[i] = a
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.drain(ctx)
	return said, nil
}

// apply carries out one transition. Its first statement compares the fence;
// what follows cannot fail on the row's account.
func (t *tx) apply(m *settle.Transition) (settle.Applied, error) {
	if m.Refusal != "" {
		return settle.Stale, nil
	}
	n, err := t.row(m.Job, m.Fence.Handle)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return settle.Stale, nil
	}
	var moved bool
	switch {
	case m.Fence.State.Ended():
		return t.revive(n, m)
	case m.To.Ended():
		moved, err = t.end(n, m)
	case m.To == settle.Running:
		moved, err = t.note(n, m)
	default:
		moved, err = t.move(n, m)
	}
	if refusedByCheck(err) {
		return settle.Rejected, nil
	}
	if err != nil {
		return "", err
	}
	if !moved {
		return t.already(n, m)
	}
	if err := t.follow(n, m); err != nil {
		return "", err
	}
	if m.To == settle.Awaiting && m.Fence.State == settle.Running {
		return settle.Done, t.answered(n, m.Wait.Ticket)
	}
	return settle.Done, nil
}

// refusedByCheck: the schema will not hold this row, for example a claimable
// one that is spent. Only this statement was undone.
func refusedByCheck(err error) bool {
	return err != nil && primary(err) == zs.ResultConstraint
}

// end takes the row out of the hot table.
func (t *tx) end(n int64, m *settle.Transition) (bool, error) {
	r, err := t.exec(`insert into ended (n, at, state, reason, since, attempt, excused, deferred, crashed, tries, redrives, base,
			worker, output, note, stream, lane)
		select n, ?1, ?2, ?3, since, ?4, ?5, ?6, ?7, tries, redrives, base, worker, ?8, ?9,
			iif(gated and ?10, stream, null), iif(gated and ?10, lane, null)
		from live where n = ?11 and attempt = ?12 and state = ?13 and redrives = ?14 and (?15 = 0 or alarm = ?15)`,
		t.now, stateOf(m.To), string(m.End), m.Attempt, m.Excused, m.Deferred, m.Crashed, m.Output, null(storable(m.Note)),
		unjudged(m), n, m.Fence.Attempt, stateOf(m.Fence.State), m.Redrives, m.Fence.Seen)
	if err != nil || r.changes == 0 {
		return false, err
	}
	if _, err = t.exec(`delete from live where n = ?`, n); err != nil {
		return false, err
	}
	t.jobs--
	t.nudge.end(m.Job)
	return true, nil
}

// unjudged: the far end has not refused this event, so it stays in the gate's
// anchor.
func unjudged(m *settle.Transition) bool {
	return m.To == settle.Dead && m.End != settle.EndRefused && m.End != settle.EndTerminal
}

// move makes the row pending or awaiting.
func (t *tx) move(n int64, m *settle.Transition) (bool, error) {
	due := t.now + ceilMicro(m.After)
	wait, until, err := t.wait(n, m)
	if err != nil {
		return false, err
	}
	if m.To == settle.Awaiting {
		due = min(due, until)
	}
	keep := !m.SetBatch
	r, err := t.exec(`update live set state = ?1, due = iif(?1 = 0, ?2, due), ord = iif(?1 = 0, ?2, ord),
			alarm = iif(?1 = 0, deadline, min(?2, deadline)), excused = ?3, deferred = ?4, crashed = ?5, suspect = ?6,
			wait = ?7, batch = iif(?8, batch, ?9), worker = 0
		where n = ?10 and attempt = ?11 and state = ?12 and (?13 = 0 or alarm = ?13)`,
		stateOf(m.To), due, m.Excused, m.Deferred, m.Crashed, m.Suspect, wait, keep, idOrNull(m.Batch),
		n, m.Fence.Attempt, stateOf(m.Fence.State), m.Fence.Seen)
	if err != nil || r.changes == 0 {
		return false, err
	}
	if m.To == settle.Pending {
		return true, t.hintRow(n)
	}
	return true, nil
}

// wait encodes what an awaiting row waits for, and until when: the ceiling of a
// wait under way stays what it was, however long ago it was read.
func (t *tx) wait(n int64, m *settle.Transition) (doc []byte, until int64, err error) {
	if m.Wait == nil {
		return nil, 0, nil
	}
	if m.Fence.State == settle.Awaiting {
		until, err = number(t, `select wait ->> '$.until' from live where n = ? and state = 2`, n)
	}
	if until == 0 {
		until = t.now + ceilMicro(m.WaitLeft)
	}
	if err == nil {
		doc, err = json.Marshal(storedWait{Wait: *m.Wait, Until: until})
	}
	return doc, until, err
}

func idOrNull(id settle.ID) []byte {
	if id.IsZero() {
		return nil
	}
	return id[:]
}

// hintRow nudges those who wait for work of the row's lane.
func (t *tx) hintRow(n int64) error {
	var queue, lane int64
	if _, err := one(t, `select lane from live where n = ?`, func(r row) error {
		lane = r.int(0)
		queue = lane >> hashBits
		return nil
	}, n); err != nil {
		return err
	}
	name, err := t.s.queueName(t, queue)
	t.nudge.lane(name, lane)
	return err
}

// revive brings an ended job back: a redrive.
func (t *tx) revive(n int64, m *settle.Transition) (settle.Applied, error) {
	var queue int64
	var kind, tenant, key string
	var gated bool
	found, err := one(t, `select b.queue, b.kind, b.tenant, b.key, b.gated from ended e join body b using (n)
		where n = ? and e.attempt = ? and e.state = ? and e.redrives = ?`,
		func(r row) error {
			queue, kind, tenant, key, gated = r.int(0), r.text(1), r.text(2), r.text(3), r.int(4) == 1
			return nil
		}, n, m.Fence.Attempt, stateOf(m.Fence.State), m.Redrives-1)
	if err != nil {
		return "", err
	}
	if !found {
		return t.already(n, m)
	}
	lane, stream := laneOf(queue, tenant), streamOf(queue, kind)
	due := t.now + ceilMicro(m.After)
	deadline := due + ceilMicro(m.Deadline)
	_, err = t.exec(`insert into live (n, state, lane, stream, ord, due, alarm, deadline, since, attempt, excused, deferred,
			crashed, tries, redrives, base, gated, key) values (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		n, lane, stream, due, due, deadline, deadline, due, m.Attempt, m.Excused, m.Deferred,
		m.Crashed, m.Tries, m.Redrives, m.Base, gated, null(key))
	if code(err) == zs.ResultConstraintUnique {
		return settle.Superseded, nil
	} else if refusedByCheck(err) {
		return settle.Rejected, nil
	} else if err != nil {
		return "", err
	}
	if _, err := t.exec(`delete from ended where n = ?`, n); err != nil {
		return "", err
	}
	t.jobs++
	return settle.Done, t.hintRow(n)
}

// follow writes what goes with a transition that has been made.
func (t *tx) follow(n int64, m *settle.Transition) error {
	var faults []error
	if r := m.Record; r != nil {
		_, err := t.exec(`insert or replace into attempt (n, k, reason, error, step, ticket, node, worker, at, retryable)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			n, m.Attempt, string(r.Reason), storable(r.Error), null(r.Step), idOrNull(r.Ticket), null(r.Node), m.Fence.Worker, t.now, r.Retryable)
		faults = append(faults, err)
	}
	if r := m.Step; r != nil {
		_, err := t.exec(`insert or replace into step (n, name, ticket, node, output, at) values (?, ?, ?, ?, ?, ?)`,
			n, r.Step, r.Ticket[:], r.Node, r.Output, t.now)
		faults = append(faults, err)
	}
	if done := doneWith(m); !done.IsZero() {
		_, err := t.exec(`delete from inbox where ticket = ?`, done[:])
		faults = append(faults, err)
	}
	for _, job := range []*settle.New{m.OnEnd, m.Recall} {
		if job == nil {
			continue
		}
		hooks, err := t.s.check([]settle.New{*job})
		if err == nil {
			_, err = t.insertOne(&hooks[0]) // room is not asked: it goes with an end
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// doneWith is the ticket for which nothing is kept any more; zero = none.
func doneWith(m *settle.Transition) settle.ID {
	switch {
	case m.Step != nil:
		return m.Step.Ticket
	case m.Record != nil:
		return m.Record.Ticket
	default:
		return settle.ID{}
	}
}

// storable guards the column against text that nobody made safe: what every
// store, and every reader behind it, can carry.
func storable(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return redact.Text(text)
}

// already tells a repeated transition from a stale one: by what it recorded, or,
// if that is nothing, by where the row stands.
func (t *tx) already(n int64, m *settle.Transition) (settle.Applied, error) {
	var same int64
	var err error
	switch {
	case m.Keep != nil:
		same, err = number(t, `select 1 from inbox where ticket = ? and n = ?`, m.Keep.Ticket[:], n)
	case m.To.Ended():
		same, err = number(t, `select 1 from ended where n = ? and state = ? and reason = ? and attempt = ? and redrives = ?`,
			n, stateOf(m.To), string(m.End), m.Attempt, m.Redrives)
	case m.Record == nil && m.Step == nil:
		same, err = number(t, `select 1 from live where n = ? and state = ? and attempt = ? and excused = ? and deferred = ? and crashed = ?
			and redrives = ? and (? is null or wait ->> '$.ticket' = ?)`,
			n, stateOf(m.To), m.Attempt, m.Excused, m.Deferred, m.Crashed, m.Redrives, ticketOf(m), ticketOf(m))
	}
	if same == 0 && err == nil && m.Record != nil {
		same, err = number(t, `select 1 from attempt where n = ? and k = ? and reason = ? and error = ?`,
			n, m.Attempt, string(m.Record.Reason), storable(m.Record.Error))
	}
	if same == 0 && err == nil && m.Step != nil {
		same, err = number(t, `select 1 from step where n = ? and name = ? and ticket = ?`, n, m.Step.Step, m.Step.Ticket[:])
	}
	if same == 0 && err == nil && m.To == settle.Awaiting && m.Fence.State == settle.Running {
		same, err = t.parked(n, m.Wait.Ticket)
	}
	if err != nil {
		return "", err
	}
	if same == 1 {
		return settle.Already, nil
	}
	return settle.Stale, nil
}

// parked reports whether a ticket had its answer, or waited for it in vain: what
// ends an attempt before its park leaves one of the other reasons.
func (t *tx) parked(n int64, ticket settle.ID) (int64, error) {
	return number(t, `select 1 from step where n = ?1 and ticket = ?2 union all
		select 1 from attempt where n = ?1 and ticket = ?2 and reason not in (?3, ?4, ?5) limit 1`,
		n, ticket[:], string(settle.AttemptWorkerLost), string(settle.AttemptCancelled), string(settle.AttemptExpired))
}

func ticketOf(m *settle.Transition) any {
	if m.Wait == nil {
		return nil
	}
	return m.Wait.Ticket.String()
}
