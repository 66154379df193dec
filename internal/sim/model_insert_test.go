package sim

import (
	"errors"
	"time"

	"github.com/settle-go/settle"
)

// inserted is what an Insert must answer: err, or out.
type inserted struct {
	out     []settle.Inserted // lanes that were never seen are 0
	err     error             // ErrFull, or errInvalid
	eitherr bool              // the store may also say ErrFull
}

var errInvalid = errors.New("an InvalidError")

// space is what a handle of the store knows of its limit.
type space struct {
	limit     int  // of live jobs; 0 = none that is met
	low, high int  // how many live jobs it may count
	bytes     bool // the file has a limit of bytes: ErrFull cannot be foreseen
}

// insert predicts an Insert and, if it is accepted, carries it out. The answer
// to one that may be full is settled by what the store said.
func (m *model) insert(jobs []settle.New, sp space, full bool) inserted {
	now := time.UnixMicro(m.now).UTC()
	ready := make([]settle.New, len(jobs))
	pols := make([]settle.Policy, len(jobs))
	for i, n := range jobs {
		var err error
		if ready[i], pols[i], err = n.Prepare(now); err != nil {
			return inserted{err: errInvalid}
		}
	}
	ask := inserted{}
	if !m.allKnown(ready) {
		switch {
		case sp.limit > 0 && sp.low+len(jobs) > sp.limit:
			return inserted{err: settle.ErrFull}
		case sp.bytes || sp.limit > 0 && sp.high+len(jobs) > sp.limit:
			ask.eitherr = true
			if full {
				ask.err = settle.ErrFull
				return ask
			}
		}
	}
	for i := range ready {
		ask.out = append(ask.out, m.insertOne(&ready[i], pols[i]))
	}
	return ask
}

func (m *model) allKnown(jobs []settle.New) bool {
	for _, n := range jobs {
		if m.byID[n.ID] == nil {
			return false
		}
	}
	return true
}

func (m *model) insertOne(n *settle.New, pol settle.Policy) settle.Inserted {
	m.queues[n.Queue] = true
	if j := m.byID[n.ID]; j != nil {
		return existing(j)
	}
	if n.Key != "" {
		if j := m.keyed(n.Queue, n.Kind, n.Tenant, n.Key); j != nil {
			return existing(j)
		}
	}
	j := &job{id: n.ID, kind: n.Kind, queue: n.Queue, tenant: n.Tenant, key: n.Key, pol: pol, input: string(n.Input),
		gated: n.Gated, at: m.now, state: settle.Pending, arrows: map[arrow]bool{}, lane: m.lanes[laneKey{n.Queue, n.Tenant}]}
	j.due = m.now + micros(n.Delay)
	j.since, j.ord = j.due, j.due
	if n.Delay == 0 {
		j.ord -= n.HeadStart.Microseconds()
	}
	j.deadline = j.due + micros(n.Deadline)
	j.alarm = j.deadline
	j.Tries = pol.Attempts
	j.own = account{tries: pol.Attempts}
	m.jobs, m.byID[j.id] = append(m.jobs, j), j
	m.taken++
	return settle.Inserted{ID: j.id, State: settle.Pending, Lane: j.lane}
}

func existing(j *job) settle.Inserted {
	in := settle.Inserted{ID: j.id, Existing: true, State: j.state}
	if j.state.Live() {
		in.Lane = j.lane
	}
	return in
}

// keyed finds the live job that has a key.
func (m *model) keyed(queue, kind, tenant, key string) *job {
	for _, j := range m.jobs {
		if j.state.Live() && j.key == key && j.queue == queue && j.kind == kind && j.tenant == tenant {
			return j
		}
	}
	return nil
}
