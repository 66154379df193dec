package mailbox

import (
	"context"
	"errors"
)

// Source is where documents lie, one under each key. Package redisbox has the
// one on Redis. Every method bounds itself, is safe for concurrent use, and may
// fail at any time: a box goes on.
type Source interface {
	// Read looks at each key and returns as many looks, in their order. Unless it
	// is destructive, it reads no further than a byte beyond [MaxDocument].
	Read(ctx context.Context, keys []string) []Found
	// Remove removes what lies under a key if it is still doc, as [Found] has it,
	// in one step. removed is false, without an error, where something else or
	// nothing lies there.
	Remove(ctx context.Context, key string, doc []byte) (removed bool, err error)
	// Listen subscribes, calls up once it has, and then nudge for every key that
	// is said to be worth a look, both quick. It returns when the subscription is
	// lost, found dead by a heartbeat, or ctx ends; [ErrNoNudges] means that
	// trying again soon is of no use.
	Listen(ctx context.Context, up func(), nudge func(key string)) error
	// Check asks whether the source keeps what it is given. An error is a refusal
	// to use it, and names what recovers; a note is for people. A source that
	// cannot be asked is a note.
	Check(ctx context.Context) (note string, err error)
	// Destructive reports whether Read removes what it finds.
	Destructive() bool
}

// ErrNoNudges: subscribing is not permitted. A box then works by polling alone.
var ErrNoNudges = errors.New("subscribing is not permitted")

// Found is what one look at one key came to.
type Found struct {
	There bool   // something lies there, be it empty
	Doc   []byte // what lies there; more than MaxDocument bytes mean: at least so much
	// Err is why the look failed. A *[ConsumedError] is final. With every other
	// error nothing was consumed, and the wait goes on.
	Err error
}
