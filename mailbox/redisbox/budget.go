package redisbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/mailbox"
)

// BudgetConfig says how long a budget remembers.
type BudgetConfig struct {
	// Prefix begins the name of every key. "" = "settle:budget:".
	Prefix string
	// Ceiling is the longest ceiling of any wait. 0 = that of the box's Config,
	// which is right unless AwaitOpts say more.
	Ceiling time.Duration
	// LongestBackoff and LongestDeferral are the longest pauses that your program
	// makes before an attempt that follows a failure, or after a "not now". 0 =
	// none; up to 30 days.
	LongestBackoff, LongestDeferral time.Duration
	// Expiry is how long the attempts of a job's step are remembered after the
	// latest of them. With less than the larger of 2 × Ceiling and of Ceiling +
	// LongestBackoff + LongestDeferral a budget would be forgotten while an
	// attempt runs, and the job be tried again for ever: that is refused. 0 = that
	// least; up to 1 year.
	Expiry time.Duration
}

// Budget counts the attempts of one step of one job, in Redis, so that every
// process counts the same. It counts distinct attempts: what is repeated, by you
// or by a network, counts once. What is spent stays spent until Expiry has passed
// without an attempt, and then begins anew. It is safe for concurrent use.
type Budget struct {
	source *source
	prefix string
	expiry time.Duration
}

// add counts an attempt and gives the set its expiry, in one step: also a set
// that has none, however it came to that.
var add = rueidis.NewLuaScriptNoSha(`redis.call('SADD', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('SCARD', KEYS[1])`)

const (
	maxPause  = 30 * 24 * time.Hour
	maxExpiry = 365 * 24 * time.Hour
	maxName   = 1 << 10 // bytes
)

// Budget returns a budget in the box's Redis. It asks nobody. The error names
// what is wrong with c.
func (b *Box) Budget(c BudgetConfig) (*Budget, error) {
	if c.Prefix == "" {
		c.Prefix = "settle:budget:"
	}
	ceiling := cmp.Or(c.Ceiling, cmp.Or(b.source.config.Wait.Ceiling, mailbox.DefaultCeiling))
	var faults []error
	for _, d := range []time.Duration{ceiling, c.LongestBackoff, c.LongestDeferral} {
		if d < 0 || d > maxPause {
			faults = append(faults, fmt.Errorf("redisbox: BudgetConfig has a time of %s: want 0 to %s", d, maxPause))
		}
	}
	least := max(2*ceiling, ceiling+c.LongestBackoff+c.LongestDeferral)
	expiry := cmp.Or(c.Expiry, least)
	switch {
	case expiry < least:
		faults = append(faults, fmt.Errorf("redisbox: BudgetConfig.Expiry (%s) is shorter than %s: with Ceiling %s, LongestBackoff %s and LongestDeferral %s the budget could be forgotten between two attempts",
			expiry, least, ceiling, c.LongestBackoff, c.LongestDeferral))
	case expiry > maxExpiry:
		faults = append(faults, fmt.Errorf("redisbox: BudgetConfig.Expiry is %s: want up to %s", expiry, maxExpiry))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Budget{b.source, c.Prefix, expiry}, nil
}

// Add counts an attempt and returns how many there are now, this one included.
// attempt is the id of the submission, random and new for each. Count it before
// the attempt is made, and make none that is beyond what you allow. step is what
// is computed, so that a pre-step spends a budget of its own.
//
// With an error it may be counted or not, so call Add again with the same id
// before you go on. [ErrEvicts] is lasting: such a server forgets budgets.
func (b *Budget) Add(ctx context.Context, job, step, attempt string) (attempts int, err error) {
	for _, s := range []string{job, step, attempt} {
		if s == "" || len(s) > maxName {
			return 0, fmt.Errorf("redisbox: a job, step or attempt of %d bytes: want 1 to %d", len(s), maxName)
		}
	}
	if err := b.source.checked(ctx); err != nil {
		return 0, err
	}
	client, err := b.source.client(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := b.source.within(ctx)
	defer cancel()
	n, err := add.Exec(ctx, client, []string{b.key(job, step)}, []string{attempt, strconv.FormatInt(b.expiry.Milliseconds(), 10)}).AsInt64()
	if err != nil {
		return 0, fmt.Errorf("redisbox: count an attempt: %w", err)
	}
	return int(n), nil
}

// key keeps job "a:b", step "c" and job "a", step "b:c" apart.
func (b *Budget) key(job, step string) string {
	return b.prefix + strconv.Itoa(len(job)) + ":" + job + ":" + step
}
