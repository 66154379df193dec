// Package redisinbox is the way of answers through Redis or Valkey: nodes add
// them to streams, and any number of processes read them, each answer as soon as
// it is there, at a cost that does not depend on how many are waited for.
//
// An [Inbox] reads, gives what it has read to a function of yours, and removes
// exactly what that function says it is done with. It judges nothing and knows no
// store:
//
//	in, err := redisinbox.New(redisinbox.Config{Client: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}})
//	err = in.Check(ctx)   // refuses a server that may throw answers away
//	at := in.Address(job, attempt)   // goes to the node with the submission
//	err = in.Run(ctx, func(ctx context.Context, entries []redisinbox.Entry) ([]bool, error) {
//		… // judge, commit; true = the entry may be removed
//	})
//
// # What is promised
//
// An answer that Redis has confirmed to the node is offered to some [Deliver] of
// some process until one has said that it is done with it, as long as Redis
// itself does not lose it. That may be more than once: a commit compares and sets
// (job, attempt), and "was settled already" is done too.
//
// Whatever a process leaves behind when it dies is taken over by another, or by
// its successor, after [Config.TakeOver]. Servers that are away, load their data,
// were demoted, emptied or moved are waited for; a link that is dead without
// saying so is given up after Block + 3 s.
//
// # Streams
//
// The attempt's last byte, modulo 16, is the shard s. Answers lie in
// settle:{s}:inbox, and progress notes, which may be lost, in settle:{s}:progress.
// The fields of an entry are ticket ("<job>.<attempt>") and doc (the document).
// One consumer group, "settle", reads each. See docs/decisions/007-inbox-stream.md
// for why, and for what was measured.
//
// The user that Config.Client names needs, for these keys: XREADGROUP, XACK, XDEL,
// XPENDING, XCLAIM, XRANGE, XREVRANGE, XLEN, XGROUP, XINFO, EVAL, TIME; and MULTI,
// EXEC, INFO, PING, HELLO, CLIENT; on Cluster also CLUSTER, through Sentinel ROLE.
package redisinbox
