package xrun

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

func TestOutputInTheOrderOfTheInputDoesNotHoldCommandsUp(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo start $1 >> log; if [ $1 = 1 ]; then while [ $(wc -l < log) -lt 40 ]; do sleep 0.01; done; fi; echo "out $1"; test $1 != 7`)
	c.Ordered, c.Attempts = true, 1
	s := r.run(c, lines(40)) // the first ends only when all the others have begun
	var want strings.Builder
	for i := 1; i <= 40; i++ {
		if i != 7 {
			fmt.Fprintf(&want, "out %d\n", i)
		}
	}
	s.want(t, 3, want.String())
	s.says(t, "out 7") // of a dead item, on standard error
}

// A first item that fails comes behind all others in the queue; with more of
// them than may wait it still gets its turn. So do items that an earlier start
// without -k has stored.
func TestTheOrderIsKeptHoweverFarBehindTheFirstItemFalls(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`test $1 = 1 && ! test -e again && touch again && exit 75; echo $1`)
	c.Ordered, c.window, c.Jobs = true, 20, 3
	r.run(c, lines(60)).want(t, 0, lines(60))

	r = newRunner(t)
	unordered := r.sh(`exit 75`)
	unordered.Attempts, unordered.Jobs, unordered.Backoff = 5, 1, time.Millisecond
	stop := make(chan os.Signal, 1)
	unordered.Stop = stop
	st, err := sqlite.Open(r.db, r.conf)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	go func() {
		await(t, "all items to be stored", func() bool {
			n, err := countRows(context.Background(), st, "run/test")
			return err == nil && sum(n) == 60
		})
		stop <- os.Interrupt
	}()
	r.on(st, unordered, strings.NewReader(lines(60))).want(t, 1, "")
	r.on(st, c, strings.NewReader(lines(60))).want(t, 0, lines(60))
}

func TestTheOrderGoesOnWhenSomebodyElseEndsAnItem(t *testing.T) {
	r := newRunner(t)
	st, err := sqlite.Open(r.db, r.conf)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := r.sh(`test $1 != 1 || exit 75; echo $1`)
	c.Ordered, c.Backoff = true, time.Hour // the first waits for its second attempt
	go func() {
		await(t, "the first attempt", func() bool {
			j, err := st.Job(context.Background(), jobID("test", []byte("1"), 0))
			return err == nil && j.State == settle.Pending && j.Attempt == 1
		})
		settle.NewClient(st).Cancel(context.Background(), jobID("test", []byte("1"), 0), "not wanted")
	}()
	s := r.on(st, c, strings.NewReader("1\n2\n3\n"))
	s.want(t, 3, "2\n3\n")
	s.says(t, "cancelled: cancelled")
}

func TestEachItemsOutputIsWholeAndTagged(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`for i in 1 2 3 4 5; do echo "$1 line $i"; sleep 0.01; done; printf end`)
	c.Jobs, c.Tag = 8, true
	s := r.run(c, lines(16))
	if s.code != 0 {
		t.Fatal(s.err)
	}
	got := strings.Split(strings.TrimSuffix(s.out, "\n"), "\n")
	for i := 0; i+6 <= len(got); i += 6 {
		item, _, _ := strings.Cut(got[i], "\t")
		for n := range 5 {
			if want := fmt.Sprintf("%s\t%s line %d", item, item, n+1); got[i+n] != want {
				t.Fatalf("line %q, want %q", got[i+n], want)
			}
		}
		if got[i+5] != item+"\tend" {
			t.Fatalf("line %q, want %q", got[i+5], item+"\tend")
		}
	}
	if len(got) != 16*6 {
		t.Errorf("%d lines, want %d", len(got), 16*6)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestP6AnItemWhoseOutputCannotBeWrittenIsNotDone(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo "out $1"`)
	c.Ordered, c.Out = true, fullDisk{}
	r.run(c, lines(3))
	for _, j := range r.jobs() {
		if j.State != settle.Pending || j.Charged() != 0 {
			t.Errorf("item %s is %s after %d charged attempts, want pending and none", j.Input, j.State, j.Charged())
		}
	}
	c.Out = io.Discard
	r.run(c, lines(3)).want(t, 0, "out 1\nout 2\nout 3\n")
}

func TestLargeOutputsPassWhole(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`head -c 10000000 /dev/zero | tr '\0' "$1"; echo`)
	c.Ordered, c.Jobs = true, 4
	s := r.run(c, "a\nb\nc\nd\n")
	want := ""
	for _, l := range "abcd" {
		want += strings.Repeat(string(l), 10_000_000) + "\n"
	}
	if s.code != 0 || s.out != want {
		t.Fatalf("code %d, %d bytes, want %d", s.code, len(s.out), len(want))
	}
}
