package breaker

import (
	"errors"
	"slices"
	"testing"
	"time"
)

const trip = "x? x=failure y? y=failure z? z=failure [open] "

func TestP11Rules(t *testing.T) {
	for _, c := range []struct {
		name   string
		probes int
		script string
	}{
		{"a new breaker is closed", 1, "[closed 0] a? b? c?"},
		{"failures in a row open it", 1, "a? a=failure [closed 1] b? b=failure [closed 2] c? c=failure [open]"},
		{"failures of calls at the same time are a row too", 1, "a? b? c? d? a=failure b=failure c=failure [open] d=failure~ [open]"},
		{"a success ends the row", 1, "a? a=failure b? b=failure c? c=success [closed 0] d? d=failure e? e=failure [closed 2]"},
		{"time does not end the row", 1, "a? a=failure 24h b? b=failure 24h c? 24h c=failure [open]"},
		{"slow calls open it too", 1, "a? b? c? 24h a=failure b=failure c=failure [open]"},
		{"an answer leaves the row alone", 1, "a? a=failure b? b=failure c? c=answered [closed 2] d? d=failure [open]"},
		{"neutral leaves the row alone", 1, "a? a=failure b? b=failure c? c=neutral [closed 2] d? d=failure [open]"},
		{"what is no outcome is neutral", 1, "a? a=failure b? b=succeeded [closed 1] c? c= [closed 1]"},

		{"open refuses until its time is over", 1, trip + "a! 9999ms a! [open] 1ms [half-open 0] a?"},
		{"half-open admits one probe", 1, trip + "10s a? b! [half-open 1]"},
		{"half-open admits as many probes as configured", 3, trip + "10s a? b? c? d! [half-open 3]"},
		{"the place of a probe that is settled is free", 2, trip + "10s a? b? c! a=neutral c? d!"},
		{"a probe's success closes it", 1, trip + "10s a? a=success [closed 0]"},
		{"a probe's answer closes it", 1, trip + "10s a? a=answered [closed 0]"},
		{"a probe's failure opens it again", 1, trip + "10s a? a=failure [open] b!"},
		{"a neutral probe leaves it half-open", 1, trip + "10s a? a=neutral [half-open 0] b? b=success [closed]"},
		{"the first probe that is decided decides", 3, trip + "10s a? b? c? b=success [closed] a=failure~ c=failure~ [closed 0]"},
		{"the first probe that is decided decides, badly", 3, trip + "10s a? b? c? b=failure [open] a=success~ c=answered~ [open]"},
		{"failures start at zero when it closes", 1, "a? b? c? d? a=failure b=failure c=failure 10s e? e=answered f? f=failure g? g=failure [closed 2]"},

		{"a hung probe gives up its place when its lease is over", 1, trip + "10s a? 29999ms b! 1ms [half-open 0] b? c!"},
		{"a hung probe still has a voice: success", 1, trip + "10s a? 30s b? a=success [closed] b=failure~ [closed 0]"},
		{"a hung probe still has a voice: failure", 1, trip + "10s a? 30s b? a=failure [open] b=success~ [open]"},
		{"a hung probe does not free another's place", 1, trip + "10s a? 30s b? a=neutral c! [half-open 1]"},

		{"from before: a success does not close", 1, "a? " + trip + "10s a=success~ [half-open 0] b? a=success~ [half-open 1]"},
		{"from before: an answer does not close", 1, "a? " + trip + "10s b? a=answered~ [half-open 1] b=success [closed]"},
		{"from before: a failure does not open", 1, "a? " + trip + "10s b? a=failure~ [half-open 1] b=success [closed]"},
		{"from before: a failure does not count after the closing", 1, "a? " + trip + "10s b? b=success a=failure~ [closed 0]"},
		{"from before: a success does not end a row", 1, "a? " + trip + "10s b? b=success c? c=failure a=success~ [closed 1]"},
		{"from an earlier half-open", 2, trip + "10s a? b? a=failure 20s [half-open 0] c? b=success~ b=failure~ [half-open 1]"},
		{"a token is settled once", 1, "a? a=failure a=failure~ a=success~ [closed 1]"},
		{"a probe is settled once", 2, trip + "10s a? b? a=neutral a=failure~ a=success~ c? d! [half-open 2]"},

		{"a delivered failure counts", 1, "a? a=answered a>failure [closed 1]"},
		{"accepting does not hide that nothing good is delivered", 1, "a? a=answered a>failure b? b=answered b>failure c? c=answered c>failure [open]"},
		{"a delivered success ends the row", 1, "a? a=answered b? b=failure a>success [closed 0]"},
		{"a delivered answer leaves the row alone", 1, "a? a=answered b? b=failure a>answered [closed 1]"},
		{"a delivery that says nothing", 1, "a? a=answered b? b=failure a>neutral [closed 1]"},
		{"a delivery from before an opening", 1, "a? a=answered " + trip + "a>success~ [open] 10s a>success~ a>failure~ [half-open 0]"},
		{"a delivery from before an opening, closed again", 1, "a? a=answered " + trip + "10s b? b=answered a>failure~ [closed 0]"},
		{"a probe's delivery after its submission has closed", 1, trip + "10s a? a=answered [closed] a>failure~ [closed 0]"},
		{"a probe's delivery before its submission has ended", 1, trip + "10s a? a>success [closed] a=failure~ [closed 0]"},
		{"a probe's delivery decides when its submission did not", 1, trip + "10s a? a=neutral a>failure [open]"},
		{"elsewhere: a failure is one failure", 1, "else>failure [closed 1] else>failure none>failure [open]"},
		{"elsewhere: an answer changes nothing", 1, "a? a=failure else>answered~ [closed 1]"},
		{"elsewhere: good news does not close a half-open", 1, trip + "else>success~ 10s else>answered~ else>success~ [half-open 0]"},
		{"elsewhere: a success changes nothing", 1, "a? a=failure else>success~ [closed 1]"},
		{"elsewhere: silence of a deaf inbox", 1, "else>neutral~ [closed 0]"},
		{"elsewhere: a failure does not decide a half-open", 1, trip + "else>failure~ 10s a? else>failure~ [half-open 1] a=success [closed]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			newBench(Config{Probes: c.probes}).play(t, c.script)
		})
	}
}

func TestP11OpenTimesGrowAndAreCapped(t *testing.T) {
	b := newBench(Config{Failures: 1})
	var times []time.Duration
	open := func(o Outcome) {
		b.pass(t).Settle(o)
		if s := b.Status(); s.State == Open {
			times = append(times, s.Next.Sub(b.now))
			b.now = s.Next
		}
	}
	for range 5 {
		open(Failure)
	}
	open(Answered) // healthy, and has delivered nothing yet
	open(Failure)
	open(Success) // as a probe
	open(Failure)
	open(Failure)
	open(Answered)
	open(Success) // while closed
	open(Failure)
	s := time.Second
	if want := []time.Duration{10 * s, 20 * s, 20 * s, 20 * s, 20 * s, 20 * s, 10 * s, 20 * s, 10 * s}; !slices.Equal(times, want) {
		t.Errorf("open for %v, want %v", times, want)
	}
}

func TestOpenTimesAreJitteredWithinBounds(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		least, most time.Duration
		n           int
		from, to    time.Duration
	}{
		{5 * s, 300 * s, 1, 5 * s, 10 * s},
		{5 * s, 300 * s, 2, 10 * s, 20 * s},
		{5 * s, 300 * s, 5, 80 * s, 160 * s},
		{5 * s, 300 * s, 6, 150 * s, 300 * s},
		{5 * s, 300 * s, 1_000_000, 150 * s, 300 * s},
		{5 * s, 5 * s, 3, 5 * s, 5 * s},
		{5 * s, 6 * s, 1, 5 * s, 6 * s},
		{1 << 62, 1<<63 - 1, 4, 1 << 62, 1<<63 - 1},
	} {
		if got := openFor(c.least, c.most, c.n, 0); got != c.from {
			t.Errorf("%+v: at least %v", c, got)
		}
		const luckiest = 1 - 1.0/(1<<53)
		if got := openFor(c.least, c.most, c.n, luckiest); got > c.to || got < c.to-c.to/1_000_000 {
			t.Errorf("%+v: at most %v", c, got)
		}
		for _, odd := range []float64{-1, 2, 1e300} {
			if got := openFor(c.least, c.most, c.n, odd); got < c.least || got > c.most {
				t.Errorf("%+v: %v by a Rand that gives %v", c, got, odd)
			}
		}
	}
}

func TestRefusalSaysWhenTheNextProbeCanBeMade(t *testing.T) {
	b := newBench(Config{Node: "a", Probes: 2})
	refusal := func(state State, wait time.Duration, text string) {
		t.Helper()
		tok, err := b.Admit()
		var open *OpenError
		if tok != nil || !errors.Is(err, ErrOpen) || !errors.As(err, &open) {
			t.Fatalf("%v, %v", tok, err)
		}
		if open.Node != "a" || open.State != state || open.Wait != wait || !open.Next.Equal(b.now.Add(wait)) || open.Error() != text {
			t.Errorf("%+v: %v", *open, open)
		}
		if got := b.Status().Next; !got.Equal(open.Next) {
			t.Errorf("the status says %v, the refusal %v", got, open.Next)
		}
	}
	for range 3 {
		b.pass(t).Settle(Failure)
	}
	b.now = b.now.Add(4 * time.Second)
	refusal(Open, 6*time.Second, `the breaker of node "a" is open, next probe in 6s`)
	b.now = b.now.Add(6 * time.Second)
	b.pass(t)
	b.now = b.now.Add(5 * time.Second)
	b.pass(t)
	refusal(HalfOpen, 25*time.Second, `the breaker of node "a" is half-open, next probe in 25s`)
}

func TestStatusTellsWhereTheBreakerStands(t *testing.T) {
	b := newBench(Config{Node: "a"})
	at := func(d time.Duration) time.Time { return start.Add(d * time.Second) }
	check := func(want Status) {
		t.Helper()
		want.Node = "a"
		if got := b.Status(); got != want || b.State() != want.State {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	check(Status{State: Closed, Since: start, Generation: 1})
	b.now = at(5)
	b.play(t, "a? a=failure b? b=failure")
	check(Status{State: Closed, Since: start, Failures: 2, Generation: 1})
	b.play(t, "c? c=failure 1s")
	check(Status{State: Open, Since: at(5), Next: at(15), Openings: 1, Generation: 2})
	b.now = at(17)
	check(Status{State: HalfOpen, Since: at(15), Openings: 1, Generation: 2})
	tok := b.pass(t)
	check(Status{State: HalfOpen, Since: at(15), Next: at(47), Openings: 1, Probes: 1, Generation: 2})
	tok.Settle(Answered)
	check(Status{State: Closed, Since: at(17), Openings: 1, Generation: 3})
	b.pass(t).Settle(Success)
	check(Status{State: Closed, Since: at(17), Generation: 3})
}

func TestChangesAreToldOnceAndMayCallBack(t *testing.T) {
	b := newBench(Config{})
	var told []State
	b.config.OnChange = func(from State, now Status) {
		told = append(told, from, now.State)
		if b.State() != now.State || b.Status() != now {
			t.Errorf("told of %+v in %+v", now, b.Status())
		}
		if tok, err := b.Admit(); err == nil {
			tok.Settle(Neutral)
		}
	}
	b.play(t, "s? "+trip+"10s a? a=failure s=failure~ 20s b? b=neutral c? c=success d? d=failure")
	if want := []State{Closed, Open, HalfOpen, Open, HalfOpen, Closed}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

func TestAClockThatGoesBackDoesNotSilenceAProbe(t *testing.T) {
	b := newBench(Config{})
	b.play(t, trip+"10s a? -5s [open] b! a=success [closed]")
}

func TestTokenKnowsItsNodeAndWhetherItIsAProbe(t *testing.T) {
	b := newBench(Config{Node: "a"})
	if tok := b.pass(t); tok.Node() != "a" || tok.Probe() {
		t.Errorf("%q, %v", tok.Node(), tok.Probe())
	}
	b.halfOpen(t)
	if tok := b.pass(t); !tok.Probe() {
		t.Error("a call that is admitted half-open is no probe")
	}
}

func TestTicketsOfOtherLivesAreToldApart(t *testing.T) {
	one, other := newBench(Config{}), newBench(Config{})
	ticket := one.pass(t).Ticket()
	if len(ticket) > 40 {
		t.Errorf("%q has %d bytes", ticket, len(ticket))
	}
	if other.Observe(ticket, Success) || !one.Observe(ticket, Success) {
		t.Error("a ticket is taken for another breaker's")
	}
	for _, odd := range []Ticket{Ticket(one.id), Ticket(one.id + "0"), Ticket(one.id + "x"), Ticket(one.id + "-1"), Ticket(one.id + "99999999999999999999999")} {
		if one.Observe(odd, Failure) || one.Status().Failures != 0 {
			t.Errorf("%q is heard", odd)
		}
	}
}
