package xrun

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

// open looks at what earlier starts of the run have left, says it, and makes
// it ready to go on.
func (s *start) open(ctx context.Context) error {
	note, known, err := readNote(ctx, s.store, s.queue())
	if err != nil {
		return err
	}
	rows, err := countRows(ctx, s.store, s.queue())
	if err != nil {
		return err
	}
	if s.Forget {
		if rows, err = s.openAnew(ctx, rows); err != nil {
			return err
		}
		known = false
	}
	if !known {
		note = runNote{Started: time.Now().UTC()}
	}
	taken, err := s.takeOver(ctx)
	if err != nil {
		return err
	}
	again := 0
	if s.RetryDead {
		if again, err = s.redriveDead(ctx); err != nil {
			return err
		}
	}
	s.announce(note, rows, taken, again)
	s.note = note
	s.note.Command, s.note.Sum, s.note.Folder = child.Line(s.Command), commandSum(s.Command), s.folder()
	open := live(rows) + int64(again)
	s.tally = newTally(open, sum(rows) > 0)
	if open > 0 || !known {
		s.note.Finished = time.Time{}
		return writeNote(ctx, s.store, s.queue(), s.note)
	}
	return nil
}

// openAnew forgets what the run has done.
func (s *start) openAnew(ctx context.Context, rows map[settle.State]int64) (map[settle.State]int64, error) {
	if n := live(rows); n > 0 {
		queue := child.Quote(s.queue()) + dbFlag(s.DB)
		return nil, usagef("--forget: run %s is not finished, %s still to run: finish it first (the same command without --forget), call the rest off (settle cancel --queue %s --yes), or choose another name with --name",
			s.Name, are(n), queue)
	}
	n, err := s.forget(ctx)
	if err != nil {
		return nil, err
	}
	s.con.say("forgot %s of run %s", items(int64(n)), s.Name)
	return nil, nil
}

// unfinished notes, once, that a run that was finished has new items.
func (s *start) unfinished(ctx context.Context) error {
	if s.note.Finished.IsZero() {
		return nil
	}
	s.note.Finished = time.Time{}
	return writeNote(ctx, s.store, s.queue(), s.note)
}

// live counts the items that have not ended.
func live(rows map[settle.State]int64) int64 {
	return rows[settle.Pending] + rows[settle.Running] + rows[settle.Awaiting]
}

// announce says what is run, and how it stands.
func (s *start) announce(note runNote, rows map[settle.State]int64, taken, again int) {
	was := endsText(rows)
	switch {
	case sum(rows) == 0:
		s.con.say("run %s, %d at a time (%s)", s.Name, s.Jobs, s.DB)
	case live(rows) == 0 && !note.Finished.IsZero():
		s.con.say("run %s finished %s (%s): %s; only new items run, --forget runs all again",
			s.Name, note.Finished.Local().Format("2006-01-02 15:04"), humanize.Time(note.Finished), was)
	default:
		if was != "" {
			was += ", "
		}
		s.con.say("run %s goes on, %d at a time (%s): %s%s to run", s.Name, s.Jobs, s.DB, was, humanize.Comma(live(rows)))
	}
	if taken > 0 {
		s.con.say("took over %s from a settle run that was killed", items(int64(taken)))
	}
	if again > 0 {
		s.con.say("%s that had died %s again", items(int64(again)), runs(again))
	} else if s.RetryDead {
		s.con.say("no item had died")
	}
	if note.Sum != "" && note.Sum != commandSum(s.Command) {
		s.con.say("the command is another one than before: it was %s", note.Command)
	}
	if note.Folder != "" && note.Folder != s.folder() {
		s.con.say("the folder is another one than before: it was %s", child.Quote(note.Folder))
	}
}

// endsText says how items have ended: "1,200 succeeded, 3 dead".
func endsText(n map[settle.State]int64) string {
	text := ""
	for _, st := range endStates {
		if n[st] > 0 || st == settle.Succeeded && n[settle.Dead]+n[settle.Cancelled] > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%s %s", humanize.Comma(n[st]), st)
		}
	}
	return text
}

// ---- plurals

func items(n int64) string {
	if n == 1 {
		return "1 item"
	}
	return humanize.Comma(n) + " items"
}

func are(n int64) string {
	if n == 1 {
		return "1 item is"
	}
	return humanize.Comma(n) + " items are"
}

func runs(n int) string {
	if n == 1 {
		return "runs"
	}
	return "run"
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
