// Package breaker is a circuit breaker that judges a node, not the work that
// the node is given. It needs nothing but the standard library, and knows
// nothing of the rest of this module.
//
//	b := breaker.New(breaker.Config{})
//	err := b.Do(ctx, func(ctx context.Context, t *breaker.Token) error {
//		return send(ctx, work)
//	})
//	if errors.Is(err, breaker.ErrOpen) { … } // refused: send was not called
//
// # Three states
//
// A closed breaker lets every call pass. After Failures failures in a row it
// opens and refuses every call. When its open time is over it is half-open: it
// admits Probes calls at a time, as probes, and the first that is decided
// decides: a failure opens the breaker again, for longer, anything else that
// the node said closes it. Becoming half-open is no event: it is what an open
// breaker is called once its time is over. No goroutine and no timer waits for
// it.
//
// # Four outcomes
//
// A call is admitted with a [Token], which is settled once:
//
//   - [Success]: the node did what it was asked. Closes a half-open breaker,
//     ends a row of failures, and lets open times begin small again.
//   - [Answered]: the node said, in good form, that it cannot: a rejected
//     input, a failed job, "busy, come back later". Also that it took the work
//     in, when the result comes later. The node is healthy: a half-open breaker
//     closes. Otherwise nothing changes: a node that rejects is not failing,
//     and a node that accepts has not delivered yet.
//   - [Failure]: no connection, no answer in time, an answer that nobody can
//     read.
//   - [Neutral]: nothing was learned about the node: the caller was cancelled,
//     is shutting down, or never made the call. The zero Outcome is neutral.
//
// A token that is not settled, after a panic, a Goexit, an early return, is as
// good as neutral: defer t.Settle(breaker.Neutral) sees to it, and whatever was
// settled before stands. A token that is lost altogether costs a probe's place
// until ProbeLease is over, never more: a probe that hangs cannot keep a breaker
// half-open. It loses its place then, not its voice.
//
// # What is too late
//
// Every change of state begins a new generation, and a token belongs to the
// one that it was admitted in. Outcomes of calls that began in an earlier
// generation are ignored, so calls from before an opening never decide what the
// probes are asked to decide. Settle says so to its caller.
//
// # Two observations
//
// Work that is handed over now and delivered later is observed twice. Settle
// the token of the submission with Answered when the node accepted, keep its
// [Ticket] wherever the work is kept, and report the delivery by
// [Breaker.Observe]. A delivery is ignored if the breaker has changed state
// since its submission began. In another process, or after a restart, nobody
// can know that: good news then changes nothing, and a failure is one failure.
//
// # Many nodes
//
// A [Set] holds one breaker for each node, of bounded number, and forgets
// those that nobody asks for. [Set.AdmitFirst] takes the first node that admits
// and says, when none does, when the first probe can be made.
package breaker
