package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/settle-go/settle"
)

// Config says how a worker works. The zero Config is a good one. Faults are
// reported by Run, all at once.
type Config struct {
	// Queue is the queue that the worker serves. "" = "default".
	Queue string
	// Slots is how many handlers run at once. 0 = 64.
	Slots int
	// Lease is how long a claimed job stays the worker's without a sign of
	// life; all leases are renewed together, every third of it. 0 = 30 s, at
	// least 1 s.
	Lease time.Duration
	// Poll is the longest pause between two looks for due work; nudges of the
	// store and due times that are known make it shorter. 0 = 1 s.
	Poll time.Duration
	// Sweep is the pause between two looks for jobs whose lease, wait or
	// deadline has passed. 0 = 5 s.
	Sweep time.Duration
	// Drain is how long running handlers may go on after Run's context has
	// ended. Then their contexts end and the jobs are handed back. 0 = 25 s.
	Drain time.Duration
	// Keep is how long ended jobs are kept; the zero Keep is the default.
	Keep settle.Keep
	// UntilIdle makes Run end by itself, without error, once nothing is
	// claimable, running or buffered: for cron. Work that is due later, parked
	// or held does not keep it up. A store that refuses (damaged, read-only)
	// ends such a Run with an error at once; one that fails all claims,
	// outcomes or sweeps for a minute does so then.
	UntilIdle bool
	// Limit, if above zero, makes Run end after this many attempts.
	Limit int
	// Logger gets one line per transition that is worth one, storms
	// summarised. nil = slog.Default(); slog.New(slog.DiscardHandler) = none.
	Logger *slog.Logger
	// Events are told what happens.
	Events Events
}

// withDefaults fills the zero fields in and reports every fault.
func (c Config) withDefaults() (Config, error) {
	if c.Queue == "" {
		c.Queue = settle.DefaultQueue
	}
	if c.Slots == 0 {
		c.Slots = 64
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Lease, 30 * time.Second}, {&c.Poll, time.Second},
		{&c.Sweep, settle.SweepInterval}, {&c.Drain, 25 * time.Second},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	c.Keep = c.Keep.WithDefaults()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, c.validate()
}

// maxSlots bounds the goroutines of one worker.
const maxSlots = 100_000

func (c Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("worker: "+format, args...)) }
	if len(c.Queue) > settle.MaxName {
		fault("Queue is %d bytes: want up to %d", len(c.Queue), settle.MaxName)
	}
	if c.Slots < 1 || c.Slots > maxSlots {
		fault("Slots is %d: want 1 to %d, or 0 for 64", c.Slots, maxSlots)
	}
	if c.Limit < 0 {
		fault("Limit is %d: want 0 (none) or more", c.Limit)
	}
	for _, f := range []struct {
		name       string
		is, lo, hi time.Duration
	}{
		{"Lease", c.Lease, time.Second, time.Hour},
		{"Poll", c.Poll, time.Millisecond, time.Hour},
		{"Sweep", c.Sweep, 10 * time.Millisecond, time.Hour},
		{"Drain", c.Drain, 0, 24 * time.Hour},
		{"Keep.Succeeded", c.Keep.Succeeded, 0, 1 << 62},
		{"Keep.Cancelled", c.Keep.Cancelled, 0, 1 << 62},
		{"Keep.Dead", c.Keep.Dead, 0, 1 << 62},
	} {
		if f.is < f.lo || f.is > f.hi {
			fault("%s is %s: want %s to %s", f.name, f.is, f.lo, f.hi)
		}
	}
	return errors.Join(faults...)
}
