package sqlite

import (
	"math"
	"unicode/utf16"
)

// The kinds of b-tree pages.
const (
	indexInner = 2
	tableInner = 5
	indexLeaf  = 10
	tableLeaf  = 13
)

// cell is one entry of a page.
type cell struct {
	row     int64  // of table leaves
	payload []byte // nil = none, or it cannot be read
}

// tree lists the pages of one b-tree that hold rows, in order, and counts those
// that cannot be read. No page is looked at twice.
func (im *image) tree(root uint32, seen map[uint32]bool, index bool) (pages []uint32, bad int) {
	todo := []uint32{root}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		kind, ok := im.kind(n)
		if !ok || seen[n] || index != (kind == indexInner || kind == indexLeaf) {
			bad++
			continue
		}
		seen[n] = true
		if kind != tableInner {
			pages = append(pages, n)
		}
		if kind == tableLeaf || kind == indexLeaf {
			continue
		}
		p := im.page(n)
		children := []uint32{be.Uint32(p[start(n)+8:])}
		for _, at := range im.cells(n, p) {
			children = append(children, be.Uint32(p[at:]))
		}
		todo = append(todo, children[0]) // the last one: taken last
		for i := len(children) - 1; i > 0; i-- {
			todo = append(todo, children[i])
		}
	}
	return pages, bad
}

// start is where a page's head begins: the first page has the file's before it.
func start(n uint32) int {
	if n == 1 {
		return 100
	}
	return 0
}

func (im *image) kind(n uint32) (byte, bool) {
	p := im.page(n)
	if p == nil {
		return 0, false
	}
	switch k := p[start(n)]; k {
	case indexInner, tableInner, indexLeaf, tableLeaf:
		return k, true
	}
	return 0, false
}

// cells returns the places of a page's entries, as far as they can be right.
func (im *image) cells(n uint32, p []byte) (places []int) {
	head := start(n)
	first := head + 8
	if p[head] == indexInner || p[head] == tableInner {
		first += 4
	}
	for i := range int(be.Uint16(p[head+3:])) {
		if first+2*i+2 > im.usable {
			break
		}
		if at := int(be.Uint16(p[first+2*i:])); at >= first && at+4 <= im.usable {
			places = append(places, at)
		}
	}
	return places
}

// rows calls each for the entries of one page; nil values = a damaged entry.
func (im *image) rows(n uint32, each func(row int64, values []any) error) error {
	if p := im.page(n); p != nil {
		return im.rowsIn(n, p, each)
	}
	return nil
}

func (im *image) rowsIn(n uint32, p []byte, each func(row int64, values []any) error) error {
	for _, at := range im.cells(n, p) {
		c := im.cell(p, at, p[start(n)])
		if err := each(c.row, im.record(c.payload)); err != nil {
			return err
		}
	}
	return nil
}

func (im *image) cell(p []byte, at int, kind byte) (c cell) {
	if kind == indexInner {
		at += 4
	}
	size, n := uvarint(p[at:im.usable])
	if n == 0 || size > uint64(max(im.pages, 1))*uint64(im.size) {
		return c
	}
	at += n
	if kind == tableLeaf {
		row, n := uvarint(p[at:im.usable])
		if n == 0 {
			return c
		}
		c.row, at = int64(row), at+n
	}
	c.payload = im.payload(p, at, int(size), kind != tableLeaf)
	return c
}

// payload puts an entry's bytes together: its beginning stands in the page, the
// rest in a chain of overflow pages.
func (im *image) payload(p []byte, at, size int, index bool) []byte {
	most := im.usable - 35
	if index {
		most = (im.usable-12)*64/255 - 23
	}
	local := size
	if size > most {
		least := (im.usable-12)*32/255 - 23
		if local = least + (size-least)%(im.usable-4); local > most {
			local = least
		}
	}
	if at+local > im.usable || local < size && at+local+4 > im.usable {
		return nil
	}
	out := append(make([]byte, 0, min(size, 1<<16)), p[at:at+local]...)
	if local == size {
		return out
	}
	for next := be.Uint32(p[at+local:]); len(out) < size; { // each turn adds bytes: it ends
		over := im.page(next)
		if over == nil {
			return nil
		}
		out = append(out, over[4:4+min(size-len(out), im.usable-4)]...)
		next = be.Uint32(over)
	}
	return out
}

// record decodes a row's values: int64, float64, string, []byte or nil.
// A nil slice = it is damaged.
func (im *image) record(b []byte) []any {
	head, n := uvarint(b)
	if n == 0 || head > uint64(len(b)) || head < uint64(n) {
		return nil
	}
	types, body := b[n:head], b[head:]
	values := []any{}
	for len(types) > 0 {
		t, n := uvarint(types)
		if n == 0 {
			return nil
		}
		types = types[n:]
		v, size, ok := im.value(t, body)
		if !ok {
			return nil
		}
		values, body = append(values, v), body[size:]
	}
	return values
}

var intSizes = [...]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}

func (im *image) value(t uint64, b []byte) (v any, size int, ok bool) {
	switch {
	case t == 10 || t == 11:
		return nil, 0, false
	case t >= 12 && (t-12)/2 > uint64(len(b)):
		return nil, 0, false
	case t >= 12 && t%2 == 0:
		size = int(t-12) / 2
		return append([]byte{}, b[:size]...), size, true
	case t >= 12:
		size = int(t-13) / 2
		return im.text(b[:size]), size, true
	}
	if size = intSizes[t]; size > len(b) {
		return nil, 0, false
	}
	switch t {
	case 0:
		return nil, 0, true
	case 7:
		return math.Float64frombits(be.Uint64(b)), 8, true
	case 8, 9:
		return int64(t - 8), 0, true
	}
	n := int64(int8(b[0]))
	for _, c := range b[1:size] {
		n = n<<8 | int64(c)
	}
	return n, size, true
}

func (im *image) text(b []byte) string {
	if im.utf16 == nil {
		return string(b)
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = im.utf16.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// uvarint reads SQLite's variable-length integer; n = 0 if it is cut.
func uvarint(b []byte) (v uint64, n int) {
	for i, c := range b[:min(len(b), 9)] {
		if i == 8 {
			return v<<8 | uint64(c), 9
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
