package redisinbox

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
)

func TestNewNamesEveryFault(t *testing.T) {
	_, err := New(Config{Block: time.Hour, TakeOver: -1, Prefix: "a{b}"})
	for _, want := range []string{"Block is 1h0m0s", "TakeOver is -1ns", `Prefix "a{b}"`, "no address"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %q", err, want)
		}
	}
	in, err := New(Config{Client: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	o := in.cfg.Client
	if !o.DisableRetry || !o.DisableCache || o.ConnWriteTimeout != 3*time.Second || in.cfg.Block != 2*time.Second || in.cfg.TakeOver != 15*time.Second {
		t.Errorf("defaults: %+v", in.cfg)
	}
	expect(t, "status before Run", in.Status().Reading, false)
	expect(t, "a last look before Run", in.LastLook(t.Context()), ErrNotReading)
	expect(t, "readable before Run", in.Readable(0), false)
}

func TestAddressOfAnAttempt(t *testing.T) {
	in, err := New(Config{Client: at("127.0.0.1:1")})
	if err != nil {
		t.Fatal(err)
	}
	job, _ := settle.ParseID("0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a")
	attempt, _ := settle.ParseID("0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f27")
	got, _ := json.Marshal(in.Address(job, attempt))
	want := `{"stream":"settle:{7}:inbox","progress":"settle:{7}:progress","ticket":"0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a.0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f27"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	in, _ = New(Config{Client: at("127.0.0.1:1"), Prefix: "mine"})
	if a := in.Address(job, attempt); a.Stream != "mine:{7}:inbox" {
		t.Errorf("with a prefix: %s", a.Stream)
	}
	seen := map[string]int{}
	for range 1000 {
		seen[in.Address(job, settle.NewID()).Stream]++
	}
	if len(seen) != Shards {
		t.Errorf("new ids fall into %d shards", len(seen))
	}
}

func TestTicketsThatCanBeRead(t *testing.T) {
	job, attempt := settle.NewID(), settle.NewID()
	whole := job.String() + "." + attempt.String()
	for _, ticket := range []string{"", ".", job.String(), job.String() + ".", "." + attempt.String(), whole + ".", whole + "x", " " + whole,
		strings.Replace(whole, ".", ",", 1), settle.ID{}.String() + "." + attempt.String(), job.String() + "." + settle.ID{}.String(), "\x00", strings.Repeat("a.", 1<<20)} {
		if _, ok := read("settle:{1}:inbox", rueidis.XRangeEntry{FieldValues: map[string]string{"ticket": ticket, "doc": "{}"}}, 1); ok {
			t.Errorf("%.50q can be read", ticket)
		}
	}
	e, ok := read("settle:{1}:progress", rueidis.XRangeEntry{FieldValues: map[string]string{"ticket": whole}}, 11)
	if !ok || e.Job != job || e.Attempt != attempt || e.Doc != nil || !e.Progress || !e.Poisoned || e.Deliveries != 11 {
		t.Errorf("got %+v, %v", e, ok)
	}
}

func FuzzTicket(f *testing.F) {
	f.Add(settle.NewID().String() + "." + settle.NewID().String())
	f.Add("a.b")
	f.Fuzz(func(t *testing.T, ticket string) {
		e, ok := read("settle:{1}:inbox", rueidis.XRangeEntry{ID: ticket, FieldValues: map[string]string{"ticket": ticket}}, 1)
		if again := e.Job.String() + "." + e.Attempt.String(); ok && again != strings.ToLower(ticket) {
			t.Errorf("%q is %q", ticket, again)
		}
		if s := strange("k", rueidis.XRangeEntry{ID: ticket, FieldValues: map[string]string{"ticket": ticket}}); strings.ContainsAny(s.Ticket, "\x1b\n\x00") {
			t.Errorf("%q is shown as %q", ticket, s.Ticket)
		}
	})
}

func TestWhatAServerSaysOfItself(t *testing.T) {
	for _, c := range []struct {
		info  string
		facts facts
		fault string
	}{
		{"redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n", facts{"7.0.15", "noeviction", "yes"}, ""},
		{"redis_version:6.2.0\r\nmaxmemory_policy:volatile-lru\r\naof_enabled:0\r\n", facts{"6.2.0", "volatile-lru", "no"}, ""},
		{"redis_version:6.0.16\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n", facts{"6.0.16", "noeviction", "yes"}, "older"},
		{"redis_version:5.0\r\nmaxmemory_policy:allkeys-random\r\n", facts{"5.0", "allkeys-random", unknown}, "CONFIG SET"},
		{"server_name:valkey\r\nredis_version:7.2.4\r\nvalkey_version:9.0.0\r\nmaxmemory_policy:allkeys-lfu\r\naof_enabled:1\r\n", facts{"7.2.4", "allkeys-lfu", "yes"}, "allkeys-lfu"},
		{"", facts{unknown, unknown, unknown}, ""},
		{"redis_version:next\r\n", facts{"next", unknown, unknown}, ""},
	} {
		got := parse(c.info)
		if got != c.facts {
			t.Errorf("%q: %+v, want %+v", c.info, got, c.facts)
		}
		if err := got.fault(); (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: fault %v, want %q", c.info, err, c.fault)
		}
	}
	good, bad, dumb := facts{"7.2.0", "noeviction", "yes"}, facts{"6.0.0", "allkeys-lru", "no"}, facts{unknown, unknown, unknown}
	for _, c := range [][3]facts{{{}, good, good}, {good, bad, bad}, {bad, good, bad}, {bad, dumb, bad}, {good, dumb, dumb}, {dumb, bad, bad}} {
		if got := worse(c[0], c[1]); got != c[2] {
			t.Errorf("of %+v and %+v: %+v", c[0], c[1], got)
		}
	}
}

func TestAppetite(t *testing.T) {
	of := func(n, size int) (list []Entry) {
		for range n {
			list = append(list, Entry{Doc: make([]byte, size)})
		}
		return list
	}
	a := appetite{budget: budget}
	expect(t, "at first, of each of 32", a.count(32), 1)
	for range 5 {
		a.ate(of(20, 100))
	}
	expect(t, "small ones", a.hand, most)
	expect(t, "small ones, of each of 32", a.count(32), 15)
	a.ate(of(4, 1<<20))
	expect(t, "of a megabyte", a.hand, 15)
	a.ate(of(1, 100<<20))
	expect(t, "of 100 megabytes", a.hand, 1)
	a.ate(nil)
	expect(t, "after none", a.hand, least)
}
