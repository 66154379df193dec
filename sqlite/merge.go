package sqlite

import "slices"

// merge walks several ordered queries as one, reading each in small pages.
type merge struct {
	c    *tx
	want int // rows that are likely to be taken
	from []*source
}

type source struct {
	query    string
	lane     any // bound first, if not nil
	stream   int64
	until    int64
	now      int64
	at, row  int64 // place of the last row read
	page     []candidate
	finished bool
}

func (m *merge) add(query string, lane any, stream, until, now int64) {
	m.from = append(m.from, &source{query: query, lane: lane, stream: stream, until: until, now: now, at: -1 << 62})
}

// next returns the row with the smallest (place, n) of all sources.
func (m *merge) next() (x candidate, ok bool, err error) {
	var best *source
	for _, s := range m.from {
		if err := s.fill(m.c, m.want/len(m.from)+1); err != nil {
			return x, false, err
		}
		if len(s.page) > 0 && (best == nil || less(s.page[0], best.page[0])) {
			best = s
		}
	}
	if best == nil {
		return x, false, nil
	}
	x = best.page[0]
	best.page = best.page[1:]
	return x, true, nil
}

func less(a, b candidate) bool { return a.at < b.at || a.at == b.at && a.n < b.n }

func (s *source) fill(c conn, size int) error {
	if len(s.page) > 0 || s.finished {
		return nil
	}
	args := []any{s.stream, s.at, s.row, s.until, s.now, min(size, 2000)}
	if s.lane != nil {
		args = slices.Insert(args, 0, s.lane)
	}
	s.page = s.page[:0]
	err := c.query(s.query, func(r row) error {
		x := candidateAt(r)
		x.at = r.int(candidateEnd)
		s.page = append(s.page, x)
		return nil
	}, args...)
	if len(s.page) == 0 {
		s.finished = true
	} else {
		last := s.page[len(s.page)-1]
		s.at, s.row = last.at, last.n
		s.finished = len(s.page) < min(size, 2000)
	}
	return err
}
