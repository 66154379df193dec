package worker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

// outageLimit is how long the store may refuse the claims, outcomes or sweeps
// of a worker that is to end when idle, before it gives up: it would never
// become idle.
const outageLimit = time.Minute

// outage notes since when each kind of call has failed without a success.
type outage struct {
	mu    sync.Mutex
	since map[string]time.Duration
	gone  error // why the worker gives up
}

// up notes that a call succeeded.
func (o *outage) up(op string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, op)
}

// failed notes that a call failed, and returns why the worker is to give up, if
// it is, the first time that it is.
func (o *outage) failed(op string, err error, now time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone != nil {
		return nil
	}
	if o.since == nil {
		o.since = map[string]time.Duration{}
	}
	if _, is := o.since[op]; !is {
		o.since[op] = now
	}
	var refused *settle.RefusedError
	switch {
	case errors.As(err, &refused): // damaged, or not to be written: asking again does not help
		o.gone = err
	case now-o.since[op] >= outageLimit && (op == "claim" || op == "settle" || op == "sweep"):
		o.gone = fmt.Errorf("the store has failed for a minute: %w", err)
	}
	return o.gone
}

// why is why the worker gave up; nil = it has not.
func (o *outage) why() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// callFailed tells of a call that failed and, in a life that is to end when
// idle, ends it where waiting is of no use.
func (l *life) callFailed(op string, err error, next time.Duration) {
	l.storeDown(op, err, next)
	if !l.UntilIdle {
		return
	}
	if err := l.outage.failed(op, err, l.now()); err != nil {
		l.endHalt(err)
	}
}
