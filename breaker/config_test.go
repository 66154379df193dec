package breaker

import (
	"strings"
	"testing"
	"time"
)

func TestZeroConfigHasTheDocumentedDefaults(t *testing.T) {
	c := NewSet(SetConfig{}).config
	if b := c.Breaker; b.Failures != 5 || b.Probes != 1 || b.ProbeLease != time.Minute || b.OpenMin != 5*time.Second || b.OpenMax != 5*time.Minute {
		t.Errorf("%+v", b)
	}
	if c.Nodes != 1000 || c.Idle != 24*time.Hour {
		t.Errorf("%d nodes, idle %v", c.Nodes, c.Idle)
	}
	if c.Breaker.Now == nil || c.Breaker.Rand == nil {
		t.Error("no clock, or no chance")
	}
	if c := (Config{OpenMin: time.Hour}).ready(); c.OpenMax != time.Hour {
		t.Errorf("OpenMax is %v where OpenMin is an hour", c.OpenMax)
	}
	if err := (SetConfig{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	for _, c := range []struct {
		config SetConfig
		want   string // beginnings of the lines
	}{
		{SetConfig{Nodes: 10, Idle: time.Hour, Breaker: Config{Failures: 1, Probes: 1, ProbeLease: 1e6, OpenMin: 1e6, OpenMax: 1e6}}, ""},
		{SetConfig{Breaker: Config{OpenMin: time.Hour}}, ""},
		{SetConfig{Breaker: Config{Failures: -1, Probes: -1, ProbeLease: -1, OpenMin: -1, OpenMax: -2}},
			"Failures is -1|Probes is -1|ProbeLease is -1ns|OpenMin is -1ns|OpenMax is -2ns|OpenMax is -2ns, less"},
		{SetConfig{Breaker: Config{Failures: maxFailures + 1, Probes: maxProbes + 1, ProbeLease: maxSpan + 1}}, "Failures is 1000001|Probes is 10001|ProbeLease is 24h"},
		{SetConfig{Breaker: Config{OpenMin: 1}}, "OpenMin is 1ns: want 1ms to 24h0m0s, or 0 for 5s"},
		{SetConfig{Breaker: Config{OpenMin: time.Minute, OpenMax: time.Second}, Idle: time.Second}, "OpenMax is 1s, less than OpenMin, 1m0s|Idle is 1s: open nodes"},
		{SetConfig{Nodes: -1, Idle: -1}, "Nodes is -1|Idle is -1ns: want|Idle is -1ns: open nodes"},
	} {
		err := c.config.Validate()
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		want := strings.FieldsFunc(c.want, func(r rune) bool { return r == '|' })
		if len(lines) != len(want) {
			t.Errorf("%v, want %q", err, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(lines[i], "breaker: "+want[i]) {
				t.Errorf("%q, want %q…", lines[i], want[i])
			}
		}
	}
}

func TestNewBringsEveryNumberIntoItsBounds(t *testing.T) {
	low := NewSet(SetConfig{Nodes: -5, Idle: -5, Breaker: Config{Failures: -5, Probes: -5, ProbeLease: -5, OpenMin: -5, OpenMax: -5}})
	high := NewSet(SetConfig{Nodes: 1 << 60, Idle: 1 << 60, Breaker: Config{Failures: 1 << 60, Probes: 1 << 60, ProbeLease: 1 << 60, OpenMin: 1 << 60}})
	upside := NewSet(SetConfig{Idle: time.Second, Breaker: Config{OpenMin: time.Hour, OpenMax: time.Minute}})
	for _, s := range []*Set{low, high, upside} {
		if err := s.config.Validate(); err != nil {
			t.Errorf("%+v: %v", s.config, err)
		}
	}
	if b := New(Config{Failures: -1}); b.config.Failures != 1 {
		t.Errorf("Failures is %d", b.config.Failures)
	}
}
