package xrun

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/settle-go/settle"
)

// meter measures the rate of ends over the last seconds.
type meter struct {
	at   [meterLen]time.Duration
	done [meterLen]int64
	n    int
}

// meterLen readings, one each tick, are what the rate looks back on.
const meterLen = 50

// add notes a reading.
func (m *meter) add(at time.Duration, done int64) {
	m.at[m.n%meterLen], m.done[m.n%meterLen] = at, done
	m.n++
}

// rate is ends per second; 0 = not known yet.
func (m *meter) rate() float64 {
	if m.n < 2 {
		return 0
	}
	last, first := (m.n-1)%meterLen, 0
	if m.n > meterLen {
		first = m.n % meterLen
	}
	span := (m.at[last] - m.at[first]).Seconds()
	if span <= 0 {
		return 0
	}
	return float64(m.done[last]-m.done[first]) / span
}

// progress is what the line of progress says.
type progress struct {
	counts
	reading bool // the input has not ended
	rate    float64
	age     time.Duration // of the oldest unfinished item
	state   string        // what is the matter, if anything
}

// String writes the line: done, dead, rate, age, remaining.
func (p progress) String() string {
	done := sum(p.Before) + sum(p.Now)
	dead := p.Before[settle.Dead] + p.Now[settle.Dead] + p.Refused
	total := humanize.Comma(done + max(p.Open, 0))
	if p.reading {
		total += "+"
	}
	parts := []string{fmt.Sprintf("%s of %s done", humanize.Comma(done), total), humanize.Comma(dead) + " dead"}
	if p.rate > 0 {
		parts = append(parts, rateText(p.rate))
	}
	if p.Open > 0 && p.age >= time.Second {
		parts = append(parts, "age "+shortSpan(p.age))
	}
	if p.Open > 0 && p.rate > 0 && !p.reading {
		parts = append(parts, shortSpan(time.Duration(float64(p.Open)/p.rate*float64(time.Second)))+" left")
	}
	if p.state != "" {
		parts = append(parts, p.state)
	}
	return strings.Join(parts, " · ")
}

func rateText(perSecond float64) string {
	switch {
	case perSecond >= 10:
		return humanize.Comma(int64(perSecond+0.5)) + "/s"
	case perSecond >= 0.1:
		return fmt.Sprintf("%.1f/s", perSecond)
	default:
		return fmt.Sprintf("%.1f/min", perSecond*60)
	}
}

// shortSpan writes a duration with its two largest units at most.
func shortSpan(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// flagSpan writes a duration as flags read it: "30d", "1h30m", "400ms".
func flagSpan(d time.Duration) string {
	const day = 24 * time.Hour
	if d != 0 && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(s, zero); ok {
			s = rest + zero[:1]
		}
	}
	return s
}
