package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/settle-go/settle"
)

// Waits reads what answers are decided on.
func (s *Store) Waits(ctx context.Context, ids []settle.ID) (jobs []settle.Job, err error) {
	err = s.read(ctx, "waits", func(c conn, now int64) error {
		jobs = make([]settle.Job, len(ids))
		for i, id := range ids {
			n, err := number(c, `select n from body where id = ?`, id[:])
			if err != nil {
				return err
			}
			if _, err := one(c, selectWait+` where l.n = ?`, func(r row) (err error) {
				jobs[i], err = s.liveJob(c, r, now)
				return err
			}, n); err != nil {
				return err
			}
		}
		return nil
	})
	return jobs, err
}

// ReportNodes replaces what a process says of its nodes.
func (s *Store) ReportNodes(ctx context.Context, worker int64, nodes []settle.NodeReport, keep time.Duration) error {
	return s.write(ctx, "report nodes", func(t *tx) error {
		_, err := t.exec(`delete from node where worker = ?`, worker)
		for _, n := range nodes {
			probe := int64(0)
			if n.Probe > 0 {
				probe = t.now + ceilMicro(n.Probe)
			}
			if err == nil {
				_, err = t.exec(`insert or replace into node (worker, pool, node, state, failures, text, at, probe, until)
					values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
					worker, n.Pool, n.Node, n.State, n.Failures, storable(n.Text), t.now, probe, t.now+ceilMicro(keep))
			}
		}
		return err
	})
}

// Nodes lists what processes say of their nodes.
func (s *Store) Nodes(ctx context.Context) (out []settle.NodeReport, err error) {
	err = s.read(ctx, "nodes", func(c conn, now int64) error {
		out = nil
		return c.query(`select pool, node, state, failures, text, worker, at, probe from node where until > ? order by pool, node, worker`,
			func(r row) error {
				n := settle.NodeReport{Pool: r.text(0), Node: r.text(1), State: r.text(2), Failures: int(r.int(3)), Text: r.text(4),
					Worker: r.int(5), At: fromMicro(r.int(6)), ProbeAt: fromMicro(r.int(7))}
				if left := micro(r.int(7) - now); left > 0 {
					n.Probe = left
				}
				out = append(out, n)
				return nil
			}, now)
	})
	return out, err
}

// note records what belongs to an attempt that goes on running: its ticket, if the
// job is not overdue, or the answer that came before its park. It moves the alarm
// by a microsecond: a sweep that has not seen the note comes too late.
func (t *tx) note(n int64, m *settle.Transition) (bool, error) {
	if m.Keep == nil {
		wait, _, err := t.wait(n, m)
		if err != nil {
			return false, err
		}
		r, err := t.exec(`update live set wait = ?, alarm = min(alarm + 1, deadline) where n = ? and attempt = ? and state = 1 and deadline > ?`,
			wait, n, m.Fence.Attempt, t.now)
		return r.changes == 1, err
	}
	doc, err := json.Marshal(m.Keep)
	if err != nil {
		return false, err
	}
	r, err := t.exec(`insert or ignore into inbox (ticket, n, doc, at) select ?1, n, ?2, ?3 from live
		where n = ?4 and attempt = ?5 and state = 1 and wait ->> '$.ticket' = ?6`,
		m.Keep.Ticket[:], doc, t.now, n, m.Fence.Attempt, m.Keep.Ticket.String())
	if err != nil || r.changes == 0 {
		return false, err
	}
	_, err = t.exec(`update live set alarm = min(alarm + 1, deadline) where n = ?`, n)
	return true, err
}

// answered delivers, in the transaction of the park, the answer that came before
// it, if one did.
func (t *tx) answered(n int64, ticket settle.ID) error {
	answer, err := kept(t, ticket)
	if err != nil || answer == nil {
		return err
	}
	var j settle.Job
	if _, err := one(t, selectWait+` where l.n = ?`, func(r row) (err error) {
		j, err = t.s.liveJob(t, r, t.now)
		return err
	}, n); err != nil {
		return err
	}
	jitter := float64(ticket[len(ticket)-1]) / 256 // as random as the ticket
	m := j.Decide(*answer, jitter, false)
	_, err = t.apply(&m)
	return err
}

// kept reads the answer that was kept for a ticket; nil if there is none.
func kept(c conn, ticket settle.ID) (answer *settle.Delivered, err error) {
	_, err = one(c, `select doc from inbox where ticket = ?`, func(r row) error {
		var d settle.Delivered
		if json.Unmarshal(r.blob(0), &d) == nil { // else damaged: as if it had been lost
			answer = &d
		}
		return nil
	}, ticket[:])
	return answer, err
}
