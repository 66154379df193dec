package redisinbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Refusals of Check.
var (
	// ErrEvicts: a full server would throw answers away that nobody has read.
	ErrEvicts = errors.New("its memory policy may throw answers away that nobody has read")
	// ErrTooOld: the server lacks commands of Redis 6.2.
	ErrTooOld = errors.New("the server is older than Redis 6.2")
)

// unknown is what a server does not tell.
const unknown = "unknown"

// Check connects once and asks whether Redis can hold an inbox. ErrTooOld and
// ErrEvicts refuse it; any other error says that Redis did not answer. A server
// that tells nothing of itself is accepted; Status shows "unknown". Run asks
// again each minute, and only warns, since what waits must be read all the same.
func (i *Inbox) Check(ctx context.Context) error {
	client, err := rueidis.NewClient(i.cfg.Client)
	if err != nil {
		return fmt.Errorf("redis inbox: connect: %w", err)
	}
	defer client.Close()
	f, err := ask(ctx, client, i.pace.grace)
	if err != nil {
		return fmt.Errorf("redis inbox: ask the server about itself: %w", err)
	}
	if err := f.fault(); err != nil {
		i.book.server(f)
		return fmt.Errorf("redis inbox: %w", err)
	}
	i.note(f)
	return nil
}

// survey is the Check of a Run.
func (s *session) survey(ctx context.Context) {
	f, err := ask(ctx, s.redis, s.pace.grace)
	if err != nil {
		s.trouble("ask the server about itself", err)
		return
	}
	s.note(f)
}

// note keeps what the servers say of themselves, and logs what is new and wrong.
func (i *Inbox) note(f facts) {
	if w := f.warning(); i.book.server(f) && w != "" {
		i.log.Warn("redis inbox: its server is not fit for it", "why", w)
	}
}

// facts are what the servers say of themselves; of several the worst.
type facts struct{ version, policy, appendOnly string }

// ask asks every server that holds a part of the inbox, or may come to.
func ask(ctx context.Context, client rueidis.Client, limit time.Duration) (all facts, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	heard := false
	for _, node := range client.Nodes() {
		text, nerr := node.Do(ctx, node.B().Info().Build()).ToString()
		switch {
		case nerr == nil || refused(nerr):
			all, heard = worse(all, parse(text)), true
		default:
			err = nerr
		}
	}
	if heard {
		return all, nil
	}
	return all, err
}

// refused reports whether the server is well, and does not tell.
func refused(err error) bool {
	return starts(err, "NOPERM") || starts(err, "unknown command")
}

// parse reads INFO.
func parse(info string) facts {
	f := facts{unknown, unknown, unknown}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			f.version = value
		case "maxmemory_policy":
			f.policy = value
		case "aof_enabled":
			f.appendOnly = map[string]string{"0": "no", "1": "yes"}[value]
		}
	}
	return f
}

func worse(a, b facts) facts {
	if a == (facts{}) {
		return b
	}
	if tooOld(b.version) || b.version == unknown && !tooOld(a.version) {
		a.version = b.version
	}
	if evicts(b.policy) || b.policy == unknown && !evicts(a.policy) {
		a.policy = b.policy
	}
	if b.appendOnly == "no" || a.appendOnly == "yes" {
		a.appendOnly = b.appendOnly
	}
	return a
}

// warning says what a person should change; "" = nothing.
func (f facts) warning() string {
	switch err := f.fault(); {
	case err != nil:
		return err.Error()
	case f.appendOnly == "no":
		return "appendonly is off: a restart of Redis loses the answers that nobody has read"
	}
	return ""
}

func (f facts) fault() error {
	var err error
	if tooOld(f.version) {
		err = fmt.Errorf("%w: it says %s", ErrTooOld, f.version)
	}
	if evicts(f.policy) {
		err = errors.Join(err, fmt.Errorf("%w: maxmemory-policy is %s; redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf", ErrEvicts, f.policy))
	}
	return err
}

// evicts: streams have no lifetime, so only the policies that evict any key are
// a danger.
func evicts(policy string) bool { return strings.HasPrefix(policy, "allkeys-") }

// tooOld reports whether a version is known and below 6.2. Valkey says 7.2.
func tooOld(version string) bool {
	major, rest, ok := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return ok && err1 == nil && err2 == nil && cmp.Or(cmp.Compare(a, 6), cmp.Compare(b, 2)) < 0
}
