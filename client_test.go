package settle_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// What people type as a reason is text from outside, as error texts are.
func TestP12WhyOfACancelAndOfAHoldIsMadeSafe(t *testing.T) {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "settle.db"), sqlite.Config{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c, ctx := settle.NewClient(st), t.Context()
	got, err := c.Enqueue(ctx, settle.New{Kind: "k"})
	if err != nil {
		t.Fatal(err)
	}
	const why = "\x1b[2Jpassword=hunter2-hunter2 in /home/ann/secret.txt"
	j, err := c.Cancel(ctx, got[0].ID, why)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"note": j.Note}
	if err := c.Hold(ctx, "", "acme", time.Hour, why); err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(ctx, "", time.Hour, why); err != nil {
		t.Fatal(err)
	}
	holds, err := st.Holds(ctx)
	if err != nil || len(holds) != 2 {
		t.Fatalf("%d holds, %v", len(holds), err)
	}
	for _, h := range holds {
		texts["hold of "+h.Tenant] = h.Text
	}
	for where, text := range texts {
		if text == "" {
			t.Errorf("%s: nothing is left", where)
		}
		for _, raw := range []string{"\x1b", "hunter2", "/home"} {
			if strings.Contains(text, raw) {
				t.Errorf("%s: %q is stored, with %q", where, text, raw)
			}
		}
	}
}
