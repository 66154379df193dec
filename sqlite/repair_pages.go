package sqlite

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
)

// image is a damaged database as bytes: the file, with the pages that its
// write-ahead log holds in front of it. SQLite gives up a whole subtree when
// one page above it is damaged; here every page is read for itself.
//
// Source: sqlite.org/fileformat2.html; all numbers are big-endian.
type image struct {
	db, wal *os.File // wal may be nil
	size    int      // of a page
	usable  int      // of it
	pages   uint32
	utf16   binary.ByteOrder // nil = UTF-8
	inLog   map[uint32]int64 // page → place of its newest committed copy
	said    uint32           // pages, by the file's head
	behind  []int64          // places of pages behind a damaged one in the log: lost commits
}

const defaultPageSize = 4096

var be = binary.BigEndian

func openImage(path string) (_ *image, err error) {
	im := &image{inLog: map[uint32]int64{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, im.close())
		}
	}()
	if im.db, err = os.Open(path); err != nil {
		return nil, err
	}
	info, err := im.db.Stat()
	if err != nil {
		return nil, err
	}
	if im.wal, err = os.Open(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		im.wal = nil
	} else if err != nil {
		return nil, err
	}
	inLog := im.readLog()
	head := make([]byte, 100)
	im.size = max(inLog, defaultPageSize)
	if at, ok := im.inLog[1]; ok {
		_, _ = im.wal.ReadAt(head, at)
	} else {
		_, _ = im.db.ReadAt(head, 0) // a short file leaves zeros
	}
	im.usable = im.size
	if sizeInHead, ok := pageSize(head); ok && (inLog == 0 || inLog == sizeInHead) {
		im.size, im.usable = sizeInHead, sizeInHead-int(head[20])
		im.said = be.Uint32(head[28:])
		im.utf16 = map[uint32]binary.ByteOrder{2: binary.LittleEndian, 3: binary.BigEndian}[be.Uint32(head[56:])]
	}
	im.pages = max(im.pages, uint32((info.Size()+int64(im.size)-1)/int64(im.size)))
	return im, nil
}

func (im *image) close() error {
	var faults []error
	for _, f := range []*os.File{im.db, im.wal} {
		if f != nil {
			faults = append(faults, f.Close())
		}
	}
	return errors.Join(faults...)
}

// pageSize reads a file's head, unless that is damaged.
func pageSize(head []byte) (int, bool) {
	if string(head[:16]) != magic {
		return 0, false
	}
	size := int(be.Uint16(head[16:]))
	if size == 1 {
		size = 65536
	}
	fixed := head[21] == 64 && head[22] == 32 && head[23] == 32
	return size, fixed && size >= 512 && size&(size-1) == 0 && int(head[20]) <= size-480
}

// page reads one page; pages count from 1. nil = it cannot be read.
func (im *image) page(n uint32) []byte {
	if n < 1 || n > im.pages {
		return nil
	}
	p := make([]byte, im.size)
	if at, ok := im.inLog[n]; ok {
		if _, err := im.wal.ReadAt(p, at); err == nil {
			return p
		}
		return nil
	}
	if got, _ := im.db.ReadAt(p, int64(n-1)*int64(im.size)); got == 0 {
		return nil
	}
	return p // the last page of a cut file keeps what is left of it
}

// readLog finds the committed pages of the write-ahead log, up to the first
// frame whose check sum is wrong: as SQLite does. It returns the page size, or
// 0 if there is no readable log.
func (im *image) readLog() int {
	head := make([]byte, 32)
	if im.wal == nil {
		return 0
	}
	if _, err := im.wal.ReadAt(head, 0); err != nil || be.Uint32(head)&^1 != 0x377f0682 {
		return 0
	}
	sum := logSum{order: binary.LittleEndian}
	if be.Uint32(head)&1 == 1 {
		sum.order = binary.BigEndian
	}
	size := int(be.Uint32(head[8:]))
	if sum.add(head[:24]); !sum.is(head[24:]) || size < 512 || size > 65536 || size&(size-1) != 0 {
		return 0
	}
	frame := make([]byte, 24+size)
	open := map[uint32]int64{} // since the last commit
	for at := int64(32); ; at += int64(len(frame)) {
		_, err := im.wal.ReadAt(frame, at)
		sum.add(frame[:8])
		if sum.add(frame[24:]); err != nil || string(frame[8:16]) != string(head[16:24]) || !sum.is(frame[16:]) {
			im.lookBehind(at+int64(len(frame)), frame, string(head[16:24]))
			return size
		}
		open[be.Uint32(frame)] = at + 24
		if pages := be.Uint32(frame[4:]); pages > 0 {
			im.pages = pages
			for n, place := range open {
				im.inLog[n] = place
			}
			clear(open)
		}
	}
}

// lookBehind finds out whether commits are lost behind a damaged frame. A power
// cut can tear the last commit, which nobody was told of: two more are a loss.
func (im *image) lookBehind(at int64, frame []byte, salt string) {
	commits := 0
	var places []int64
	for ; ; at += int64(len(frame)) {
		if _, err := im.wal.ReadAt(frame, at); err != nil {
			break
		}
		if string(frame[8:16]) != salt {
			continue
		}
		if places = append(places, at+24); be.Uint32(frame[4:]) > 0 {
			commits++
		}
	}
	if commits > 1 {
		im.behind = places
	}
}

// logSum is the running check sum of a write-ahead log.
type logSum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (s *logSum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s.s0 += s.order.Uint32(b) + s.s1
		s.s1 += s.order.Uint32(b[4:]) + s.s0
	}
}

func (s *logSum) is(b []byte) bool { return s.s0 == be.Uint32(b) && s.s1 == be.Uint32(b[4:]) }

// freePages lists the pages that hold nothing. Stale rows may stand in them.
// whole = the list was read to its end and has as many pages as it should.
func (im *image) freePages() (free map[uint32]bool, whole bool) {
	free = map[uint32]bool{}
	first := im.page(1)
	if first == nil {
		return free, false
	}
	if _, ok := pageSize(first); !ok {
		return free, false
	}
	for trunk := be.Uint32(first[32:]); trunk != 0; {
		p := im.page(trunk)
		if p == nil || free[trunk] || int(be.Uint32(p[4:])) > im.usable/4-2 {
			return free, false
		}
		free[trunk] = true
		for i := range be.Uint32(p[4:]) {
			free[be.Uint32(p[8+4*i:])] = true
		}
		trunk = be.Uint32(p)
	}
	return free, uint32(len(free)) == be.Uint32(first[36:])
}
