// Package redistest gives a test Redis servers of its own: real ones, on free
// loopback ports, with their data in a folder of the test, and gone with it, also
// when the test's process is killed.
//
//	s := redistest.Start(t, "maxmemory 20mb")   // one server; lines of redis.conf
//	s.Do("XADD", "q", "*", "doc", "d")          // fails the test unless it works
//	s.Restart()                                 // kill -9, same port, same data
//	s.Pause(); s.Resume()                       // SIGSTOP, SIGCONT
//	r := redistest.StartReplica(t, s.Addr())    // or the address of a proxy
//	w := redistest.StartSentinel(t, "name", s)  // watches s and its replicas
//	c := redistest.StartCluster(t, 3)           // masters that share the slots
//	f := redistest.NewFront(t, s.Addr())        // answers errors for s: LOADING, MOVED, …
//
// Faults of the network are [faultproxy]'s. A test fails, and is never skipped,
// where redis-server is not installed.
//
// [faultproxy]: https://pkg.go.dev/github.com/settle-go/settle/internal/faultproxy
package redistest
