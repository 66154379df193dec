package redisinbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
)

// Shards is how many pairs of streams there are. It is part of the contract with
// every process that reads them.
const Shards = 16

const group = "settle"

// Config says where the inbox is and how it is read.
type Config struct {
	// Client is how Redis is reached. InitAddress holds one server; or, with
	// Sentinel.MasterSet, the Sentinels; or some nodes of a Cluster (one node is
	// recognised too). Repeats and the cache of the library are always off. Zero
	// fields mean: Dialer.Timeout 2 s, ConnWriteTimeout 3 s, one connection for
	// everything that does not block, buffers of 64 KiB, Sentinels asked each 5 s.
	Client rueidis.ClientOption
	// Prefix is the first word of the streams' names: processes with another one
	// have another inbox. "" = "settle".
	Prefix string
	// Block is how long one read waits for answers, and Run for such a read when
	// its context ends. At least 10 ms, at most 1 min. 0 = 2 s.
	Block time.Duration
	// TakeOver is how long an entry stays with a process that says nothing about
	// it, before another offers it again: looked for each third of this. A Deliver
	// has half of it. At least 100 ms, at most 1 h. 0 = 15 s.
	TakeOver time.Duration
	// Logger gets a line when the inbox cannot be read, at most one a minute, and
	// one when it can again. nil = none.
	Logger *slog.Logger
}

// pace is what only tests change.
type pace struct {
	grace  time.Duration // beyond Block: then a link is taken for dead; for every other command
	renew  time.Duration // without a success: then the client is made anew
	every  time.Duration // orphans, dead names, the server's settings
	orphan time.Duration // the age at which an entry is one
	dead   time.Duration // the time without an entry after which a name is removed
}

var usual = pace{grace: 3 * time.Second, renew: 15 * time.Second, every: time.Minute, orphan: 5 * time.Minute, dead: 5 * time.Minute}

// Inbox is the shared inbox of all processes with the same Redis and prefix.
// Make it with New; its methods may be called from any number of goroutines.
type Inbox struct {
	cfg  Config
	pace pace
	log  *slog.Logger
	book book

	mu       sync.Mutex
	sessions []*session // that read, oldest first
}

// New returns an Inbox. It connects to nothing: a Redis that is away does not
// keep a process from starting. Its errors are faults of the Config, joined.
func New(c Config) (*Inbox, error) {
	c.Prefix = cmp.Or(c.Prefix, "settle")
	c.Block = cmp.Or(c.Block, 2*time.Second)
	c.TakeOver = cmp.Or(c.TakeOver, 15*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	err := errors.Join(
		within("Block", c.Block, 10*time.Millisecond, time.Minute),
		within("TakeOver", c.TakeOver, 100*time.Millisecond, time.Hour),
	)
	if len(c.Client.InitAddress) == 0 {
		err = errors.Join(err, errors.New("redis inbox: no address of a server"))
	}
	if strings.ContainsAny(c.Prefix, "{} \r\n\t") {
		err = errors.Join(err, fmt.Errorf("redis inbox: Prefix %q: want no braces and no white space", c.Prefix))
	}
	if err != nil {
		return nil, err
	}
	c.Client = options(c.Client)
	return &Inbox{cfg: c, pace: usual, log: c.Logger, book: newBook()}, nil
}

func within(name string, is, least, most time.Duration) error {
	if least <= is && is <= most {
		return nil
	}
	return fmt.Errorf("redis inbox: %s is %v: want %v to %v", name, is, least, most)
}

// options are those of the user, with ours where they said nothing. The library
// would repeat reads whose reply was lost.
func options(o rueidis.ClientOption) rueidis.ClientOption {
	o.DisableRetry, o.DisableCache = true, true
	o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, 2*time.Second)
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, 3*time.Second)
	o.PipelineMultiplex = cmp.Or(o.PipelineMultiplex, -1)
	o.ReadBufferEachConn = cmp.Or(o.ReadBufferEachConn, 64<<10)
	o.WriteBufferEachConn = cmp.Or(o.WriteBufferEachConn, 64<<10)
	o.ClientName = cmp.Or(o.ClientName, "settle-inbox")
	o.Sentinel.TopologyRefreshInterval = cmp.Or(o.Sentinel.TopologyRefreshInterval, 5*time.Second)
	return o
}

// Address is where one submission is to be answered: the field answer.redis of a
// submission.
type Address struct {
	Stream   string `json:"stream"`   // for the answer
	Progress string `json:"progress"` // for signs of life
	Ticket   string `json:"ticket"`   // comes back with both
}

// Address returns where the given attempt of a job is to be answered. It asks
// nobody.
func (i *Inbox) Address(job, attempt settle.ID) Address {
	s := int(attempt[len(attempt)-1]) % Shards
	return Address{i.stream(s, "inbox"), i.stream(s, "progress"), job.String() + "." + attempt.String()}
}

func (i *Inbox) stream(shard int, what string) string {
	return fmt.Sprintf("%s:{%d}:%s", i.cfg.Prefix, shard, what)
}

// keys are the streams by shard. Progress goes first: where both are read at
// once, a sign of life comes before the answer that followed it.
func (i *Inbox) keys() (shards [][]string) {
	for s := range Shards {
		shards = append(shards, []string{i.stream(s, "progress"), i.stream(s, "inbox")})
	}
	return shards
}
