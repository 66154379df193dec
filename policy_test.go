package settle

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestZeroPolicyIsTheDefault(t *testing.T) {
	if got := (Policy{}).WithDefaults(); got != DefaultPolicy() {
		t.Errorf("Policy{} stands for %+v", got)
	}
	if err := DefaultPolicy().Validate(); err != nil {
		t.Error(err)
	}
	if got := DefaultPolicy().bounded(); got != DefaultPolicy() {
		t.Errorf("the default is out of its own bounds: %+v", got)
	}
}

// A field that is missing from the two lists has no default, is not validated
// and is not stored.
func TestEveryFieldOfAPolicyIsListed(t *testing.T) {
	var listed []string
	for _, f := range policyCounts {
		listed = append(listed, f.name)
	}
	for _, f := range policySpans {
		listed = append(listed, f.name)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Policy]()) {
		if f.Name != "OnEnd" && !slices.Contains(listed, f.Name) {
			t.Errorf("%s is in neither policyCounts nor policySpans", f.Name)
		}
	}
}

func TestP1NoNumberOfAPolicyIsUnbounded(t *testing.T) {
	for _, f := range policyCounts {
		for _, n := range []int{-1, math.MinInt, maxCount + 1, math.MaxInt} {
			var p Policy
			*f.of(&p) = n
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), f.name) {
				t.Errorf("%s = %d: %v", f.name, n, err)
			}
			if got := p.bounded(); *f.of(&got) < 1 || *f.of(&got) > maxCount {
				t.Errorf("%s = %d is computed with as %d", f.name, n, *f.of(&got))
			}
		}
	}
	for _, f := range policySpans {
		for _, d := range []time.Duration{-1, math.MinInt64, 1, time.Millisecond - 1, f.max + 1, math.MaxInt64} {
			var p Policy
			*f.of(&p) = d
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), f.name) {
				t.Errorf("%s = %d: %v", f.name, d, err)
			}
			if got := p.bounded(); *f.of(&got) < time.Millisecond || *f.of(&got) > f.max {
				t.Errorf("%s = %d is computed with as %s", f.name, d, *f.of(&got))
			}
		}
	}
}

func TestValidateNamesEveryFaultAtOnce(t *testing.T) {
	err := Policy{Attempts: -1, Timeout: -1, OnEnd: "a\x00b"}.Validate()
	for _, want := range []string{"Attempts", "Timeout", "OnEnd"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
	if err := (Policy{BackoffMin: time.Hour, BackoffMax: time.Minute}).Validate(); err == nil {
		t.Error("a BackoffMax below BackoffMin is accepted")
	}
	if err := (Policy{BackoffMin: time.Hour}).Validate(); err != nil {
		t.Errorf("a BackoffMin above the default BackoffMax alone: %v", err)
	}
}

func TestInvalidPolicyHasNoStoredForm(t *testing.T) {
	if b, err := (Policy{Attempts: -1}).AppendBinary(nil); err == nil {
		t.Errorf("stored as %x", b)
	}
}

func TestStoredFormOfAPolicy(t *testing.T) {
	p := Policy{Attempts: 7, BackoffMin: 1500 * time.Microsecond, Deadline: maxDeadline, OnEnd: "tell"}
	b, err := p.AppendBinary([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	b, ok := bytes.CutPrefix(b, []byte("before"))
	if !ok {
		t.Fatal("AppendBinary does not append")
	}
	var got Policy
	if err := got.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	want := p.WithDefaults()
	want.BackoffMin = time.Millisecond // kept to the millisecond
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for i := range len(b) {
		if err := got.UnmarshalBinary(b[:i]); err == nil {
			t.Errorf("accepted when cut after %d of %d bytes", i, len(b))
		}
	}
	if got != want {
		t.Errorf("a failed read left %+v behind", got)
	}
}

// Older and newer programs share one file: P15.
func TestP15StoredFormOfAnotherVersionIsRead(t *testing.T) {
	form := func(counts, millis []uint64, onEnd string) []byte {
		b := []byte{policyFormat}
		for _, list := range [][]uint64{counts, millis} {
			b = binary.AppendUvarint(b, uint64(len(list)))
			for _, v := range list {
				b = binary.AppendUvarint(b, v)
			}
		}
		return append(binary.AppendUvarint(b, uint64(len(onEnd))), onEnd...)
	}
	d := DefaultPolicy()
	older, newer := d, d
	older.Attempts, older.Timeout, older.OnEnd = 4, time.Minute, "tell"
	newer.Attempts, newer.Crashes, newer.Timeout, newer.OnEnd = 4, 2, time.Minute, "tell"
	for name, c := range map[string]struct {
		form []byte
		want Policy
	}{
		"an older program knew two numbers": {form([]uint64{4}, []uint64{60_000}, "tell"), older},
		"a newer program appended some": {append(form([]uint64{4, 2, 0, 0, 0, 0, 99, 98}, []uint64{60_000, 0, 0, 0, 0, 97}, "tell"),
			"and more"...), newer},
	} {
		var got Policy
		if err := got.UnmarshalBinary(c.form); err != nil || got != c.want {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}

func FuzzPolicy(f *testing.F) {
	b, _ := Policy{OnEnd: "tell"}.AppendBinary(nil)
	f.Add(b)
	f.Add([]byte{policyFormat, 0, 0, 0})
	f.Add([]byte{policyFormat, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0})
	f.Add(bytes.Repeat([]byte{policyFormat, 0xff}, maxStored))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Policy
		if err := p.UnmarshalBinary(b); err != nil {
			if p != (Policy{}) {
				t.Fatalf("a failed read left %+v behind", p)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("read a policy that is invalid: %v", err)
		}
		again, err := p.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var q Policy
		if err := q.UnmarshalBinary(again); err != nil || q != p {
			t.Fatalf("round trip: %v\n%+v\n%+v", err, p, q)
		}
		if len(p.OnEnd) > 0 && !strings.Contains(string(b), p.OnEnd) {
			t.Fatalf("OnEnd %q was not in the input", p.OnEnd)
		}
	})
}

func TestBackoffIsFullJitterOverADoublingCeiling(t *testing.T) {
	p := Policy{BackoffMin: time.Second, BackoffMax: 10 * time.Second}
	for _, c := range []struct {
		charged int
		jitter  float64
		want    time.Duration
	}{
		{1, 0, time.Millisecond}, {1, 0.5, 501 * time.Millisecond},
		{2, 0.5, 1001 * time.Millisecond}, {3, 0.5, 2001 * time.Millisecond},
		{4, 0.5, 4001 * time.Millisecond}, {5, 0.5, 5001 * time.Millisecond}, {50, 0.5, 5001 * time.Millisecond},
		{5, 0.999999999, 10 * time.Second},
	} {
		if got := p.Backoff(c.charged, c.jitter); got != c.want {
			t.Errorf("after %d with jitter %v: %s, want %s", c.charged, c.jitter, got, c.want)
		}
	}
}

// B-061, the part of the policy: whatever numbers meet, a backoff is finite,
// above zero and within its bound, and it is computed at once.
func TestB061BackoffIsClampedWhateverItIsAskedFor(t *testing.T) {
	spans := []time.Duration{0, -1, 1, time.Millisecond, time.Second, 15 * time.Minute, maxTimeout, maxTimeout + 1,
		math.MaxInt64/2 + 1, math.MaxInt64, math.MinInt64}
	for _, least := range spans {
		for _, most := range spans {
			p := Policy{BackoffMin: least, BackoffMax: most}
			for _, charged := range []int{math.MinInt, -1, 0, 1, 2, 63, 64, 65, 1_000_000_000, math.MaxInt} {
				for _, jitter := range []float64{0, 0.5, 1 - 1e-16, 1, -0.1, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)} {
					got := p.Backoff(charged, jitter)
					if got <= 0 || got > p.bounded().BackoffMax || got > maxTimeout {
						t.Fatalf("%+v after %d with jitter %v: %s", p, charged, jitter, got)
					}
				}
			}
		}
	}
}

func TestB061LongestWaitsMeetNoOverflow(t *testing.T) {
	for _, ev := range []Event{
		retryIn(math.MaxInt64), Deferred{Reason: AttemptSnoozed, After: math.MaxInt64},
		Parked{Wait{Ticket: ticketA, Silence: math.MaxInt64}},
	} {
		s := baseSnapshot(Running)
		tr := Decide(s, ev, Policy{}, 0.5)
		checkTransition(t, s, ev, Policy{}, tr)
		if tr.To == Pending {
			t.Errorf("%T: due in %s", ev, tr.After)
		}
	}
}
