package settle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what a job may carry.
const (
	MaxName    = 200     // bytes of a kind, queue or tenant name
	MaxKey     = 500     // bytes of a key
	MaxPayload = 1 << 20 // bytes of an input or output
	// MaxAhead is the latest due time, counted from now.
	MaxAhead = 10 * 365 * 24 * time.Hour
	// MaxHead is the largest head start.
	MaxHead = time.Hour
)

// DefaultQueue is used where no queue is named.
const DefaultQueue = "default"

// None is the input or output of kinds that have none.
type None = struct{}

// Kind ties a stable name to the Go types of a job's input and output.
// Values are made by Define and are immutable.
type Kind[In, Out any] struct {
	name   string
	policy Policy
	stored []byte // policy's stored form, made once
}

// Define declares a kind. It is meant for package variables and panics if the
// name or the policy is invalid.
func Define[In, Out any](name string, p Policy) Kind[In, Out] {
	if err := errors.Join(checkName("kind", name, MaxName), p.Validate()); err != nil {
		panic(fmt.Sprintf("settle.Define: %v", err))
	}
	stored, _ := p.AppendBinary(nil)
	return Kind[In, Out]{name, p.WithDefaults(), stored}
}

// Name returns the kind's name.
func (k Kind[In, Out]) Name() string { return k.name }

// Policy returns the kind's policy, defaults filled in.
func (k Kind[In, Out]) Policy() Policy { return k.policy }

// EnqueueOpts says how one job is enqueued. The zero value means: now, in the
// default queue, without tenant or key.
type EnqueueOpts struct {
	// ID makes a repeated enqueue safe; zero = a new one.
	ID ID
	// Queue is the named stream that the job joins; "" = "default".
	Queue string
	// Tenant is the party for whom the work is done: lanes take turns.
	Tenant string
	// Key is unique over the live jobs of one queue, kind and tenant: an
	// enqueue with a key that is taken returns the job that has it. "" = none.
	Key string
	// Delay until the job is due; Due, if set, wins over it. The due time is
	// kept to the microsecond, rounded up; at most MaxAhead away.
	Delay time.Duration
	Due   time.Time
	// HeadStart places a job that is due at once ahead in its lane as if it
	// had waited this long; at most MaxHead.
	HeadStart time.Duration
	// Deadline replaces the policy's, counted from the due time; 0 = policy's.
	Deadline time.Duration
	// Policy replaces the kind's policy for this job.
	Policy *Policy
}

// New is one job about to be enqueued. It is made by Kind.New, or filled in
// by hand where no Go type stands behind the kind. Stores check it.
type New struct {
	Kind  string
	Input []byte // passed on byte for byte
	// RawPolicy is the policy's stored form; nil = the default policy.
	// EnqueueOpts.Policy wins over it.
	RawPolicy []byte
	// Gated events count for the gate's anchor.
	Gated bool
	EnqueueOpts
	err error
}

// New encodes one input. An input that cannot be encoded is reported by the
// enqueue, so that batches can be written in one expression.
func (k Kind[In, Out]) New(in In, opts ...EnqueueOpts) New {
	n := New{Kind: k.name, RawPolicy: k.stored}
	if len(opts) > 1 {
		n.err = &InvalidError{"options", "at most one EnqueueOpts"}
		return n
	}
	if len(opts) == 1 {
		n.EnqueueOpts = opts[0]
	}
	b, err := json.Marshal(in)
	if err != nil {
		n.err = &InvalidError{"input of " + k.name, err.Error()}
	}
	n.Input = b
	return n
}

// Enqueue stores one job. If the key is taken it returns the id of the job
// that has it.
func (k Kind[In, Out]) Enqueue(ctx context.Context, c *Client, in In, opts ...EnqueueOpts) (ID, error) {
	got, err := c.Enqueue(ctx, k.New(in, opts...))
	if err != nil {
		return ID{}, err
	}
	return got[0].ID, nil
}

// Await waits until the job has ended and returns its output, or an
// [EndError]. It ends early only with the context's error.
func (k Kind[In, Out]) Await(ctx context.Context, c *Client, id ID) (Out, error) {
	var out Out
	j, err := c.Await(ctx, id)
	if err != nil {
		return out, err
	}
	if j.Kind != k.name {
		return out, &InvalidError{"job " + id.String(), fmt.Sprintf("is of kind %s, not %s", j.Kind, k.name)}
	}
	if j.State != Succeeded {
		return out, j.EndError()
	}
	if len(j.Output) > 0 {
		if err := json.Unmarshal(j.Output, &out); err != nil {
			return out, fmt.Errorf("output of job %s: %w", id, err)
		}
	}
	return out, nil
}

// Prepare checks a New, fills in what was left open and returns it with its
// policy decoded. Stores call it before they store anything.
func (n New) Prepare(now time.Time) (New, Policy, error) {
	if n.err != nil {
		return n, Policy{}, n.err
	}
	if n.Queue == "" {
		n.Queue = DefaultQueue
	}
	if n.ID.IsZero() {
		n.ID = NewID()
	}
	pol, err := n.policy()
	if err == nil {
		err = errors.Join(
			checkName("kind", n.Kind, MaxName), checkName("queue", n.Queue, MaxName),
			checkText("tenant", n.Tenant, MaxName), checkText("key", n.Key, MaxKey),
			n.checkPayload(), n.checkTimes(now))
	}
	if err != nil {
		return n, Policy{}, err
	}
	if !n.Due.IsZero() {
		n.Delay = n.Due.Sub(now)
	}
	n.Delay = max(n.Delay, 0)
	switch n.Deadline = n.Deadline.Truncate(time.Millisecond); n.Deadline {
	case 0, pol.Deadline:
		n.Deadline = pol.Deadline
	default: // stored with the job, so that a redrive gives the same time
		pol.Deadline = n.Deadline
		n.RawPolicy, err = pol.AppendBinary(nil)
	}
	return n, pol, err
}

func (n *New) policy() (pol Policy, err error) {
	switch {
	case n.Policy != nil:
		n.RawPolicy, err = n.Policy.AppendBinary(nil)
	case n.RawPolicy == nil:
		n.RawPolicy, err = Policy{}.AppendBinary(nil)
	}
	if err == nil {
		err = pol.UnmarshalBinary(n.RawPolicy)
	}
	if err != nil {
		return pol, &InvalidError{"policy", strings.TrimPrefix(err.Error(), "policy: ")}
	}
	return pol, nil
}

func (n New) checkPayload() error {
	if len(n.Input) > MaxPayload {
		return &InvalidError{"input", fmt.Sprintf("is %d bytes, the limit is %d; store large data elsewhere and enqueue a reference to it", len(n.Input), MaxPayload)}
	}
	return nil
}

func (n New) checkTimes(now time.Time) error {
	var faults []error
	ahead := n.Delay
	if !n.Due.IsZero() {
		ahead = n.Due.Sub(now) // saturates
	}
	// Beyond these years time.Time itself wraps: its largest values look past.
	if y := n.Due.UTC().Year(); ahead > MaxAhead || y < 1 || y > 9999 {
		faults = append(faults, &InvalidError{"due", "is more than 10 years ahead, or no year from 1 to 9999; check the unit"})
	}
	if n.Due.IsZero() && n.Delay < 0 {
		faults = append(faults, &InvalidError{"delay", "is negative: want 0 or more"})
	}
	if n.HeadStart < 0 || n.HeadStart > MaxHead {
		faults = append(faults, &InvalidError{"head start", fmt.Sprintf("is %s: want 0 to %s", n.HeadStart, MaxHead)})
	}
	if n.Deadline < 0 || n.Deadline > maxDeadline || n.Deadline > 0 && n.Deadline < time.Millisecond {
		faults = append(faults, &InvalidError{"deadline", fmt.Sprintf("is %s: want 1ms to %s after due, or 0 for the policy's", n.Deadline, maxDeadline)})
	}
	return errors.Join(faults...)
}

// checkName is checkText for names that must not be empty.
func checkName(what, s string, limit int) error {
	if s == "" {
		return &InvalidError{what, "is empty: want a name"}
	}
	return checkText(what, s, limit)
}

// checkText accepts what every store, terminal and label can carry.
func checkText(what, s string, limit int) error {
	switch {
	case len(s) > limit:
		return &InvalidError{what, fmt.Sprintf("is %d bytes, the limit is %d", len(s), limit)}
	case !utf8.ValidString(s):
		return &InvalidError{what, fmt.Sprintf("%q is not valid UTF-8", clip(s, 60))}
	case strings.ContainsFunc(s, unprintable):
		return &InvalidError{what, fmt.Sprintf("%q has a control or invisible character", clip(s, 60))}
	case s != strings.TrimSpace(s):
		return &InvalidError{what, fmt.Sprintf("%q begins or ends with a space", clip(s, 60))}
	}
	return nil
}

func unprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
