package faultproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// FreeAddr returns an address on loopback on which nobody listens. It lies below
// the ports that the system gives to outgoing connections, so that a server that
// is stopped finds its port free when it comes back.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port between 10000 and 30000")
	return ""
}

// listenAgain listens on a port that was in use a moment ago.
func listenAgain(addr string) (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", addr); err == nil {
			return l, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, err
}
