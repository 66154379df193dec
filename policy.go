package settle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Policy is the set of numbers that lead a job to its end. It is stored with
// the job at enqueue, so that sweeps, the command line and the API need no code
// of the kind; a changed policy applies to new jobs. A zero field means its
// default. Durations are kept to the millisecond.
type Policy struct {
	// Attempts is how many charged attempts the job has. 0 = 10.
	Attempts int
	// Crashes is how many of them may end by losing their worker. 0 = 3.
	Crashes int
	// Deferrals is how often the job may be put off without being charged. 0 = 1000.
	Deferrals int
	// Redrives is how often a person may give the job a new chance. 0 = 20.
	Redrives int
	// StepAttempts is how many submitted attempts one remote step has. 0 = 2.
	StepAttempts int
	// StepAttemptsRetryable replaces StepAttempts when the node's latest
	// answer says that the failure is retryable. 0 = 5.
	StepAttemptsRetryable int
	// Timeout is the hard limit of one attempt; renewal never extends it. 0 = 15 min.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the wait before a retry: full jitter over
	// min(BackoffMax, BackoffMin doubled with every charged attempt). 0 = 1 s, 15 min.
	BackoffMin, BackoffMax time.Duration
	// Deadline is how long after its first due time the job has ended at the
	// latest. 0 = 30 days.
	Deadline time.Duration
	// Wait is the ceiling of one wait for a remote result. 0 = 1 h.
	Wait time.Duration
	// OnEnd names a kind. Whoever ends the job inserts, in the same
	// transaction, one job of that kind whose input is an [Ended]. "" = none.
	OnEnd string
}

// DefaultPolicy returns the policy that the zero Policy stands for.
func DefaultPolicy() Policy {
	return Policy{
		Attempts: 10, Crashes: 3, Deferrals: 1000, Redrives: 20,
		StepAttempts: 2, StepAttemptsRetryable: 5,
		Timeout: 15 * time.Minute, BackoffMin: time.Second, BackoffMax: 15 * time.Minute,
		Deadline: 30 * 24 * time.Hour, Wait: time.Hour,
	}
}

// Upper bounds: no setting is unbounded.
const (
	maxCount    = 1_000_000
	maxDeadline = 10 * 365 * 24 * time.Hour
	maxTimeout  = 30 * 24 * time.Hour
)

// WithDefaults returns p with every zero field replaced by its default.
// A BackoffMax below BackoffMin is a fault that only Validate reports.
func (p Policy) WithDefaults() Policy {
	d := DefaultPolicy()
	for _, f := range policyCounts {
		*f.of(&d) = pick(*f.of(&p), *f.of(&d))
	}
	for _, f := range policySpans {
		*f.of(&d) = pick(*f.of(&p), *f.of(&d))
	}
	if p.BackoffMin > d.BackoffMax && p.BackoffMax == 0 {
		d.BackoffMax = p.BackoffMin
	}
	d.OnEnd = p.OnEnd
	return d
}

func pick[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// bounded is WithDefaults for a policy that nobody has validated: every number
// is brought into its bounds, so that whatever is computed from it is finite.
func (p Policy) bounded() Policy {
	p = p.WithDefaults()
	for _, f := range policyCounts {
		*f.of(&p) = min(max(*f.of(&p), 1), maxCount)
	}
	for _, f := range policySpans {
		*f.of(&p) = min(max(*f.of(&p), time.Millisecond), f.max)
	}
	p.BackoffMax = max(p.BackoffMax, p.BackoffMin)
	return p
}

// policyCounts and policySpans name every number once: defaults, validation and
// encoding walk them. Their order is the stored format: only append.
var policyCounts = []struct {
	name string
	of   func(*Policy) *int
}{
	{"Attempts", func(p *Policy) *int { return &p.Attempts }},
	{"Crashes", func(p *Policy) *int { return &p.Crashes }},
	{"Deferrals", func(p *Policy) *int { return &p.Deferrals }},
	{"Redrives", func(p *Policy) *int { return &p.Redrives }},
	{"StepAttempts", func(p *Policy) *int { return &p.StepAttempts }},
	{"StepAttemptsRetryable", func(p *Policy) *int { return &p.StepAttemptsRetryable }},
}

var policySpans = []struct {
	name string
	of   func(*Policy) *time.Duration
	max  time.Duration
}{
	{"Timeout", func(p *Policy) *time.Duration { return &p.Timeout }, maxTimeout},
	{"BackoffMin", func(p *Policy) *time.Duration { return &p.BackoffMin }, maxTimeout},
	{"BackoffMax", func(p *Policy) *time.Duration { return &p.BackoffMax }, maxTimeout},
	{"Deadline", func(p *Policy) *time.Duration { return &p.Deadline }, maxDeadline},
	{"Wait", func(p *Policy) *time.Duration { return &p.Wait }, maxTimeout},
}

// Validate reports every number that is negative or beyond its bound.
func (p Policy) Validate() error {
	var faults []error
	for _, f := range policyCounts {
		if n := *f.of(&p); n < 0 || n > maxCount {
			faults = append(faults, fmt.Errorf("policy: %s is %d: want 1 to %d, or 0 for the default", f.name, n, maxCount))
		}
	}
	for _, f := range policySpans {
		d := *f.of(&p)
		if d < 0 || d > f.max {
			faults = append(faults, fmt.Errorf("policy: %s is %s: want up to %s, or 0 for the default", f.name, d, f.max))
		} else if d > 0 && d < time.Millisecond {
			faults = append(faults, fmt.Errorf("policy: %s is %s: the smallest is 1ms", f.name, d))
		}
	}
	if d := p.WithDefaults(); d.BackoffMax < d.BackoffMin {
		faults = append(faults, fmt.Errorf("policy: BackoffMax %s is below BackoffMin %s", d.BackoffMax, d.BackoffMin))
	}
	if p.OnEnd != "" {
		faults = append(faults, checkName("policy: OnEnd", p.OnEnd, MaxName))
	}
	return errors.Join(faults...)
}

const (
	policyFormat = 1
	maxStored    = 4096 // bytes of a stored form, with room for numbers to come
)

var errPolicyForm = errors.New("policy: the stored form is damaged or of an unknown format")

// AppendBinary appends the stored form of p, defaults filled in: one format
// byte, the counts and the durations in milliseconds (each list: its length and
// its varints), then OnEnd. A policy that Validate refuses has no stored form.
func (p Policy) AppendBinary(b []byte) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return b, err
	}
	p = p.WithDefaults()
	b = binary.AppendUvarint(append(b, policyFormat), uint64(len(policyCounts)))
	for _, f := range policyCounts {
		b = binary.AppendUvarint(b, uint64(*f.of(&p)))
	}
	b = binary.AppendUvarint(b, uint64(len(policySpans)))
	for _, f := range policySpans {
		b = binary.AppendUvarint(b, uint64(f.of(&p).Milliseconds()))
	}
	b = binary.AppendUvarint(b, uint64(len(p.OnEnd)))
	return append(b, p.OnEnd...), nil
}

// UnmarshalBinary reads the stored form. Numbers that a newer program appended
// are ignored, ones that an older program did not know get their default, and
// ones beyond a bound are brought to it.
func (p *Policy) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || len(b) > maxStored || b[0] != policyFormat {
		return errPolicyForm
	}
	r := storedForm{b: b[1:]}
	var out Policy
	for i, v := range r.list() {
		if i < len(policyCounts) {
			*policyCounts[i].of(&out) = int(min(v, maxCount))
		}
	}
	for i, v := range r.list() {
		if i < len(policySpans) {
			f := policySpans[i]
			*f.of(&out) = time.Duration(min(v, uint64(f.max.Milliseconds()))) * time.Millisecond
		}
	}
	n := r.next()
	if r.cut || n > uint64(len(r.b)) {
		return errPolicyForm
	}
	out.OnEnd = string(r.b[:n])
	if out.OnEnd != "" && checkName("policy: OnEnd", out.OnEnd, MaxName) != nil {
		return errPolicyForm
	}
	*p = out.bounded()
	return nil
}

// storedForm walks the varints of a stored policy.
type storedForm struct {
	b   []byte
	cut bool // it ended before its time
}

func (r *storedForm) next() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.cut = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// list yields the numbers of one list with their places.
func (r *storedForm) list() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		n := r.next()
		for i := 0; uint64(i) < n; i++ {
			if v := r.next(); r.cut || !yield(i, v) {
				return
			}
		}
	}
}

// stepBudget is how many submitted attempts a step has, given what the node's
// latest answer said.
func (p Policy) stepBudget(retryable bool) int {
	if retryable {
		return max(p.StepAttempts, p.StepAttemptsRetryable)
	}
	return p.StepAttempts
}

// Backoff returns the wait before the next attempt after the given number of
// charged attempts (1 = the first has failed). jitter is uniform in [0, 1).
// The answer is above zero and at most BackoffMax.
//
// Source: "Exponential Backoff And Jitter", AWS Architecture Blog (full jitter).
func (p Policy) Backoff(charged int, jitter float64) time.Duration {
	p = p.bounded()
	ceiling := p.BackoffMin
	for i := 1; i < charged && ceiling < p.BackoffMax; i++ {
		ceiling *= 2 // at most twice maxTimeout: no overflow
	}
	ceiling = min(ceiling, p.BackoffMax)
	if !(jitter >= 0 && jitter < 1) { // also NaN
		jitter = 0.5
	}
	return min(time.Duration(float64(ceiling)*jitter)+time.Millisecond, ceiling)
}
