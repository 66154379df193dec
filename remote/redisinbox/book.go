package redisinbox

import (
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/internal/redact"
)

// book keeps what Status shows, and what was logged when.
type book struct {
	mu      sync.Mutex
	counts  counts
	facts   facts
	length  map[string]int64 // entries by stream
	strange []Strange
	whole   bool      // reading works
	broken  time.Time // since when it does not; zero = it never has
	lastErr string
	lastAt  time.Time
	logged  map[string]*logged
	told    bool // a line said that something is wrong, and none yet that it is well
}

// counts are of this process.
type counts struct {
	read, taken, looked, removed, unreadable, poisoned, connects, gaps int64
}

// logged is one kind of trouble.
type logged struct {
	at   time.Time // of the last line
	more int       // errors after it
}

const (
	mostStrange = 100
	quiet       = time.Minute // between two lines about one kind of trouble
)

func newBook() book { return book{length: map[string]int64{}, logged: map[string]*logged{}} }

// add counts something.
func (b *book) add(count func(*counts) *int64, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*count(&b.counts) += int64(n)
}

func (c *counts) ofRead() *int64     { return &c.read }
func (c *counts) ofTaken() *int64    { return &c.taken }
func (c *counts) ofLooked() *int64   { return &c.looked }
func (c *counts) ofRemoved() *int64  { return &c.removed }
func (c *counts) ofPoisoned() *int64 { return &c.poisoned }
func (c *counts) ofConnects() *int64 { return &c.connects }

// odd counts and keeps an entry whose ticket cannot be read.
func (b *book) odd(s Strange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.unreadable++
	if len(b.strange) == mostStrange {
		b.strange = b.strange[1:]
	}
	b.strange = append(b.strange, s)
}

// lengths keeps the replies to XLEN.
func (b *book) lengths(keys []string, replies []rueidis.RedisResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, key := range keys {
		if length, err := replies[n].AsInt64(); err == nil {
			b.length[key] = length
		}
	}
}

// server keeps what the servers say of themselves, and reports whether that is new.
func (b *book) server(f facts) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := b.facts != f
	b.facts = f
	return news
}

// lost: reading has failed.
func (b *book) lost(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole {
		b.whole, b.broken = false, now
		b.counts.gaps++
	}
}

// recovered: everything is read.
func (b *book) recovered(log *slog.Logger, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole {
		return
	}
	b.whole = true
	if b.told && !b.broken.IsZero() {
		log.Info("redis inbox: it is read again", "after", now.Sub(b.broken))
	} else if b.told {
		log.Info("redis inbox: it is read")
	}
	b.told = false
}

// kindOf: an outage shows in everything at once, and needs one line.
func kindOf(doing string) string {
	switch doing {
	case "deliver", "connect", "read":
		return doing
	}
	return "upkeep"
}

// trouble keeps an error, and logs it if the last line about its kind is old.
func (b *book) trouble(log *slog.Logger, doing string, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastErr, b.lastAt = doing+": "+redact.Error(err), now
	kind := kindOf(doing)
	l := b.logged[kind]
	if l == nil {
		l = &logged{}
		b.logged[kind] = l
	}
	if !l.at.IsZero() && now.Sub(l.at) < quiet {
		l.more++
		return
	}
	log.Warn("redis inbox: trouble", "doing", doing, "error", redact.Error(err), "unlogged", l.more)
	*l, b.told = logged{at: now}, true
}
