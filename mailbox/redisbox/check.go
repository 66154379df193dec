package redisbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settle-go/settle/internal/redact"
)

// ErrEvicts: the server's memory policy lets it remove answers and budgets.
var ErrEvicts = errors.New("the server may evict answers and budgets")

// ErrTooOld: the server is older than Redis 6.2.
var ErrTooOld = errors.New("the server is older than Redis 6.2")

// Check asks every node for its version and memory policy.
func (s *source) Check(ctx context.Context) (note string, err error) {
	told, err := s.info(ctx)
	if err != nil {
		return "the memory policy is not known: " + redact.Error(err), nil
	}
	switch err := judgeServers(told); {
	case errors.Is(err, ErrEvicts) && s.config.AllowEviction:
		return err.Error(), nil
	default:
		return "", err
	}
}

// info returns what every node says of itself.
func (s *source) info(ctx context.Context) (told []string, err error) {
	client, err := s.client(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	for _, node := range client.Nodes() {
		text, nerr := node.Do(ctx, node.B().Info().Build()).ToString()
		if err = errors.Join(err, nerr); nerr == nil {
			told = append(told, text)
		}
	}
	if len(told) > 0 && judgeServers(told) != nil {
		err = nil // one bad node is enough to know
	}
	return told, err
}

// judgeServers says what is wrong with servers, by their INFO.
func judgeServers(told []string) error {
	for _, text := range told {
		if version := field(text, "redis_version"); old(version) {
			return fmt.Errorf("redisbox: %w: version %s", ErrTooOld, redact.Name(version))
		}
		if policy := field(text, "maxmemory_policy"); policy != "" && policy != "noeviction" {
			return fmt.Errorf("redisbox: %w: maxmemory-policy is %s. Run \"redis-cli CONFIG SET maxmemory-policy noeviction\", or set Config.AllowEviction", ErrEvicts, redact.Name(policy))
		}
	}
	return nil
}

// field reads a line "name:value".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// old reports whether a version is below 6.2. One that is no version is not.
func old(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA == nil && errB == nil && (a < 6 || a == 6 && b < 2)
}

// policy remembers for a while that Check has not refused, for budgets.
type policy struct {
	mu    sync.Mutex
	until time.Time
}

// checked is Check, asked once in a while.
func (s *source) checked(ctx context.Context) error {
	p := &s.policy
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.config.AllowEviction || time.Now().Before(p.until) {
		return nil
	}
	note, err := s.Check(ctx)
	if err == nil && note == "" {
		p.until = time.Now().Add(time.Minute)
	}
	return err
}
