package sqlite

import (
	"context"
	"slices"
)

// Jobs get their numbers one by one, and no number twice: the last one is how
// many were ever accepted. What is neither saved nor counted as removed is
// lost, also if nothing of it can be seen.

// numbers is what is known of them before rows are saved.
type numbers struct {
	last int64   // that the file itself names; -1 = unreadable
	met  []int64 // that were seen elsewhere, wanted if last is unreadable
}

const (
	maxJob     = int64(1) << 40 // a thousand jobs a second, for 35 years
	leastBytes = 64             // of a job in the file
	cutTo      = 1000           // the file may have been so much bigger
	mostMet    = 1 << 20        // numbers that are kept
	widest     = int64(1000)    // gap between numbers that belong together
)

// seen remembers the number of a job of which there was a row.
func (s *salvage) seen(t *table, job int64) {
	switch t.name {
	case "body", "live", "ended", "attempt", "step", "inbox":
		s.meet(job)
	}
}

func (s *salvage) meet(job int64) {
	if s.last < 0 && job > 0 && len(s.met) < mostMet {
		s.met = append(s.met, job)
	}
}

// count finds out what the file says of numbers, before any row is saved.
func (s *salvage) count() {
	size := int64(max(s.im.pages, s.im.said)) * int64(s.im.size)
	if s.im.wal != nil {
		if info, err := s.im.wal.Stat(); err == nil {
			size += info.Size()
		}
	}
	last, least := s.sequence()
	if most := s.removed() + (size/leastBytes+1)*cutTo; last > maxJob || last > most && s.tables["tally"].bad == 0 {
		last, least = -1, 0
	}
	s.last = last
	s.meet(least)
	for _, n := range s.inner {
		p := s.im.page(n)
		for _, at := range s.im.cells(n, p) { // a child's page, then the highest number below it
			if job, ok := uvarint(p[at+4 : s.im.usable]); ok > 0 {
				s.meet(int64(job))
			}
		}
	}
	p := make([]byte, s.im.size)
	for _, at := range s.im.behind {
		if _, err := s.im.wal.ReadAt(p, at); err == nil {
			job, _ := s.im.sequenceIn(0, p)
			s.last = max(s.last, job)
		}
	}
}

// removed is how many jobs the file says were removed.
func (s *salvage) removed() (sum int64) {
	t := s.tables["tally"]
	for _, n := range t.pages {
		_ = s.im.rows(n, func(row int64, values []any) error {
			if t.fits(values) {
				sum = min(sum+max(t.named(row, values).int("n"), 0), maxJob)
			}
			return nil
		})
	}
	return sum
}

// sequence reads the last number that was given out; -1 = it cannot be read.
// Where nothing leads to its page, any page can be it: if old ones may be among
// them, the number is only the least that it can be.
func (s *salvage) sequence() (last, least int64) {
	named := false
	root := s.sequenceRoot
	for _, o := range s.objects {
		if o.name == "sqlite_sequence" && o.root > 0 {
			root, named = o.root, true
		}
	}
	last, whole := s.im.sequenceIn(root, s.im.page(root))
	if last >= 0 {
		return last, last
	}
	if named && whole {
		return 0, 0 // no job was ever stored
	}
	for _, n := range s.orphans {
		job, _ := s.im.sequenceIn(n, s.im.page(n))
		least = max(least, job)
	}
	if s.stale || least == 0 {
		return -1, least
	}
	return least, least
}

// sequenceIn reads the number from a page; -1 = it does not stand there. whole =
// no entry of the page is damaged.
func (im *image) sequenceIn(n uint32, p []byte) (last int64, whole bool) {
	last = -1
	if p == nil || p[start(n)] != tableLeaf {
		return last, false
	}
	whole = true
	_ = im.rowsIn(n, p, func(_ int64, v []any) error {
		whole = whole && len(v) == 2
		if len(v) == 2 && v[0] == "body" {
			if job, ok := v[1].(int64); ok {
				last = max(last, job)
			}
		}
		return nil
	})
	return last, whole
}

// believe finds the highest number that a job had. A number in a damaged row may
// be damaged itself: one above the last number counts if the job's state has it
// too. Where the last number is unreadable, each may follow another closely.
func (s *salvage) believe() (highest int64, err error) {
	const agreed = `select max(coalesce((select max(n) from live), 0), coalesce((select max(n) from ended), 0))`
	if highest, err = number(s.to, agreed); err != nil {
		return 0, err
	}
	known, err := number(s.to, `select (select count(*) from body) + (select coalesce(sum(n), 0) from tally)`)
	highest = max(highest, s.last, known)
	if err != nil || s.last >= 0 {
		return highest, err
	}
	if err := s.to.query(`select n from body where n > ? order by n limit ?`, func(r row) error {
		s.met = append(s.met, r.int(0))
		return nil
	}, highest, mostMet); err != nil {
		return 0, err
	}
	slices.Sort(s.met)
	for _, job := range s.met {
		if job > highest && job-highest <= widest {
			highest = job
		}
	}
	return highest, nil
}

// renumber gives jobs whose number cannot be right one that is free. None of
// them has a state.
func (s *salvage) renumber(highest int64) error {
	var wrong []int64
	if err := s.to.query(`select n from body where n > ?`, func(r row) error { wrong = append(wrong, r.int(0)); return nil }, highest); err != nil {
		return err
	}
	free := int64(0)
	return s.together(func() error {
		for _, n := range wrong {
			next, err := number(s.to, `select n + 1 from (select ?1 as n union all select n from body where n > ?1) b
				where not exists (select 1 from body where n = b.n + 1) order by n limit 1`, free)
			if err != nil {
				return err
			}
			free = next
			for _, table := range []string{"body", "attempt", "step", "inbox"} {
				if _, err := s.to.exec(`update `+table+` set n = ? where n = ?`, free, n); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// close sees to it that no number of a lost job is given out again, and writes
// off the jobs that could not be saved: the books of the new file balance from
// here on.
func (s *salvage) close(context.Context) error {
	const day = 24 * 60 * 60 * 1_000_000
	highest, err := s.believe()
	if err == nil {
		err = s.renumber(highest)
	}
	if err != nil {
		return err
	}
	known, err := number(s.to, `select (select count(*) from body) + (select coalesce(sum(n), 0) from tally)`)
	if err != nil {
		return err
	}
	r := s.report
	r.EndUnknown = s.last < highest || len(s.im.behind) > 0
	for _, t := range r.Tables {
		r.RemovedUnknown = r.RemovedUnknown || t.Table == "tally" && t.Pages+t.Damaged > 0
	}
	r.Highest, r.Lost = highest, highest-known
	if _, err = s.to.exec(`delete from sqlite_sequence where name = 'body'`); err == nil {
		_, err = s.to.exec(`insert into sqlite_sequence (name, seq) values ('body', ?)`, highest)
	}
	if err == nil && r.Lost > 0 {
		_, err = s.to.exec(`insert into tally (queue, day, state, n) values (0, ?, ?, ?) on conflict do update set n = n + excluded.n`,
			s.now/day, writtenOff, r.Lost)
	}
	return err
}
