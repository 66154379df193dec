//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

// shown is a "settle demo hang" in a process of its own, with a TMPDIR of its own.
type shown struct {
	*process
	out syncBuffer
	dir string
}

func show(t *testing.T, args ...string) *shown {
	t.Helper()
	s := &shown{process: command(t, 0, append([]string{"demo", "hang"}, args...)...), dir: t.TempDir()}
	s.Env = append(s.Env, "TMPDIR="+s.dir)
	s.Stdout = &s.out
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Wait(); close(s.done) }()
	t.Cleanup(func() { _ = s.Process.Kill(); <-s.done })
	return s
}

// left fails the test when anything is left of it.
func (s *shown) left(t *testing.T) {
	t.Helper()
	if files, err := os.ReadDir(s.dir); err != nil || len(files) > 0 {
		t.Errorf("it left %v, %v", files, err)
	}
}

// inOrder are patterns that must be found one after the other.
func inOrder(t *testing.T, text string, patterns ...string) {
	t.Helper()
	rest := text
	for _, p := range patterns {
		at := regexp.MustCompile(p).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("no %q behind what comes before it in:\n%s", p, text)
		}
		rest = rest[at[1]:]
	}
}

// ending is how both demos end when settle keeps its promise.
var ending = []string{
	`\d\.\ds  settle  ends the job: succeeded\n`,
	`\d\.\ds  naive   looks: nothing is there: so there is no result yet, waits on\n`,
	`\nnaive   still waiting, the notice was read and is gone\n`,
	`settle  succeeded after [\d.]+m?s: 2 attempts on 2 nodes\n`,
	`ATTEMPT  STEP    NODE   REASON      ERROR\n`,
	`1        render  gpu-1  step_error  gpu_oom: CUDA out of memory: 11 GiB needed, 8 GiB there\n`,
	`2        render  gpu-2  ok          -\n`,
	`the books balance\n`,
	`promised and kept: .*\n$`,
}

func TestDemoHangShowsTheHangAndTheEnd(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := show(t)
	if code := s.exits(t); code != exitOK || s.err.String() != "" {
		t.Fatalf("exit %d: %s%s", code, s.out.String(), s.err.String())
	}
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %s", took)
	}
	inOrder(t, s.out.String(), append([]string{
		`by HTTP callbacks`,
		`settle  hands the film to node gpu-1; the job is parked\n`,
		`gpu-1   answers by (mailbox|callback): status "error", gpu_oom: CUDA out of memory`,
		`settle  records step_error on node gpu-1: gpu_oom: CUDA out of memory: .*; tries again in .*, elsewhere\n`,
		`settle  hands the film to node gpu-2`,
		`gpu-2   answers by callback: status "done", 240 frames`,
	}, ending...)...)
	inOrder(t, s.out.String(), `naive   .*: reads an answer, which deletes it: status "error": so there is no result yet, waits on\n`)
	if strings.Contains(s.out.String(), "\x1b") {
		t.Error("colours, and no terminal")
	}
	s.left(t)
}

func TestDemoHangByRedisLeavesNothingThere(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do("SET", "mine", "stays")
	s := show(t, "--redis", "redis://"+redis.Addr())
	if code := s.exits(t); code != exitOK || s.err.String() != "" {
		t.Fatalf("exit %d: %s%s", code, s.out.String(), s.err.String())
	}
	inOrder(t, s.out.String(), append([]string{`by Redis streams`, `gpu-2   answers by stream: status "done"`}, ending...)...)
	for command, least := range map[string]int{"xadd": 2, "publish": 1, "getdel": 2, "subscribe": 1} {
		if n := redis.Calls(command); n < least {
			t.Errorf("%s ran %d times, want at least %d", command, n, least)
		}
	}
	if n := redis.Int("DBSIZE"); n != 1 {
		t.Errorf("%d keys are left: %v", n, redis.Do("KEYS", "*"))
	}
	s.left(t)
}

// misreading is a judge with the fault of the incident: what is no result is
// taken for none yet.
func misreading(ticket mailbox.Ticket, doc []byte) (mailbox.Answer, error) {
	a, err := mailbox.ContractJudge(ticket, doc)
	if mailbox.IsFinal(err) {
		return a, mailbox.ErrNotReady
	}
	return a, err
}

// credulous is a judge that takes a failure for a success.
func credulous(ticket mailbox.Ticket, doc []byte) (mailbox.Answer, error) {
	a, err := mailbox.ContractJudge(ticket, doc)
	if mailbox.IsFinal(err) {
		return mailbox.Answer{Output: []byte(`{"frames":0}`)}, nil
	}
	return a, err
}

// TestDemoHangSaysWhenSettleBreaksItsPromise: a demo that cannot fail shows nothing.
func TestDemoHangSaysWhenSettleBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		judge mailbox.Judge
		says  string
	}{
		"the failure is misread": {misreading, "not kept: the job has not ended within 3s: It has been awaiting the answer of step render from node gpu-1"},
		"the failure is success": {credulous, "not kept: it took 1 attempt on 1 node, not 2 on 2 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			h := newHang(newApp(nil, &out, &errs, func(string) string { return "" }))
			h.judge, h.show, h.limit = c.judge, 3*time.Second, 3*time.Second
			err := h.run(t.Context())
			if code := exitCode(&app{ran: true}, err); code != exitFailed || !strings.Contains(err.Error(), c.says) {
				t.Errorf("exit %d: %v", code, err)
			}
			if strings.Contains(out.String(), "promised and kept") {
				t.Error(out.String())
			}
		})
	}
}

// TestBrokenNamesWhatIsNotAsPromised, one thing each.
func TestBrokenNamesWhatIsNotAsPromised(t *testing.T) {
	good := func() (settle.Job, settle.Books) {
		return ended(settle.Succeeded, settle.EndOK, func(j *settle.Job) {
			j.Attempts = []settle.Attempt{{N: 1, Step: "render", Node: smallNode, Reason: settle.AttemptStepError, Error: "gpu_oom: CUDA out of memory"}}
			j.Steps = []settle.StepResult{{Step: "render", Node: largeNode}}
		}), settle.Books{Accepted: 1, Succeeded: 1}
	}
	if j, b := good(); len(broken(j, b)) > 0 {
		t.Fatal(broken(j, b))
	}
	for name, spoil := range map[string]func(*settle.Job, *settle.Books){
		"the job is dead":                                 func(j *settle.Job, _ *settle.Books) { j.State, j.Reason = settle.Dead, settle.EndExhausted },
		"it took 1 attempt":                               func(j *settle.Job, _ *settle.Books) { j.Attempts = nil },
		"is recorded as no_result on node gpu-1":          func(j *settle.Job, _ *settle.Books) { j.Attempts[0].Reason = settle.AttemptNoResult },
		"is recorded as step_error on node gpu-1: failed": func(j *settle.Job, _ *settle.Books) { j.Attempts[0].Error = "failed" },
		"the last attempt is recorded as ok on node gpu-1": func(j *settle.Job, _ *settle.Books) {
			j.Steps[0].Node = smallNode
		},
		"the books do not show": func(_ *settle.Job, b *settle.Books) { b.Vanished = 1 },
	} {
		j, b := good()
		spoil(&j, &b)
		if faults := strings.Join(broken(j, b), "\n"); !strings.Contains(faults, name) {
			t.Errorf("%s: %q", name, faults)
		}
	}
}

func TestDemoHangIsBoundedWhereRedisIsNot(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	evicting := redistest.Start(t, "maxmemory-policy allkeys-lru", "maxmemory 50mb")
	redis.Pause()
	defer redis.Resume()
	for name, c := range map[string]struct {
		url, says string
		code      int
	}{
		"no server":       {"redis://u:hunter22@" + faultproxy.FreeAddr(t), "connection refused", exitFailed},
		"a silent one":    {"redis://" + redis.Addr(), "--redis: the server does not answer", exitFailed},
		"one that evicts": {"redis://" + evicting.Addr(), "maxmemory-policy is allkeys-lru", exitFailed},
		"a wrong word":    {"redis://u:hunter22@" + evicting.Addr(), "WRONGPASS", exitFailed},
		"no scheme":       {"127.0.0.1:6379", "want an address such as redis://", exitUsage},
		"another scheme":  {"http://u:hunter22@127.0.0.1:6379", "want an address such as redis://", exitUsage},
		"no host":         {"redis://", "want an address such as redis://", exitUsage},
		"no port":         {"redis://u:hunter22@127.0.0.1:x", "want an address such as redis://", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			a := run(t, newDB(t), "", "demo", "hang", "--redis", c.url)
			if a.code != c.code || !strings.Contains(a.err, c.says) || strings.Contains(a.err, "hunter22") || a.out != "" {
				t.Errorf("exit %d: %s%s", a.code, a.out, a.err)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestDemoHangEndsWhenRedisDiesUnderIt(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var out syncBuffer
	h := newHang(newApp(nil, &out, io.Discard, func(string) string { return "" }))
	h.url, h.limit = "redis://"+redis.Addr(), 4*time.Second
	done := make(chan error)
	began := time.Now()
	go func() { done <- h.run(t.Context()) }()
	waitFor(t, "the job to be parked", func() bool { return strings.Contains(out.String(), "parked") })
	redis.Pause()
	defer redis.Resume()
	err := <-done
	if err == nil || !strings.Contains(err.Error(), "the job has not ended within 4s") || !strings.Contains(err.Error(), "could not be removed, and expires in 10 min") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	redis.Resume()
	keys, _ := redis.Do("KEYS", "settle-demo-*").([]any)
	for _, key := range keys {
		if ttl := redis.Int("TTL", key.(string)); ttl < 0 {
			t.Errorf("%s stays for ever", key)
		}
	}
}

func TestASignalEndsTheDemoCleanly(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		s := show(t, "--redis", "redis://"+redis.Addr())
		waitFor(t, "the job to be parked", func() bool { return strings.Contains(s.out.String(), "parked") })
		began := time.Now()
		_ = s.Process.Signal(sig)
		if code := s.exits(t); code != exitFailed || !strings.Contains(s.err.String(), "stopped by a signal: "+sig.String()+"; what the demo made is removed") {
			t.Errorf("%s: exit %d: %s", sig, code, s.err.String())
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: it took %s to end", sig, took)
		}
		if n := redis.Int("DBSIZE"); n != 0 {
			t.Errorf("%s: %d keys are left", sig, n)
		}
		s.left(t)
	}
}

// shut is an output whose reader has gone.
type shut struct{}

// Write fails.
func (shut) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestADemoNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	began := time.Now()
	err := newHang(newApp(nil, shut{}, io.Discard, func(string) string { return "" })).run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "standard output was closed by its reader") || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestTheTimeLineHasColoursWhereTheyAreWanted(t *testing.T) {
	var b strings.Builder
	tell := &telling{w: &b, colour: true, began: time.Now()}
	tell.line("settle", "x")
	if !strings.Contains(b.String(), "\x1b[32msettle") || !strings.HasSuffix(b.String(), plainly+"\n") {
		t.Errorf("%q", b.String())
	}
	for name, c := range map[string]struct {
		terminal bool
		env      map[string]string
		want     bool
	}{
		"a terminal":        {true, nil, true},
		"a file":            {false, nil, false},
		"NO_COLOR":          {true, map[string]string{"NO_COLOR": "1"}, false},
		"an empty NO_COLOR": {true, map[string]string{"NO_COLOR": ""}, true},
		"a dumb terminal":   {true, map[string]string{"TERM": "dumb"}, false},
	} {
		if got := colourful(c.terminal, func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
