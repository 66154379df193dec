// Package mailbox judges the answers of nodes: machines elsewhere, in any
// language, that do one piece of work and leave one document that says how it
// went. It needs nothing of settle's jobs and serves people with tables of
// their own.
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
// Fetching documents, waiting for them and removing them is not part of this
// package yet.
package mailbox
