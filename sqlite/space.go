package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

const (
	// plenty is how much room makes a closer look unnecessary: more than the
	// write-ahead log ever holds.
	plenty = 256 << 20
	// spaceLook is how often the volume is looked at.
	spaceLook = time.Second
	// makeRoomStep is how many ended jobs are removed in one transaction.
	makeRoomStep = 500
)

// noSpace says that the file is at its limit of bytes, or its volume at what is
// kept free: an ErrFull that removing ended jobs may cure.
type noSpace struct{ why string }

func (e *noSpace) Error() string { return settle.ErrFull.Error() + ": " + e.why }

// Unwrap makes it an ErrFull.
func (e *noSpace) Unwrap() error { return settle.ErrFull }

// checkSpace refuses new jobs that would eat into the room for the work that
// drains the store.
func (r *room) checkSpace(t *tx, bytes int64) error {
	if t.s.cfg.MaxBytes > 0 {
		if left, err := t.fileLeft(); err != nil {
			return err
		} else if left < bytes {
			return &noSpace{fmt.Sprintf("%s of the database file's limit of %s are left for new jobs; wait until some have ended, remove dead ones (settle dead drop), or raise the limit",
				bytesText(max(left, 0)), bytesText(t.s.cfg.MaxBytes))}
		}
	}
	if t.s.cfg.KeepFree < 0 {
		return nil
	}
	bytes *= 2 // once in the log, once in the file
	if r.grant(t.s, bytes) {
		return nil
	}
	left, err := t.volumeLeft()
	if err != nil || left >= bytes {
		return err
	}
	return &noSpace{fmt.Sprintf("the volume of %s has %s for new jobs beside the %s that are kept for the work that drains it; wait until some have ended, or free some space",
		t.s.path, bytesText(max(left, 0)), bytesText(r.kept()))}
}

// grant says that there is plenty of room without a closer look.
func (r *room) grant(s *Store, bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.look(s) {
		return true // the volume does not say: SQLite's own "full" remains
	}
	r.free -= bytes
	return r.free > r.keep+plenty
}

// look reads the volume, at most once a second; false if it does not say.
func (r *room) look(s *Store) bool {
	if time.Since(r.looked) < spaceLook {
		return true
	}
	total, free, err := volume(s.path)
	if err != nil || total == 0 {
		return false
	}
	keep := s.cfg.KeepFree
	if keep == 0 { // small volumes keep more: the log alone takes some MiB
		keep = max(min(total/10, 2<<30), min(total/4, 32<<20))
	}
	r.looked, r.free, r.keep = time.Now(), free, keep
	return true
}

func (r *room) kept() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keep
}

// fileLeft is how many bytes of MaxBytes new jobs may still fill: a tenth, at
// most 64 MiB, is room for the work that drains it.
func (t *tx) fileLeft() (int64, error) {
	limit := t.s.cfg.MaxBytes
	used, err := t.pages("page_count")
	if err != nil {
		return 0, err
	}
	unused, err := t.pages("freelist_count")
	return limit - min(limit/10, 64<<20) - used + unused, err
}

// volumeLeft is how many bytes may still be written before what is kept free
// is touched. Pages of the file that hold nothing count as free; what stands in
// the log will still be written to the file.
func (t *tx) volumeLeft() (int64, error) {
	unused, err := t.pages("freelist_count")
	r := &t.s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free + unused - t.s.logSize() - r.keep, err
}

// pages reads a number of pages, as bytes.
func (t *tx) pages(pragma string) (int64, error) {
	n, err := number(t, "pragma "+pragma)
	if err != nil {
		return 0, err
	}
	size, err := number(t, `pragma page_size`)
	return n * size, err
}

// crowded: what has ended fills the room for the work that drains the store.
func (t *tx) crowded() (bool, error) {
	if t.s.cfg.MaxBytes > 0 {
		if left, err := t.fileLeft(); err != nil || left < 0 {
			return err == nil, err
		}
	}
	if t.s.cfg.KeepFree < 0 || t.s.room.grant(t.s, 0) {
		return false, nil
	}
	left, err := t.volumeLeft()
	return left < 0, err
}

// makeRoom removes succeeded and cancelled jobs before their time, oldest end
// first, counted; dead ones and those of an unfinished run never.
func (t *tx) makeRoom() (removed int, err error) {
	rows, err := t.prunable(`e.state <> 4 and e.at <= ?`, t.now, makeRoomStep)
	if err != nil {
		return 0, err
	}
	return len(rows), t.remove(rows)
}

// drain lets ended jobs make room for the outcomes that are still to come, at
// most once a second. Its errors are not the caller's: his outcome is stored.
func (s *Store) drain(ctx context.Context) {
	s.room.mu.Lock()
	due := time.Since(s.room.drained) > spaceLook
	if due {
		s.room.drained = time.Now()
	}
	s.room.mu.Unlock()
	for n := 1; due && n > 0; {
		if s.write(ctx, "make room", func(t *tx) error {
			n = 0
			over, err := t.crowded()
			if err == nil && over {
				n, err = t.makeRoom()
			}
			return err
		}) != nil {
			return
		}
	}
}

// bytesText is a number of bytes for people.
func bytesText(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d KiB", n>>10)
	}
}
