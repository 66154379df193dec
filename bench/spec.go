package main

import (
	"encoding/json"
	"strings"
	"time"
)

// job is what every queue carries: about 190 bytes of JSON, decoded by each
// handler.
type job struct {
	T      int64  `json:"t"` // nanoseconds since 1970, just before the enqueue call
	Tenant string `json:"tenant"`
	Pad    string `json:"pad"`
}

var pad = strings.Repeat("x", 140)

func newJob(tenant string) job {
	return job{T: time.Now().UnixNano(), Tenant: tenant, Pad: pad}
}

func newJobs(n int, tenant string) []job {
	js := make([]job, n)
	for i := range js {
		js[i] = newJob(tenant)
	}
	return js
}

// bytes is the payload as it is stored.
func (j job) bytes() []byte {
	b, err := json.Marshal(j)
	if err != nil {
		panic(err) // three plain fields
	}
	return b
}

// The synchronous levels at which everything is measured.
const (
	full   = "FULL"
	normal = "NORMAL"
)

// spec is one measurement, made by a child process of its own.
type spec struct {
	Round int    `json:"round"`
	Row   string `json:"row"` // as the report calls it
	Level string `json:"level"`
	Queue string `json:"queue"`

	Do       string        `json:"do"`                  // which of measures
	Backlog  int           `json:"backlog,omitempty"`   // jobs that wait already
	Kept     int           `json:"kept,omitempty"`      // ended jobs that are kept
	Window   time.Duration `json:"window,omitempty"`    // it ends then at the latest
	Callers  int           `json:"callers,omitempty"`   // goroutines that enqueue
	Batch    int           `json:"batch,omitempty"`     // jobs of one enqueue call
	InFlight int           `json:"in_flight,omitempty"` // producers pause above; 0 = never
	Rate     int           `json:"rate,omitempty"`      // answers a second
	Slots    int           `json:"slots,omitempty"`     // of settle's worker; 0 = its default
	Shipped  bool          `json:"shipped,omitempty"`   // settle's lease and sweep as shipped
	Path     string        `json:"-"`                   // the database file
}

// line is one measurement with its outcome, as it is kept.
type line struct {
	spec
	Values     map[string]float64 `json:"values,omitempty"`
	Durability string             `json:"durability,omitempty"` // read back from the queue's own connection
	Fault      string             `json:"fault,omitempty"`
}

// Names of values.
const (
	perSecond = "per second" // jobs enqueued, or jobs ended, in a second
	cpuPerJob = "µs of CPU per job"
	rss       = "MB of memory" // largest resident size of the process
	flushes   = "disk flushes per job"
	enqueued  = "enqueued per second"
	p50, p99  = "ms p50", "ms p99"
	longest   = "ms max"
	wait      = "ms until B starts"
	overdue   = "B did not start" // 1 = wait is only a lower bound
	burst     = "ms until all are settled"
	idleCPU   = "% of a core, idle"
	gos       = "goroutines"
	sockets   = "connections"
	first     = "s until the first runs again"
	last      = "s until the last runs again"
	bound     = "s allowed"
)
