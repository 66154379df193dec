package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// print prints the case's line, then what was unusual about it.
func (t *trial) print() {
	l, s := t.latencies(), t.store
	acked, lost := 0, 0
	for _, w := range s.waits {
		if w.acked > 0 {
			acked++
			if w.settled == 0 {
				lost++
			}
		}
	}
	fmt.Printf("%-34s answered %6d lost %d doubled %d | already %d stale %d unknown %d of noise %d | ms p50 %.1f p99 %.0f max %.0f\n",
		t.label, acked, lost, s.doubled(), s.count[already], s.count[stale], s.count[unknown], t.nodes.noise.Load(),
		quantile(l, .5), quantile(l, .99), quantile(l, 1))
	if t.idle > 0 {
		perAnswer := 1e6 * t.loadedCPU * t.load.Seconds() / max(1, float64(t.settled))
		fmt.Printf("   CPU %% of a core: redis %.1f idle %.2f, bridges %.1f idle %.2f | redis %.0f µs/answer, %.0f MB | bridges %.0f MB | %.1f answers a commit | %.0f connections\n",
			100*t.loadedCPU, 100*t.idleCPU, 100*t.loadedKids, 100*t.idleKids, perAnswer, t.memory, t.rss,
			float64(len(l))/float64(max(1, s.commits)), t.conns)
	}
	t.printRest()
}

func (t *trial) printRest() {
	var line []string
	if n := t.nodes.repeat.Load(); n > 0 {
		line = append(line, fmt.Sprintf("node repeats %d", n))
	}
	if t.Form == "stream" {
		line = append(line, t.leftovers())
	} else {
		keys := t.each(func(s *server) float64 { n, _ := s.reply("DBSIZE").AsInt64(); return float64(n) })
		line = append(line, fmt.Sprintf("left: keys %.0f", keys))
	}
	errors := map[string]int{}
	claimed, swept, sweeps, sweepMS := 0, 0, 0, 0.0
	for _, s := range t.stats {
		claimed += s.Claimed
		swept += s.Swept
		sweeps += s.Sweeps
		sweepMS += s.SweepMS
		for text, n := range s.Errors {
			errors[text] += n
		}
	}
	if claimed+swept > 0 {
		line = append(line, fmt.Sprintf("taken over %d, names removed %d", claimed, swept))
	}
	if sweeps > 0 {
		line = append(line, fmt.Sprintf("a poll of all waits took %.0f ms", sweepMS/float64(sweeps)))
	}
	fmt.Println("   " + strings.Join(line, " | "))
	for _, text := range slices.Sorted(maps.Keys(errors)) {
		fmt.Printf("   %d × %s\n", errors[text], text)
	}
}

// leftovers counts what is still on the servers after the bridges have left.
func (t *trial) leftovers() string {
	entries, pending, names := int64(0), int64(0), int64(0)
	client, err := connect(t.addrs, t.Sentinel)
	must(err)
	defer client.Close()
	for shard := range shards {
		n, err := client.Do(t0, client.B().Xlen().Key(stream(shard)).Build()).AsInt64()
		must(err)
		entries += n
		groups, err := client.Do(t0, client.B().XinfoGroups().Key(stream(shard)).Build()).ToArray()
		if err != nil {
			continue
		}
		for _, g := range groups {
			m, _ := g.AsMap()
			p, c := m["pending"], m["consumers"]
			n, _ := p.AsInt64()
			pending += n
			n, _ = c.AsInt64()
			names += n
		}
	}
	return fmt.Sprintf("left: entries %d, pending %d, names %d", entries, pending, names)
}
