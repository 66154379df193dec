package xrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// How long the rows of a run stay: while it is unfinished as good as for ever,
// else from its last end on.
const (
	keepUnfinished = 10 * 365 * 24 * time.Hour
	keepFinished   = 30 * 24 * time.Hour
)

// runNote is what is kept about a run, beside its jobs.
type runNote struct {
	Command  string    `json:"command"` // for people
	Sum      string    `json:"sum"`     // of the command, to compare
	Folder   string    `json:"folder"`
	Started  time.Time `json:"started"`           // first of all starts
	Finished time.Time `json:"finished,omitzero"` // zero: it is unfinished
}

// readNote reads it; false if there is none.
func readNote(ctx context.Context, st settle.Store, queue string) (runNote, bool, error) {
	n, err := st.Note(ctx, queue)
	if err != nil {
		return runNote{}, false, fmt.Errorf("read the note of the run: %w", err)
	}
	var note runNote
	if len(n.Text) == 0 || json.Unmarshal(n.Text, &note) != nil {
		return runNote{}, false, nil
	}
	return note, true, nil
}

// writeNote stores it, and with it how long the rows stay.
func writeNote(ctx context.Context, st settle.Store, queue string, note runNote) error {
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	keep := keepUnfinished
	if !note.Finished.IsZero() {
		keep = keepFinished
	}
	if err := st.SetNote(ctx, settle.Note{Queue: queue, Text: text, Keep: keep}); err != nil {
		return fmt.Errorf("write the note of the run: %w", err)
	}
	return nil
}

// commandSum names a command, to tell a change.
func commandSum(command []string) string {
	h := sha256.New()
	for _, s := range command {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
