package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

func splitAddr(addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	must(err)
	return host, port
}

func isMaster(s *server) bool {
	text, err := s.reply("INFO", "replication").ToString()
	return err == nil && strings.Contains(text, "role:master")
}

// traps asks single questions, each on an empty server.
func traps() {
	for _, f := range []func(*server){trapRepeats, trapDelConsumer, trapAckOnly, trapDelOnly, trapTrim, trapEviction, trapFull,
		trapNames, trapIdle, trapForgotten, trapBlockTimer, trapNoDeadline, trapCrossSlot, trapManyWaiters} {
		s := startRedis()
		fmt.Printf("  redis %s ", strings.TrimSpace(version(s)))
		f(s)
		s.close()
	}
}

func version(s *server) string {
	_, rest, _ := strings.Cut(s.do("INFO", "server"), "redis_version:")
	v, _, _ := strings.Cut(rest, "\r\n")
	return v
}

// queue puts n entries into a stream with a group and lets a consumer read them.
func queue(s *server, n int, consumer string) (ids []string) {
	s.try("XGROUP", "CREATE", "q", group, "0", "MKSTREAM")
	for range n {
		ids = append(ids, s.do("XADD", "q", "*", "doc", "d"))
	}
	must(s.reply("XREADGROUP", "GROUP", group, consumer, "COUNT", "1000", "STREAMS", "q", ">").NonRedisError())
	return ids
}

// claimable is how many entries a take-over finds.
func claimable(s *server) int {
	reply, err := s.reply("XAUTOCLAIM", "q", group, "other", "0", "0").ToArray()
	must(err)
	entries, err := reply[1].ToArray()
	must(err)
	return len(entries)
}

func (s *server) length() int64 {
	n, err := s.reply("XLEN", "q").AsInt64()
	must(err)
	return n
}

// trapRepeats cuts the link after the server has run a command: does the
// library run it again?
func trapRepeats(s *server) {
	p := newProxy(s.addr())
	defer p.close()
	fmt.Println("reply cut off after the command ran; times it ran, default client / DisableRetry:")
	for _, words := range [][]string{{"GET", "k"}, {"GETDEL", "k"}, {"XADD", "q", "*", "doc", "d"}, {"XREADGROUP", "GROUP", group, "c", "STREAMS", "q", ">"}, {"XAUTOCLAIM", "q", group, "c", "0", "0"}} {
		var ran [2]int
		var errs [2]error
		for i, off := range []bool{false, true} {
			s.try("XGROUP", "CREATE", "q", group, "0", "MKSTREAM")
			c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{p.addr()}, DisableCache: true, DisableRetry: off, ForceSingleClient: true, PipelineMultiplex: -1})
			must(err)
			must(c.Do(t0, c.B().Ping().Build()).Error())
			before := s.calls(strings.ToLower(words[0]))
			p.cutReply.Store(true)
			errs[i] = c.Do(t0, typed(c, words)).Error()
			ran[i] = s.calls(strings.ToLower(words[0])) - before
			p.cutReply.Store(false)
			c.Close()
		}
		fmt.Printf("    %-10s %d / %d  (%v / %v)\n", words[0], ran[0], ran[1], errs[0], errs[1])
	}
}

// typed builds the command as the library knows it: only typed reads are
// marked as safe to repeat.
func typed(c rueidis.Client, words []string) rueidis.Completed {
	switch words[0] {
	case "GET":
		return c.B().Get().Key("k").Build()
	case "GETDEL":
		return c.B().Getdel().Key("k").Build()
	case "XADD":
		return c.B().Xadd().Key("q").Id("*").FieldValue().FieldValue("doc", "d").Build()
	case "XREADGROUP":
		return c.B().Xreadgroup().Group(group, "c").Streams().Key("q").Id(">").Build()
	}
	return c.B().Xautoclaim().Key("q").Group(group).Consumer("c").MinIdleTime("0").Start("0").Build()
}

func trapDelConsumer(s *server) {
	queue(s, 5, "dead")
	n, err := s.reply("XGROUP", "DELCONSUMER", "q", group, "dead").AsInt64()
	must(err)
	fmt.Printf("DELCONSUMER of a name with 5 pending: answers %d; take-over finds %d, stream holds %d\n", n, claimable(s), s.length())
}

func trapAckOnly(s *server) {
	ids := queue(s, 5, "dead")
	must(s.try(append([]string{"XACK", "q", group}, ids...)...))
	fmt.Printf("crash between XACK and XDEL: take-over finds %d, stream holds %d\n", claimable(s), s.length())
}

func trapDelOnly(s *server) {
	ids := queue(s, 5, "dead")
	must(s.try(append([]string{"XDEL", "q"}, ids...)...))
	before, found := pendingCount(s), claimable(s)
	fmt.Printf("crash between XDEL and XACK: take-over finds %d, stream holds %d, pending %s before and %s after it\n",
		found, s.length(), before, pendingCount(s))
}

func pendingCount(s *server) string {
	reply, err := s.reply("XPENDING", "q", group).ToArray()
	must(err)
	n, err := reply[0].AsInt64()
	must(err)
	return strconv.FormatInt(n, 10)
}

func trapTrim(s *server) {
	queue(s, 0, "c")
	for range 1000 {
		s.do("XADD", "q", "MAXLEN", "100", "*", "doc", "d")
	}
	reply, err := s.reply("XREADGROUP", "GROUP", group, "c", "COUNT", "1000", "STREAMS", "q", ">").AsXRead()
	must(err)
	fmt.Printf("1000 XADD MAXLEN 100, none read yet: a bridge gets %d, without any error\n", len(reply["q"]))
}

func trapEviction(s *server) {
	used := int(s.info("memory", "used_memory"))
	for _, policy := range []string{"noeviction", "allkeys-lru", "volatile-lru"} {
		s.do("FLUSHALL")
		s.do("CONFIG", "SET", "maxmemory-policy", policy)
		s.do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+3<<20))
		added, refused := 0, error(nil)
		for shard := 0; added < 20000 && refused == nil; shard++ {
			refused = s.try("XADD", stream(shard%shards), "*", "doc", filler+filler)
			added++
		}
		kept := int64(0)
		for shard := range shards {
			n, _ := s.reply("XLEN", stream(shard)).AsInt64()
			kept += n
		}
		fmt.Printf("full, %s: confirmed %d, kept %d, refused with %v\n    ", policy, added-btoi(refused != nil), kept, refused)
	}
	fmt.Println()
}

// trapFull asks whether a full server can still be emptied.
func trapFull(s *server) {
	ids := queue(s, 3, "dead")
	s.do("XADD", "q", "*", "doc", "d")
	s.do("CONFIG", "SET", "maxmemory", "1")
	fmt.Println("full, noeviction; what is refused:")
	for _, words := range [][]string{
		{"XADD", "q", "*", "doc", "d"},
		{"XREADGROUP", "GROUP", group, "new", "STREAMS", "q", ">"},
		{"XAUTOCLAIM", "q", group, "new", "0", "0"},
		{"XACK", "q", group, ids[0]},
		{"XDEL", "q", ids[0]},
		{"XGROUP", "CREATE", "q", "another", "0"},
		{"EVAL", forgetText, "1", "q", group, "0"},
	} {
		err := s.reply(words...).Error()
		fmt.Printf("    %-10s %v\n", words[0], err)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// trapNames counts what names of consumers cost that nobody removes.
func trapNames(s *server) {
	queue(s, 0, "c")
	before := s.info("memory", "used_memory")
	for i := range 10_000 {
		must(s.try("XGROUP", "CREATECONSUMER", "q", group, fmt.Sprintf("host-%d-0123456789abcdef", i)))
	}
	fmt.Printf("10000 names left behind on one shard: %.0f bytes each\n", (s.info("memory", "used_memory")-before)/10_000)
}

// trapIdle asks whether a bridge that reads and gets nothing looks dead.
func trapIdle(s *server) {
	queue(s, 1, "alive")
	pause(1)
	s.try("XREADGROUP", "GROUP", group, "alive", "BLOCK", "100", "STREAMS", "q", ">")
	reply, err := s.reply("XINFO", "CONSUMERS", "q", group).ToArray()
	must(err)
	m, err := reply[0].AsMap()
	must(err)
	idle := m["idle"]
	n, _ := idle.AsInt64()
	fmt.Printf("a name that read in vain just now, its last entry 1.1 s ago: idle %d ms\n", n)
}

// trapForgotten removes the name of a reader that blocks.
func trapForgotten(s *server) {
	queue(s, 0, "blocked")
	got := make(chan int)
	go func() {
		c, err := connect([]string{s.addr()}, false)
		must(err)
		defer c.Close()
		m, _ := c.Do(t0, c.B().Xreadgroup().Group(group, "blocked").Block(2000).Streams().Key("q").Id(">").Build()).AsXRead()
		got <- len(m["q"])
	}()
	pause(0.3)
	must(s.try("XGROUP", "DELCONSUMER", "q", group, "blocked"))
	s.do("XADD", "q", "*", "doc", "d")
	fmt.Printf("name removed while its reader blocks, then an entry: the reader got %d; ", <-got)
	fmt.Printf("pending %s, take-over finds %d\n", pendingCount(s), claimable(s))
}

// trapBlockTimer lets two readers block and gives one entry to the first.
func trapBlockTimer(s *server) {
	queue(s, 0, "c")
	took := make(chan time.Duration, 2)
	for i := range 2 {
		go func() {
			c, err := connect([]string{s.addr()}, false)
			must(err)
			defer c.Close()
			at := time.Now()
			c.Do(t0, c.B().Xreadgroup().Group(group, strconv.Itoa(i)).Block(2000).Streams().Key("q").Id(">").Build())
			took <- time.Since(at)
		}()
		pause(0.1)
	}
	pause(1.3)
	s.do("XADD", "q", "*", "doc", "d")
	a, b := <-took, <-took
	fmt.Printf("BLOCK 2000 by two readers, one entry after 1.4 s: they waited %.1f and %.1f s\n", a.Seconds(), b.Seconds())
}

// trapNoDeadline blocks on a link that dies, with and without a deadline.
func trapNoDeadline(s *server) {
	queue(s, 0, "c")
	fmt.Print("BLOCK 1000 on a link that dies; ended after: ")
	for _, limit := range []time.Duration{2 * time.Second, 15 * time.Second} {
		p := newProxy(s.addr())
		c, err := connect([]string{p.addr()}, false)
		must(err)
		must(c.Do(t0, c.B().Xreadgroup().Group(group, "c").Block(10).Streams().Key("q").Id(">").Build()).NonRedisError())
		time.AfterFunc(200*time.Millisecond, func() { p.frozen.Store(true) })
		ctx, cancel := context.WithTimeout(t0, limit)
		at := time.Now()
		err = c.Do(ctx, c.B().Xreadgroup().Group(group, "c").Block(1000).Streams().Key("q").Id(">").Build()).Error()
		fmt.Printf("%.1f s with a deadline of %.0f s (%v); ", time.Since(at).Seconds(), limit.Seconds(), err)
		cancel()
		p.close()
		go c.Close()
	}
	fmt.Println()
}

func trapCrossSlot(*server) {
	all := startCluster(3)
	err := all[0].try("XREADGROUP", "GROUP", group, "c", "STREAMS", stream(0), stream(1), ">", ">")
	fmt.Printf("Cluster, one read over two shards: %v\n", err)
	for _, s := range all {
		s.close()
	}
	owner := map[string]int{}
	for shard := range shards {
		owner[strconv.Itoa(slotOf(shard)*3/16384)]++
	}
	fmt.Printf("    16 shards on 3 masters: %v\n", owner)
}

func slotOf(shard int) int { return int(crc16(strconv.Itoa(shard))) % 16384 }

// crc16 is XMODEM's. Source: Redis Cluster specification, appendix A.
func crc16(s string) (crc uint16) {
	for _, b := range []byte(s) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// trapManyWaiters asks what blocked readers cost the server when an entry comes.
func trapManyWaiters(s *server) {
	queue(s, 0, "c")
	fmt.Print("server's time per XADD with blocked readers: ")
	for _, readers := range []int{0, 3, 48} {
		ctx, stop := context.WithCancel(t0)
		for i := range readers {
			c, err := connect([]string{s.addr()}, false)
			must(err)
			defer c.Close()
			go func() {
				for ctx.Err() == nil {
					c.Do(ctx, c.B().Xreadgroup().Group(group, strconv.Itoa(i)).Block(1000).Streams().Key("q").Id(">").Build())
				}
			}()
		}
		pause(0.3)
		at, n := s.cpu(), 2000
		for range n {
			s.do("XADD", "q", "*", "doc", "d")
		}
		fmt.Printf("%d readers %.0f µs; ", readers, (s.cpu()-at)/float64(n)*1e6)
		stop()
		pause(1.2)
	}
	fmt.Println()
}
