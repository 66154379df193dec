package redisbox

import (
	"errors"

	"github.com/settle-go/settle/mailbox"
)

// Box waits for answers in Redis. See [mailbox.Box] for Run, Await, Watch and
// Stats.
type Box struct {
	*mailbox.Box
	source *source
}

// New returns a box. It connects to nobody, so the server need not be up: Run
// does, again and again. The error names every fault of c.
func New(c Config) (*Box, error) {
	c, err := c.ready()
	s := &source{config: c, line: line{option: c.Redis}}
	box, werr := mailbox.New(s, c.Wait)
	if err := errors.Join(err, werr); err != nil {
		return nil, err
	}
	return &Box{box, s}, nil
}

// Close closes the connections. Call it after Run, and when everything is
// acknowledged: Ack and budgets use them too. Whatever comes later fails.
func (b *Box) Close() { b.source.line.close() }

// Key is the usual name for the key of a submission: "settle:answer:", the job,
// a dot, the attempt. Any other will do that belongs to one submission.
func Key(t mailbox.Ticket) string { return "settle:answer:" + t.Job + "." + t.Attempt }
