package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settle-go/settle"
)

// verdict says what becomes of a row that was read.
type verdict int

const (
	good  verdict = iota
	bad           // it makes no sense, or what it belongs to is lost
	older         // another row says more: nothing is lost
)

// menders look at the rows of our tables before they are stored: they drop what
// cannot be right and compute anew what can be computed.
var menders = map[string]func(s *salvage, r named, orphan bool) (verdict, error){
	"queue": (*salvage).mendQueue, "body": (*salvage).mendBody,
	"ended": (*salvage).mendEnded, "live": (*salvage).mendLive,
	"attempt": (*salvage).mendAttempt, "step": (*salvage).mendStep, "inbox": (*salvage).mendInbox,
	"hold": (*salvage).mendHold, "tally": (*salvage).mendTally,
}

func when(ok bool) verdict {
	if ok {
		return good
	}
	return bad
}

// instant tells a time that may be right: in this century, not beyond the
// latest deadline.
func (s *salvage) instant(us int64) bool {
	const from = 946_684_800_000_000 // 2000
	return us > from && us < s.now+(25*365*24*time.Hour).Microseconds()
}

func (s *salvage) instants(r named, cols ...string) bool {
	return !slices.ContainsFunc(cols, func(c string) bool { return !s.instant(r.int(c)) })
}

func counts(r named, cols ...string) bool {
	return !slices.ContainsFunc(cols, func(c string) bool { return r.int(c) < 0 || r.int(c) > 1<<40 })
}

func flags(r named, cols ...string) {
	for _, c := range cols {
		r[c] = min(max(r.int(c), 0), 1)
	}
}

func (s *salvage) mendQueue(r named, orphan bool) (verdict, error) {
	n := settle.New{Kind: "kind"}
	n.Queue = r.text("name")
	_, _, err := n.Prepare(fromMicro(s.now))
	if !s.instant(r.int("keep_until")) {
		r["keep_until"] = int64(0)
	}
	return when(err == nil && n.Queue != ""), nil
}

func (s *salvage) mendBody(r named, orphan bool) (verdict, error) {
	n := settle.New{Kind: r.text("kind")}
	n.Tenant, n.Key = r.text("tenant"), r.text("key")
	_, _, err := n.Prepare(fromMicro(s.now))
	if id := r.blob("id"); err != nil || len(id) != 16 || r.int("n") < 1 || r.int("n") > maxJob || r.int("queue") < 1 || r.int("queue") > maxQueue {
		return bad, nil
	}
	var p settle.Policy
	if p.UnmarshalBinary(r.blob("policy")) != nil {
		if orphan {
			return bad, nil
		}
		stored, err := p.AppendBinary(nil) // the defaults
		if err != nil {
			return bad, err
		}
		r["policy"] = stored
		s.report.Policies++
	}
	if !s.instant(r.int("at")) {
		r["at"] = s.now
	}
	flags(r, "gated")
	return good, s.queue(r.int("queue"))
}

// maxQueue is the highest id of a queue.
const maxQueue = 1<<19 - 1

// queue makes a name for a queue whose own is lost.
func (s *salvage) queue(id int64) error {
	if s.queues[id] {
		return nil
	}
	r, err := s.to.exec(`insert into queue (id, name) values (?, ?) on conflict do nothing`, id, fmt.Sprintf("lost-queue-%d", id))
	s.report.Queues += r.changes
	s.queues[id] = err == nil
	return err
}

// savedJob is what a row of state must agree with.
type savedJob struct {
	found        bool
	lane, stream int64
	key          any
	gated        bool
}

func (s *salvage) job(n int64) (j savedJob, err error) {
	j.found, err = one(s.to, `select queue, kind, tenant, key, gated from body where n = ?`, func(r row) error {
		j.lane, j.stream = laneOf(r.int(0), r.text(2)), streamOf(r.int(0), r.text(1))
		j.key, j.gated = null(r.text(3)), r.int(4) == 1
		return nil
	}, n)
	return j, err
}

func (s *salvage) mendEnded(r named, orphan bool) (verdict, error) {
	j, err := s.job(r.int("n"))
	if err != nil || !j.found {
		return s.bodiless(orphan), err
	}
	if r["stream"] != nil {
		r["stream"] = j.stream
	}
	if r["lane"] != nil {
		r["lane"] = j.lane
	}
	flags(r, "acked")
	return when(s.instants(r, "at", "since") && slices.Contains(settle.EndReasons, settle.EndReason(r.text("reason"))) &&
		counts(r, "attempt", "excused", "deferred", "crashed", "tries", "redrives", "base")), nil
}

func (s *salvage) mendLive(r named, orphan bool) (verdict, error) {
	j, err := s.job(r.int("n"))
	if err != nil || !j.found {
		return s.bodiless(orphan), err
	}
	r["lane"], r["stream"], r["key"], r["gated"] = j.lane, j.stream, j.key, int64(0)
	if j.gated {
		r["gated"] = int64(1)
	}
	flags(r, "suspect", "capped")
	if _, err := readWait(r.blob("wait")); err != nil || len(r.blob("batch"))%16 != 0 ||
		!s.instants(r, "ord", "due", "alarm", "deadline", "since") ||
		!counts(r, "attempt", "excused", "deferred", "crashed", "tries", "redrives", "base") {
		return bad, nil
	}
	var redrives, attempt int64
	ended, err := one(s.to, `select redrives, attempt from ended where n = ?`, func(e row) error {
		redrives, attempt = e.int(0), e.int(1)
		return nil
	}, r.int("n"))
	switch {
	case err != nil || !ended:
		return good, err
	case orphan || r.int("redrives") < redrives || r.int("redrives") == redrives && r.int("attempt") <= attempt:
		return older, nil
	}
	_, err = s.to.exec(`delete from ended where n = ?`, r.int("n"))
	return good, err
}

// bodiless counts a job of which only the state is left.
func (s *salvage) bodiless(orphan bool) verdict {
	if orphan {
		return older // of a job that was removed long ago, most likely
	}
	s.report.Bodiless++
	return bad
}

// belongs finds out whether a row's job is there.
func (s *salvage) belongs(r named, ok bool) (verdict, error) {
	n, err := number(s.to, `select n from body where n = ?`, r.int("n"))
	return when(ok && n > 0), err
}

func (s *salvage) mendAttempt(r named, _ bool) (verdict, error) {
	r["error"] = strings.ToValidUTF8(r.text("error"), "")
	if !s.instant(r.int("at")) {
		r["at"] = s.now
	}
	return s.belongs(r, r.int("k") > 0 && slices.Contains(settle.AttemptReasons, settle.AttemptReason(r.text("reason"))))
}

func (s *salvage) mendStep(r named, _ bool) (verdict, error) {
	return s.belongs(r, len(r.blob("ticket")) == 16)
}

func (s *salvage) mendInbox(r named, _ bool) (verdict, error) {
	return s.belongs(r, len(r.blob("ticket")) == 16)
}

func (s *salvage) mendHold(r named, _ bool) (verdict, error) {
	r["lane"] = laneOf(r.int("queue"), r.text("tenant"))
	flags(r, "whole")
	known, err := number(s.to, `select id from queue where id = ?`, r.int("queue"))
	return when(known > 0 && s.instants(r, "began", "until")), err
}

func (s *salvage) mendTally(r named, orphan bool) (verdict, error) {
	if r.int("n") < 1 || r.int("n") > maxJob || r.int("state") < succeeded || r.int("state") > writtenOff {
		return bad, nil
	}
	if r.int("state") == writtenOff { // by a repair before this one
		return when(r.int("queue") == 0), nil
	}
	known, err := number(s.to, `select id from queue where id = ?`, r.int("queue"))
	if err == nil && known == 0 && !orphan && r.int("queue") > 0 && r.int("queue") <= maxQueue {
		return good, s.queue(r.int("queue")) // its name is lost, not its count
	}
	return when(known > 0), err
}
