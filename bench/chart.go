package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// group is the bars of one thing that is compared.
type group struct {
	label string
	bars  []chartBar
}

type chartBar struct {
	queue string
	value float64
}

const (
	chartWidth = 640
	labelWidth = 80
	valueWidth = 70
	barHeight  = 15
	barStep    = 18
)

// style has colours of its own for dark pages, and no font that must be loaded.
const style = `<style>
text{font:12px system-ui,sans-serif;fill:#333}.t{font-size:14px;font-weight:600}.g{font-weight:600}
.settle{fill:#2563eb}.backlite{fill:#9aa3af}.goqite{fill:#b8bec7}.River{fill:#7c8592}.floor{fill:#d9a441}
@media (prefers-color-scheme:dark){text{fill:#ddd}.settle{fill:#60a5fa}}
</style>`

// chart draws horizontal bars from zero on one scale.
func chart(title string, groups []group) string {
	var most float64
	for _, g := range groups {
		for _, b := range g.bars {
			most = max(most, b.value)
		}
	}
	var body strings.Builder
	y := 26
	text := func(x, y int, class, anchor, s string) {
		fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, class, anchor, html.EscapeString(s))
	}
	text(0, 14, "t", "start", title)
	for _, g := range groups {
		y += 18
		text(0, y-4, "g", "start", g.label)
		for _, b := range g.bars {
			long := max(b.value/max(most, 1e-9)*(chartWidth-labelWidth-valueWidth), 1)
			text(labelWidth-8, y+12, "", "end", b.queue)
			fmt.Fprintf(&body, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>\n", labelWidth, y, long, barHeight, b.queue)
			text(labelWidth+int(long)+5, y+12, "", "start", number(b.value))
			y += barStep
		}
		y += 6
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n%s\n%s</svg>\n",
		chartWidth, y, html.EscapeString(title), style, body.String())
}

// group returns the bars of a row at a level.
func (r results) group(label, row, level, value string) group {
	g := group{label: label}
	for _, q := range []string{"floor", "settle", "backlite", "goqite", "River"} {
		if s, ok := r.of(row, level, q, value); ok {
			g.bars = append(g.bars, chartBar{q, s.median})
		}
	}
	return g
}

// charts draws all of them; the key is the file's name.
func (r results) charts() map[string]string {
	levels := func(row, value string) []group {
		return []group{r.group("synchronous FULL", row, full, value), r.group("synchronous NORMAL", row, normal, value)}
	}
	var backlog []group
	for _, row := range []string{workTen, workHun, workMil} {
		_, size, _ := strings.Cut(row, ", ")
		backlog = append(backlog, r.group(size+" waiting", row, normal, perSecond))
	}
	return map[string]string{
		"work-off.svg": chart("Work-off of 100 thousand jobs, jobs per second", levels(workHun, perSecond)),
		"steady.svg":   chart("Steady state, 50 goroutines one by one, jobs per second", levels(steady, perSecond)),
		"latency.svg":  chart("Enqueue to start at 50 jobs/s, p50 in ms (floor: one commit)", levels(latency, p50)),
		"backlog.svg":  chart("Work-off by backlog, synchronous NORMAL, jobs per second", backlog),
	}
}

func writeCharts(dir string, charts map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, svg := range charts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return nil
}
