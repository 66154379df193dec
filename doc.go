// Package settle is a durable job system in which every job reaches an end
// that you can see.
//
// Declare a kind of job once; it ties a stable name to Go types and a [Policy]:
//
//	var Analyze = settle.Define[AnalyzeIn, AnalyzeOut]("video.analyze",
//		settle.Policy{Attempts: 5, Timeout: 10 * time.Minute})
//
// Open a store (package sqlite), make a [Client], and enqueue, wait, steer:
//
//	q := settle.NewClient(store)
//	id, err := Analyze.Enqueue(ctx, q, in, settle.EnqueueOpts{Tenant: "acme"})
//	out, err := Analyze.Await(ctx, q, id)
//
// Run jobs with package worker. What a handler returns decides what follows:
// nil ends the job as succeeded, any error is tried again after a backoff until
// a budget ends the job, and [Terminal], [RetryAfter] and [Snooze] say more.
//
// Work is at least once: after a crash a handler may run again, so its effects
// must be idempotent, or be committed together with the end.
//
// # How a job moves
//
// A [Job] is pending, running or awaiting, and then succeeded, dead or
// cancelled. A claim counts the attempt before anything can fail. Every other
// arrow is chosen by [Decide], a pure function over durations, and carried out
// by [Queue.Apply], if the [Fence] still holds. docs/lifecycle.md shows every
// arrow; docs/defaults.md every default and bound.
//
// This package holds the words, Decide and the contract of a [Store]. It starts
// no goroutine and knows neither SQL nor networks.
package settle
