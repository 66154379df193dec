// Package xrun is "settle run": durable xargs. Each item of its input is a job
// of a queue of the run's own, and a command is run for it.
//
// The way of an item:
//
//	input ─ split ─▶ feed ─ Insert ─▶ store ─ Claim ─▶ worker ─▶ work ─ child ─▶ output ─▶ settled
//	                                                                  (order: -k)
//
// Plan is what can be known before a database is opened, and where every usage
// error is found. Start carries out one start of a run. What has no state of
// its own stands in packages of its own: tmpl (placeholders), split (items),
// runlock (one program per run).
package xrun
