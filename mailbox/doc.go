// Package mailbox waits for the answers of nodes, and judges them: machines
// elsewhere, in any language, that do one piece of work and leave one document
// that says how it went. It needs nothing of settle's jobs and serves people with
// tables of their own.
//
//	d, err := box.Await(ctx, key, mailbox.AwaitOpts{Ticket: ticket})
//	// commit your own state, whatever came
//	err = d.Ack(ctx)
//
// # Verdicts
//
// A look at the place where the answer will lie comes to exactly one of these:
//
//	nil             the step is done, and there is an output
//	*StepError      the node says that the step failed: final
//	*ProtocolError  something lies there that is no answer: final
//	ErrNotReady     nothing lies there: wait on
//	ErrProgress     the node says that it is at work: wait on
//	ErrStale        an answer to another submission: wait on
//
// Only the last three go on waiting, so a failure that was reported, or that
// nobody can read, ends a wait as surely as a success does. [IsFinal] asks an
// error which of both it is, through every wrapper that unwraps.
//
// # Judges
//
// A [Judge] is pure: a document in, a verdict out. [ContractJudge] reads answers
// of contract v1 (docs/contract.md: what a node must do, with the verdict of
// every doubtful document; docs/contract.schema.json: the same as a JSON
// Schema). [StatusJudge] reads the plain {"status": "done"} of producers that
// keep to no contract. A judge of your own is a function; called through
// [Judge.Look], it is held to the list above, whatever it returns.
//
// # Text from nodes
//
// What a node says of its failure may be shown: it is bounded, without controls
// and without secrets of a known shape. Of a malformed document nothing is
// shown but its size and, in words of this package, what is wrong with it.
//
// # Waiting
//
// A [Box] waits for documents that a [Source] holds, each under a key; package
// redisbox has the source on Redis. It subscribes first, reads second, and polls
// always: a nudge makes a wait short, and none is needed. All waits of a process
// share one subscription, which is replaced when it is dead, and look together,
// whoever was looked at least recently first. No wait has a goroutine:
// [Box.Watch] takes a function, [Box.Await] is called on yours.
//
// Every look, be it the first, of a nudge, of a poll or the last, is judged by
// [Judge.Look] in one place (work.go), and comes to one of these:
//
//	an answer, or a final error      ends the wait, with a Delivery
//	not ready, progress, stale       wait on
//	could not look                   nothing was consumed: wait on
//
// What lies there is not touched until [Delivery.Ack], which deletes it if it is
// still what was judged. So a crash before your commit loses nothing, and one
// between commit and Ack delivers again: commit by compare-and-set.
//
// No wait is without an end: its ceiling is 1 h by default, and ends it with a
// *[NoResultError]. Before that, and whenever its context or Run ends, there is a
// last look.
//
// A destructive source removes what a look finds. Then every look that found
// something, or whose reply was lost, is the last: see [ConsumedError].
package mailbox
