//go:build linux

package kill

import (
	"bytes"
	"encoding/binary"
)

// The write-ahead log of SQLite: a head of 32 bytes, then frames of a head of 24
// bytes and a page. A frame counts if it has the salts of the log's head.
// Source: https://www.sqlite.org/fileformat2.html#the_write_ahead_log and
// https://www.sqlite.org/walformat.html
const (
	pageSize  = 4096
	logHead   = 32
	frameHead = 24
	frameSize = frameHead + pageSize
)

// wal is a log, with what its index knows of it.
type wal struct {
	log    []byte
	whole  int // frames of this generation that stand in the log, from the first on
	known  int // frames that are committed and whose commit has been synced, at full
	synced int // frames that a checkpoint has had synced before it copied them
}

// readWAL looks at files of which nobody writes any more.
func readWAL(f files) wal {
	w := wal{log: f[theLog]}
	if len(w.log) < logHead {
		return w
	}
	salts := w.log[16:24]
	for at := logHead; at+frameSize <= len(w.log) && bytes.Equal(w.log[at+8:at+16], salts); at += frameSize {
		w.whole++
	}
	index := f[theIndex]
	if len(index) < 136 || !bytes.Equal(index[:48], index[48:96]) || !bytes.Equal(index[32:40], salts) {
		return w // the index is written after the log: of this generation it knows nothing yet
	}
	w.known = min(int(binary.NativeEndian.Uint32(index[16:])), w.whole)
	w.synced = min(int(binary.NativeEndian.Uint32(index[128:])), w.known)
	return w
}

// end is where a frame ends.
func end(frame int) int { return logHead + frame*frameSize }

// pages are the numbers of the pages that the first frames hold.
func (w wal) pages(frames int) (out []int) {
	for i := range frames {
		out = append(out, int(binary.BigEndian.Uint32(w.log[end(i):])))
	}
	return out
}
