package jump

import (
	"testing"
	"time"
)

const renew = 10 * time.Second

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clocks moves a store's clock and a process's own.
type clocks struct {
	d     Detector
	store time.Time
	mono  time.Duration
}

func start() *clocks { return &clocks{d: Detector{Renew: renew}, store: epoch} }

func (c *clocks) look(store, mono time.Duration) May {
	c.store, c.mono = c.store.Add(store), c.mono+mono
	return c.d.Look(c.store, c.mono)
}

func (c *clocks) pass(d time.Duration) May { return c.look(d, d) }

func TestP13FirstLookCountsAsAJumpForLeasesOnly(t *testing.T) {
	c := start()
	if m := c.pass(0); m.EndLeases || !m.Expire {
		t.Errorf("first look: %+v", m)
	}
	if m := c.pass(renew - 1); m.EndLeases {
		t.Error("leases may be ended before one renewal interval")
	}
	if m := c.pass(1); !m.EndLeases {
		t.Error("leases may not be ended after one renewal interval")
	}
}

func TestP13AfterAJumpForwardLeasesWaitOneRenewalAndEndsTenMinutes(t *testing.T) {
	c := start()
	c.pass(0)
	c.pass(time.Hour)
	if m := c.look(30*24*time.Hour, time.Second); m.EndLeases || m.Expire || m.Back != 0 {
		t.Errorf("at the jump: %+v", m)
	}
	if m := c.pass(renew); !m.EndLeases || m.Expire {
		t.Errorf("one renewal later: %+v", m)
	}
	if m := c.pass(Stand - renew - 1); m.Expire {
		t.Error("expires before the new time stood")
	}
	if m := c.pass(1); !m.Expire {
		t.Error("does not expire although the new time stood")
	}
}

func TestP13TheStoreOutOfReachGivesLeasesOneRenewal(t *testing.T) {
	c := start()
	c.pass(0)
	c.pass(time.Minute)
	c.d.Out()
	if m := c.pass(20 * time.Second); m.EndLeases || !m.Expire {
		t.Errorf("after the outage: %+v", m)
	}
	if m := c.pass(renew); !m.EndLeases {
		t.Error("leases may not be ended one renewal after the outage")
	}
}

func TestB060ClockAheadForAMinuteExpiresNothing(t *testing.T) {
	c := start()
	c.pass(0)
	c.pass(time.Hour)
	month := 30 * 24 * time.Hour
	c.look(month, 0)
	for range 12 {
		if m := c.pass(5 * time.Second); m.Expire {
			t.Fatal("expires by a clock that is a month ahead")
		}
	}
	m := c.look(-month, 0)
	if !m.Expire || m.EndLeases {
		t.Errorf("back again: %+v", m)
	}
	if m.Back != time.Minute {
		t.Errorf("pulls what is due within %s, want the minute that was lived", m.Back)
	}
}

func TestB060ClockEightHoursBackPullsWhatWasDue(t *testing.T) {
	c := start()
	c.pass(0)
	for range 24 {
		c.pass(time.Hour)
	}
	if m := c.look(-8*time.Hour, time.Second); m.Back != 8*time.Hour+time.Second {
		t.Errorf("Back = %s, want the whole jump", m.Back)
	}
	if m := c.pass(time.Second); m.Back != 0 {
		t.Error("one jump is told twice")
	}
}

func TestASlowOrSlewedClockIsNoJump(t *testing.T) {
	c := start()
	c.pass(0)
	c.pass(time.Hour)
	for range 100 {
		if m := c.look(9*time.Second, 5*time.Second); !m.EndLeases || !m.Expire {
			t.Fatalf("slewed ahead: %+v", m)
		}
		if m := c.look(time.Second, 5*time.Second); !m.EndLeases || !m.Expire || m.Back != 0 {
			t.Fatalf("slewed back: %+v", m)
		}
	}
}

func TestASmallJumpBackLeavesTheGuardOfALargeJumpForward(t *testing.T) {
	d := Detector{Renew: 10 * time.Second}
	store := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	d.Look(store, 0)
	ahead := store.Add(30 * 24 * time.Hour)
	if d.Look(ahead, time.Second).Expire {
		t.Fatal("a month ahead is trusted at once")
	}
	if d.Look(ahead.Add(-time.Minute), 2*time.Second).Expire {
		t.Error("a minute less than a month ahead is trusted")
	}
	if !d.Look(store.Add(3*time.Second), 3*time.Second).Expire {
		t.Error("a clock that is put right is not trusted")
	}
}
