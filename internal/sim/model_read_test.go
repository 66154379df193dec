package sim

import (
	"time"

	"github.com/settle-go/settle"
)

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// ages are both ages of every (queue, kind) that has live jobs.
func (m *model) ages() (out []settle.Age) {
	at := map[[2]string]int{}
	first := map[[2]string]int64{}
	for _, j := range m.jobs {
		if !j.state.Live() {
			continue
		}
		k := [2]string{j.queue, j.kind}
		i, ok := at[k]
		if !ok {
			i, at[k] = len(out), len(out)
			out = append(out, settle.Age{Queue: j.queue, Kind: j.kind})
		}
		if old, seen := first[k]; (!seen || j.since < old) && j.since <= m.now {
			first[k] = j.since
			out[i].Unfinished = span(m.now - j.since) // Oldest is any of several that are equally old
		}
		if j.state == settle.Pending && j.due <= m.now && j.deadline > m.now && m.heldUntil(j) <= m.now {
			out[i].Waiting = max(out[i].Waiting, span(m.now-j.due))
		}
	}
	return out
}

func (m *model) counts() (out []settle.Count) {
	for _, st := range settle.States {
		at := map[string]int{}
		for _, j := range m.jobs {
			if j.state != st {
				continue
			}
			i, ok := at[j.queue]
			if !ok {
				i, at[j.queue] = len(out), len(out)
				out = append(out, settle.Count{Queue: j.queue, State: st})
			}
			out[i].N++
			if j.acked {
				out[i].Acked++
			}
		}
	}
	return out
}

func (m *model) removals() (out []settle.Removal) {
	for k, n := range m.removed {
		out = append(out, settle.Removal{Queue: k[0], State: settle.State(k[1]), N: int64(n)})
	}
	return out
}

func (m *model) holdList() (out []settle.Hold) {
	for k, h := range m.holds {
		if h.until > m.now {
			out = append(out, settle.Hold{Queue: k.queue, Tenant: k.tenant, Whole: k.whole, For: span(h.until - m.now), Reason: h.reason,
				Text: h.text, Tries: h.tries, Began: instant(h.began), Until: instant(h.until)})
		}
	}
	return out
}

// laneList are the lanes of a queue that have pending rows, suspects aside.
func (m *model) laneList(queue string, after settle.Lane, limit int) (out []settle.Lane) {
	best := settle.Lane(0)
	for len(out) < limit {
		best = 0
		for _, j := range m.jobs {
			if j.queue == queue && j.state == settle.Pending && !j.suspect && j.lane > after && (best == 0 || j.lane < best) {
				best = j.lane
			}
		}
		if best == 0 {
			break
		}
		out = append(out, best)
		after = best
	}
	return out
}
