package mailbox

import "context"

// Delivery is an answer that was judged and still lies where it lay. The zero
// Delivery is none.
type Delivery struct {
	// Answer is what the finished step left; zero beside an error.
	Answer
	// Key is where it lies.
	Key string

	box *Box // nil = nothing to acknowledge
	doc []byte
}

// Ack deletes the answer, if what lies there is still, byte for byte, what was
// judged; anything else stays. Call it after what you made of the answer is
// committed. It goes on for up to Config.LastLook when ctx ends, and after Run.
//
// An error says that the answer may still lie there: it expires by itself, and
// whoever waits for it again gets it again. So commit by compare-and-set. The
// zero Delivery, and one of a destructive box, have nothing to delete.
func (d Delivery) Ack(ctx context.Context) error {
	if d.box == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.box.config.LastLook)
	defer cancel()
	removed, err := d.box.source.Remove(ctx, d.Key, d.doc)
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	if removed {
		d.box.stats.Acked++
	}
	return err
}
