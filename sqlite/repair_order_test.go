package sqlite

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/settle-go/settle"
)

func TestRowsOutOfOrderAreTheFewestThatBreakIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rows, want []int64 }{
		{nil, nil},
		{[]int64{1, 2, 3}, []int64{1, 2, 3}},
		{[]int64{1, 9, 3, 4}, []int64{1, 3, 4}},
		{[]int64{5, 6, 1, 8}, []int64{5, 6, 8}},
		{[]int64{7, 7, 8}, []int64{7, 8}},
		{[]int64{3, 4, 40, 6}, []int64{3, 4, 6}},
		{[]int64{3, 2, 1}, []int64{1}},
	} {
		var got []int64
		for _, at := range ascending(c.rows, math.MinInt64, math.MaxInt64) {
			got = append(got, c.rows[at])
		}
		check(t, slices.Equal(got, c.want), "of %v these stay: %v, want %v", c.rows, got, c.want)
	}
}

// A row whose number was damaged into another job's must not give that job its
// state: neither in the middle of a page, nor at its end, where the pages beside
// it tell.
func TestRepairGivesNoJobTheStateOfAnother(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 2000, 9)
	for _, back := range []int{1, 2, 10} { // from the end of the page
		path := newPath(t)
		spill(t, path, s.closed)
		from, to := renumbered(t, path, back)
		_, err := Repair(t.Context(), path)
		must(t, err)
		st := openAt(t, path)
		for id, was := range s.jobs {
			now := get(t, st, id)
			switch was.Fence.Handle {
			case from:
				check(t, now.State == settle.Dead && now.Reason == settle.EndTerminal, "the job whose row is damaged has lost its state: %s", now.State)
			case to:
				check(t, now.State == was.State && now.Counters == was.Counters && bytes.Equal(now.Output, was.Output), "job %d keeps its own state: %s %+v, want %s %+v", to, now.State, now.Counters, was.State, was.Counters)
			}
		}
	}
}

// renumbered damages the number of a row, so many from its page's end, of the
// ended jobs: into that of one some pages later.
func renumbered(t *testing.T, path string, back int) (from, to int64) {
	t.Helper()
	d := rawConn(t, path)
	root, err := number(d, `select rootpage from sqlite_schema where name = 'ended'`)
	must(t, err)
	must(t, d.c.Close())
	im, err := openImage(path)
	must(t, err)
	pages, _ := im.tree(uint32(root), map[uint32]bool{}, false)
	n := pages[len(pages)/2]
	p := im.page(n)
	cells := im.cells(n, p)
	at := cells[len(cells)-back]
	_, width := uvarint(p[at:])
	from = im.cell(p, at, tableLeaf).row
	later := im.numbers(pages[len(pages)/2+2])
	to = later[len(later)/2]
	must(t, im.close())
	check(t, from >= 128 && to < 1<<14 && from < to, "both numbers take two bytes: %d, %d", from, to)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(binary.BigEndian.AppendUint16(nil, uint16(to>>7<<8|0x8000|to&0x7f)), int64(n-1)*page+int64(at+width))
	must(t, err)
	must(t, f.Close())
	return from, to
}
