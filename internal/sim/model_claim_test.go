package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// claim predicts a claim and carries it out: which jobs, in which order.
func (m *model) claim(r settle.ClaimReq) settle.ClaimedJobs {
	var out settle.ClaimedJobs
	free := m.nextFree(r.Queue)
	if h := m.holds[holdKey{queue: r.Queue, whole: true}]; h != nil && h.until > m.now {
		out.Next = free
		return out
	}
	var chosen []*job
	if r.Suspects {
		chosen = m.byAge(r, nil, true, 1)
	} else {
		chosen = m.byAge(r, m.byTurn(r), false, r.Limit)
	}
	for _, j := range chosen {
		out.Jobs = append(out.Jobs, m.take(j, r))
	}
	m.ahead(r, free, &out)
	return out
}

// nextFree is when the first hold in the queue passes; 0 = there is none.
func (m *model) nextFree(queue string) (free time.Duration) {
	for k, h := range m.holds {
		if left := span(h.until - m.now); k.queue == queue && left > 0 && (free == 0 || left < free) {
			free = left
		}
	}
	return free
}

// claimable says whether a claim of these kinds may take the job, its due time
// aside.
func (m *model) claimable(j *job, r settle.ClaimReq, suspect bool) bool {
	return j.state == settle.Pending && j.queue == r.Queue && j.suspect == suspect && slices.Contains(r.Kinds, j.kind) &&
		j.deadline > m.now && m.heldUntil(j) <= m.now
}

// byTurn gives each lane its share, in the order of the lane.
func (m *model) byTurn(r settle.ClaimReq) (chosen []*job) {
	for _, lane := range r.Lanes {
		share := r.Limit - len(chosen)
		if r.PerLane > 0 {
			share = min(share, r.PerLane)
		}
		here := m.due(r, lane)
		chosen = append(chosen, here[:min(share, len(here))]...)
	}
	return chosen
}

// due lists what a lane could give now, in its order. A job's place is never
// later than its due time; a clock that jumped back can leave it between them.
func (m *model) due(r settle.ClaimReq, lane settle.Lane) (out []*job) {
	for _, j := range m.jobs {
		if j.lane == lane && j.ord <= m.now && m.claimable(j, r, false) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *job) int { return cmp.Or(cmp.Compare(a.ord, b.ord), cmp.Compare(a.n, b.n)) })
	return out
}

// byAge fills up to limit, oldest due first.
func (m *model) byAge(r settle.ClaimReq, chosen []*job, suspect bool, limit int) []*job {
	var rest []*job
	for _, j := range m.jobs {
		if j.due <= m.now && m.claimable(j, r, suspect) && !slices.Contains(chosen, j) {
			rest = append(rest, j)
		}
	}
	slices.SortFunc(rest, func(a, b *job) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.n, b.n)) })
	return append(chosen, rest[:max(0, min(limit-len(chosen), len(rest)))]...)
}

// take counts the attempt and gives the lease.
func (m *model) take(j *job, r settle.ClaimReq) settle.ClaimedJob {
	j.state, j.worker = settle.Running, r.Worker
	j.Attempt++
	j.own.claims++
	j.alarm = min(m.now+micros(r.Lease), j.deadline)
	c := settle.ClaimedJob{Snapshot: m.snapshot(j), Key: j.key, Input: []byte(j.input), Policy: j.pol, Lane: j.lane,
		Handle: j.n, Age: span(max(0, m.now-j.since))}
	if j.Excused > 0 {
		c.Steps = j.stepResults()
	}
	return c
}

// ahead says when the next job is due, and whether suspects wait.
func (m *model) ahead(r settle.ClaimReq, free time.Duration, out *settle.ClaimedJobs) {
	soon := func(d time.Duration) {
		if len(out.Jobs) < r.Limit && d > 0 && (out.Next == 0 || d < out.Next) {
			out.Next = d
		}
	}
	for _, j := range m.jobs {
		if j.state != settle.Pending || j.queue != r.Queue || !slices.Contains(r.Kinds, j.kind) {
			continue
		}
		out.Suspects = out.Suspects || j.suspect && j.due <= m.now
		soon(span(j.due - m.now))
	}
	soon(free)
}

// renew predicts which leases are lost, and extends the others.
func (m *model) renew(worker int64, held []settle.Held, lease time.Duration) (lost []settle.ID) {
	for _, h := range held {
		j := m.find(h.Job, h.Handle)
		if j == nil || j.state != settle.Running || j.Attempt != h.Attempt || j.worker != worker || j.deadline <= m.now {
			lost = append(lost, h.Job)
			continue
		}
		j.alarm = min(m.now+micros(lease), j.deadline)
	}
	return lost
}

// find is by row where one is named, else by id.
func (m *model) find(id settle.ID, n int64) *job {
	if n == 0 {
		return m.byID[id]
	}
	for _, j := range m.jobs {
		if j.n == n {
			return j
		}
	}
	return nil
}

// overdue predicts a page of the sweep.
func (m *model) overdue(after settle.Cursor, limit int) (out []*job, next settle.Cursor) {
	for _, j := range m.jobs {
		if j.state.Live() && j.alarm <= m.now && (j.alarm > after.At || j.alarm == after.At && j.n > after.Row) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *job) int { return cmp.Or(cmp.Compare(a.alarm, b.alarm), cmp.Compare(a.n, b.n)) })
	if len(out) >= limit {
		out = out[:limit]
		next = settle.Cursor{At: out[limit-1].alarm, Row: out[limit-1].n}
	}
	return out, next
}

// pull brings back what a jump of the clock has stranded.
func (m *model) pull(within, lease time.Duration) (moved int) {
	for _, j := range m.jobs {
		switch {
		case j.state == settle.Pending && j.due > m.now && j.due <= m.now+micros(within):
			j.due, j.ord = m.now, m.now
			moved++
		case j.state == settle.Running && j.alarm > m.now+micros(lease):
			j.alarm = min(m.now+micros(lease), j.deadline)
			moved++
		}
	}
	return moved
}
