package redisbox

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// FuzzInfo: whatever servers say of themselves, it is a refusal of a known kind
// with safe text, or none.
func FuzzInfo(f *testing.F) {
	for _, s := range []string{"", "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n", "redis_version:6.0.9\r\n", "maxmemory_policy:allkeys-lru",
		"redis_version:9.x", "redis_version:", "maxmemory_policy:\x1b[2J\r\n", "# Memory\r\nmaxmemory_policy: volatile-ttl "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, info string) {
		err := judgeServers([]string{info})
		policy := field(info, "maxmemory_policy")
		switch {
		case err == nil && policy != "" && policy != "noeviction":
			t.Errorf("%q is let through", policy)
		case err != nil && !errors.Is(err, ErrEvicts) && !errors.Is(err, ErrTooOld):
			t.Errorf("%v", err)
		case err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl):
			t.Errorf("%q", err)
		}
	})
}

func TestVersionsAreCompared(t *testing.T) {
	for version, want := range map[string]bool{"6.0.16": true, "5.0": true, "2.8.19": true, "6.1": true,
		"6.2.0": false, "6.2": false, "7.0.15": false, "10.0": false, "255.255.255": false, "": false, "unknown": false, "7": false} {
		if old(version) != want {
			t.Errorf("%q", version)
		}
	}
}

// FuzzBudgetKey: no two pairs of job and step share a budget.
func FuzzBudgetKey(f *testing.F) {
	f.Add("a:b", "c", "a", "b:c")
	f.Add("1:a", "b", "1", "a:b")
	f.Fuzz(func(t *testing.T, job, step, job2, step2 string) {
		b := &Budget{prefix: "p:"}
		if (job != job2 || step != step2) && b.key(job, step) == b.key(job2, step2) {
			t.Errorf("%q %q and %q %q share %q", job, step, job2, step2, b.key(job, step))
		}
	})
}
