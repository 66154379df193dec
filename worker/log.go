package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// logEvents writes what is worth a line: a job that succeeds or is put off is
// debug, one that will be tried again is info, one that died is a warning. Of
// each message, more than a few in ten seconds are summarised.
func logEvents(logger *slog.Logger) Events {
	l := &lines{logger: logger, seen: map[string]*burst{}}
	return Events{
		Settled: l.settled,
		LeaseLost: func(j settle.ClaimedJob) {
			l.write(slog.LevelWarn, "lease lost", jobAttrs(j.ID, j.Kind, j.Queue, j.Tenant, j.Attempt)...)
		},
		Abandoned: func(j settle.ClaimedJob, total int) {
			l.write(slog.LevelError, "handler ignores the end of its context",
				append(jobAttrs(j.ID, j.Kind, j.Queue, j.Tenant, j.Attempt), slog.Int("abandoned", total))...)
		},
		StoreDown: func(op string, err error, next time.Duration) {
			l.writeFor(op, slog.LevelError, "store call failed", slog.String("op", op),
				slog.String("error", redact.Error(err)), slog.Duration("next", next))
		},
		Claiming: func(stopped bool, why string) {
			switch {
			case why == whyUnsettled || why == whyAbandoned:
				msg := "claiming goes on"
				if stopped {
					msg = "claiming stopped"
				}
				l.write(slog.LevelWarn, msg, slog.String("reason", why))
			default: // the worker's end is no news
				l.write(slog.LevelDebug, "worker stops", slog.String("reason", why))
			}
		},
		Pruned: func(p settle.Pruned) {
			if p.Removed > 0 {
				l.write(slog.LevelDebug, "ended jobs removed", slog.Int("removed", p.Removed))
			}
		},
	}
}

func jobAttrs(id settle.ID, kind, queue, tenant string, attempt int) []slog.Attr {
	return []slog.Attr{slog.String("job", id.String()), slog.String("kind", kind),
		slog.String("queue", queue), slog.String("tenant", tenant), slog.Int("attempt", attempt)}
}

// settled writes at most one line for a transition.
func (l *lines) settled(s Settled) {
	t := &s.Transition
	level, msg := slog.LevelDebug, "job put off"
	switch {
	case s.Applied == settle.Stale:
		level, msg = slog.LevelInfo, "outcome refused: another was faster"
		if s.By == bySweep {
			level = slog.LevelDebug
		}
	case s.Applied == settle.Rejected:
		level, msg = slog.LevelError, "outcome rejected by the store"
	case t.To == settle.Dead:
		level, msg = slog.LevelWarn, "job died"
	case t.To == settle.Succeeded:
		msg = "job succeeded"
	case t.To == settle.Awaiting:
		msg = "job parked"
	case t.Record != nil && !putOff(t.Record.Reason):
		level, msg = slog.LevelInfo, "attempt failed"
	}
	if !l.logger.Enabled(context.Background(), level) {
		return
	}
	attrs := append(jobAttrs(s.Job, s.Kind, s.Queue, s.Tenant, s.Attempt), slog.String("by", s.By))
	if t.End != "" && t.End != settle.EndOK {
		attrs = append(attrs, slog.String("end", string(t.End)))
	}
	if r := t.Record; r != nil {
		attrs = append(attrs, slog.String("reason", string(r.Reason)), slog.String("error", r.Error))
	}
	if t.To == settle.Pending {
		attrs = append(attrs, slog.Duration("after", t.After))
	}
	if s.Took > 0 {
		attrs = append(attrs, slog.Duration("took", s.Took))
	}
	l.write(level, msg, attrs...)
}

func putOff(r settle.AttemptReason) bool {
	switch r {
	case settle.AttemptShutdown, settle.AttemptSnoozed, settle.AttemptNoNode, settle.AttemptBusy,
		settle.AttemptRateLimited, settle.AttemptLaneHeld:
		return true
	}
	return false
}

// How many lines of one message pass in a window; the others are counted.
const (
	burstWindow = 10 * time.Second
	burstLines  = 20
	outageEvery = time.Minute // of a store that is down: one line in this time
)

// lines writes log lines and summarises storms: after the first lines of a
// window the others are counted, and the next one that is written says how many.
type lines struct {
	logger *slog.Logger

	mu   sync.Mutex
	seen map[string]*burst
}

type burst struct {
	began      time.Time
	n, dropped int
}

func (l *lines) write(level slog.Level, msg string, attrs ...slog.Attr) {
	l.writeFor("", level, msg, attrs...)
}

// writeFor counts what, one of few words, as a message of its own.
func (l *lines) writeFor(what string, level slog.Level, msg string, attrs ...slog.Attr) {
	ctx := context.Background()
	if !l.logger.Enabled(ctx, level) {
		return
	}
	window, limit := burstWindow, burstLines
	if level == slog.LevelError {
		window, limit = outageEvery, 1
	}
	if level > slog.LevelDebug {
		pass, dropped := l.pass(msg+what, time.Now(), window, limit)
		if !pass {
			return
		}
		if dropped > 0 {
			attrs = append(attrs, slog.Int("more", dropped))
		}
	}
	l.logger.LogAttrs(ctx, level, msg, attrs...)
}

// pass says whether a line may be written, and how many were not since the
// last that was.
func (l *lines) pass(msg string, now time.Time, window time.Duration, limit int) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.seen[msg]
	if b == nil {
		b = &burst{began: now}
		l.seen[msg] = b
	}
	if now.Sub(b.began) >= window {
		b.began, b.n = now, 0
	}
	if b.n++; b.n > limit {
		b.dropped++
		return false, 0
	}
	dropped, b.dropped = b.dropped, 0
	return true, dropped
}
