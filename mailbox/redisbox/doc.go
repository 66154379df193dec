// Package redisbox waits for the answers of nodes in Redis or Valkey: each under
// a key of its own. It needs nothing of settle's jobs. A node answers by
//
//	SET settle:answer:video-7.a1b2c3 '{"v":1, …}' EX 7200
//	PUBLISH settle:nudge settle:answer:video-7.a1b2c3
//
// and whoever gave it the work waits for that:
//
//	box, err := redisbox.New(redisbox.Config{Redis: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}})
//	defer box.Close()
//	go box.Run(ctx)
//
//	d, err := box.Await(ctx, redisbox.Key(ticket), mailbox.AwaitOpts{Ticket: ticket})
//	// … commit your own state, by compare-and-set …
//	err = d.Ack(ctx) // deletes what was judged, and nothing else
//
// What Await returns, and how it waits, stands in package mailbox.
//
// # On the wire
//
// One connection for commands and one for the subscription, each to the one
// server, to the master that Sentinel names, or to a node of the Cluster (there
// commands have one to each). Idle waits are asked for together, by one EXISTS
// for up to 500 keys; on a Cluster by a pipeline of them. Only what is there is
// read, and of that 1 MiB and a byte. The client is this package's own, because
// it must never repeat a command by itself.
//
// The subscription is pinged every Heartbeat, and replaced when the answer takes
// longer than Timeout: a half-open one is noticed within Heartbeat + Timeout +
// 1 s, 9 s by default, and until then the polls find what it does not tell. A
// half-open connection for commands is replaced within twice Dialer.KeepAlive +
// Timeout, 5 s by default; looks fail meanwhile, and waits go on.
//
// Whatever goes wrong before a reply has come is waited out: no connection,
// LOADING, READONLY, MOVED, CLUSTERDOWN, NOAUTH, NOPERM.
//
// # What Redis must be
//
// Version 6.2 or later with RESP3, as Valkey is. Its maxmemory-policy must be
// noeviction: every other may remove answers, which have an expiry, and budgets.
// Run refuses another at its start, and Budget.Add always; one that Run finds
// later, and a server that does not tell, stand in Stats.Note. A failover may
// lose what the replica had not received: such waits end at their ceiling, as
// *mailbox.NoResultError.
//
// The user of an access list needs what any client needs to connect, EXISTS,
// EVAL with TYPE, STRLEN, GETRANGE and DEL, INFO, PING and SUBSCRIBE; for a
// destructive box GETDEL, for a budget SADD, PEXPIRE and SCARD. Without SUBSCRIBE
// all works by polling alone.
package redisbox
