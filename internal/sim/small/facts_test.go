package small

import (
	"fmt"
	"strings"

	"github.com/settle-go/settle"
)

// What is true of the store before a call, and what must be true after it, read
// without its help.

func (c contents) row(table string, n int64) row { return c[table+fmt.Sprintf(" and n = %d", n)] }

// live is a job's live row by column; nil if it has none.
func (c contents) live(n int64) map[string]string {
	r := c.row("live", n)
	if r.values == nil {
		return nil
	}
	return r.named()
}

// holds says whether this attempt of this worker has the lease.
func (x *search) holds(c settle.ClaimedJob, i int) bool {
	l := x.before.live(c.Handle)
	return l != nil && l["state"] == "1" && l["attempt"] == fmt.Sprint(c.Attempt) && l["worker"] == fmt.Sprint(i+1)
}

func (x *search) overdue(n int64) bool {
	l := x.before.live(n)
	return l != nil && number(l, "deadline") <= x.now.UnixMicro()
}

// fits says whether the job still is as a transition's fence saw it.
func (x *search) fits(t *settle.Transition) bool {
	if t.Fence.State.Ended() {
		e := x.before.row("ended", t.Fence.Handle)
		if e.values == nil {
			return false
		}
		m := e.named()
		return m["attempt"] == fmt.Sprint(t.Fence.Attempt) && number(m, "redrives") == int64(t.Redrives-1) && number(m, "state") == place(t.Fence.State)
	}
	l := x.before.live(t.Fence.Handle)
	return l != nil && x.ticketFits(t) && number(l, "state") == place(t.Fence.State) && l["attempt"] == fmt.Sprint(t.Fence.Attempt) &&
		number(l, "redrives") == int64(t.Redrives) && (t.Fence.Seen == 0 || number(l, "alarm") == t.Fence.Seen)
}

// place is a state as the tables number it.
func place(s settle.State) int64 {
	for i, v := range settle.States {
		if v == s {
			return int64(i)
		}
	}
	return -1
}

// lawful checks the promises after a call, and between before and after.
func (x *search) lawful(before, after contents, how string) {
	for n := int64(1); n <= int64(len(x.ids)); n++ {
		live, ended := after.row("live", n), after.row("ended", n)
		x.check((live.values == nil) != (ended.values == nil), "P14 job %d is live or ended, and not both", n)
		if live.values != nil {
			x.lawfulLive(live.named())
		} else {
			x.check(ended.named()["reason"] != "''", "an end has a reason")
		}
		if was := before.row("ended", n); was.values != nil {
			redriven := live.values != nil && number(live.named(), "redrives") == number(was.named(), "redrives")+1
			x.check(redriven || was.text() == ended.text(), "P3 an end is final: %s changed %v to %v", how, was.values, ended.values)
		}
		if was := before.live(n); was != nil && live.values != nil {
			now := live.named()
			x.check(number(now, "attempt") >= number(was, "attempt"), "P10 attempts only grow: %v to %v", was, now)
		}
	}
	for k, r := range before {
		if r.table == "attempt" || r.table == "step" {
			x.check(after[k].text() == r.text(), "P6 what is recorded stays: %s changed %v to %v", how, r.values, after[k].values)
		}
	}
	if x.bound.bridge > 0 {
		x.lawfulStep(before, after, how)
	}
}

func (r row) text() string { return strings.Join(r.values, ",") }

func (x *search) lawfulLive(l map[string]string) {
	charged, tries := number(l, "attempt")-number(l, "excused"), number(l, "tries")
	x.check(charged <= tries, "P10 charged %d of %d", charged, tries)
	x.check(l["state"] != "0" || charged < tries, "P2 a spent job is pending: %v", l)
	x.check(number(l, "alarm") > 0 && number(l, "alarm") <= number(l, "deadline"), "P1 an alarm by the deadline: %v", l)
	x.check((l["state"] == "1") == (l["worker"] != "0"), "one lease: %v", l)
	x.check(number(l, "crashed") < int64(policy.Crashes), "P1 crashes within the budget: %v", l)
}
