package remote_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/worker"
)

func TestFaultsOfTheConfigAreNamed(t *testing.T) {
	good := [][]byte{secret(1)}
	for _, one := range []struct {
		name string
		remote.Config
		want []string // each must be named; none = it is good
	}{
		{"nothing", remote.Config{}, []string{"no way for answers"}},
		{"callbacks", remote.Config{Callback: "https://jobs.example/answers", Secrets: good}, nil},
		{"an inbox", remote.Config{Inbox: &box{}}, nil},
		{"no secret", remote.Config{Callback: "https://jobs.example"}, []string{"needs Secrets", "openssl rand"}},
		{"a short secret, and no address", remote.Config{Callback: "jobs.example", Secrets: [][]byte{secret(1), []byte("short")}},
			[]string{"Callback is no address", "secret 2 has 5 bytes"}},
		{"a query", remote.Config{Callback: "https://jobs.example/?a=b", Secrets: good}, []string{"Callback is no address"}},
		{"another scheme", remote.Config{Callback: "redis://jobs.example", Secrets: good}, []string{"Callback is no address"}},
		{"a short secret that nobody uses", remote.Config{Inbox: &box{}, Secrets: [][]byte{{}}}, []string{"secret 1 has 0 bytes"}},
	} {
		t.Run(one.name, func(t *testing.T) {
			_, err := remote.New(nil, one.Config)
			named(t, err, one.want)
		})
	}
}

func named(t *testing.T, err error, want []string) {
	t.Helper()
	if (err == nil) != (len(want) == 0) {
		t.Fatalf("error %v, want %q", err, want)
	}
	for _, part := range want {
		holds(t, "the error names "+part+": "+err.Error(), contains(err.Error(), part))
	}
}

func TestFaultsOfAPoolAreNamed(t *testing.T) {
	hub, err := remote.New(nil, remote.Config{Inbox: &box{}})
	if err != nil {
		t.Fatal(err)
	}
	node := remote.Node{Name: "a", URL: "http://a.example"}
	for _, one := range []struct {
		name, pool string
		remote.PoolConfig
		want []string
	}{
		{"good", "gpu", remote.PoolConfig{Nodes: []remote.Node{node}}, nil},
		{"good, with a function", "cpu", remote.PoolConfig{Nodes: []remote.Node{{Name: "a"}}, Submit: func(context.Context, remote.Submission) error { return nil }}, nil},
		{"everything", "", remote.PoolConfig{Nodes: []remote.Node{{}, node, node, {Name: "b\u202e", URL: "b"}}, SubmitTimeout: -1, Retries: -1, Breaker: breaker.Config{Failures: -1}},
			[]string{`its name is empty`, `node "": its name`, `node "a" is there twice`, `node "b\u202e": its name`, `node "b\u202e": its URL`, "SubmitTimeout", "Retries", "Failures"}},
		{"no nodes", "none", remote.PoolConfig{}, []string{"it has no nodes"}},
		{"too much", "much", remote.PoolConfig{Nodes: []remote.Node{node}, SubmitTimeout: 2 * time.Hour, Retries: 11}, []string{"SubmitTimeout", "Retries"}},
		{"no URL", "url", remote.PoolConfig{Nodes: []remote.Node{{Name: "a"}}}, []string{"its URL is no address"}},
		{"the same name again", "gpu", remote.PoolConfig{Nodes: []remote.Node{node}}, []string{`pool "gpu" is there already`}},
	} {
		t.Run(one.name, func(t *testing.T) {
			_, err := hub.Pool(one.pool, one.PoolConfig)
			named(t, err, one.want)
		})
	}
}

// Nothing of a secret is in what the hub tells of its faults.
func TestP12SecretsAreNotTold(t *testing.T) {
	_, err := remote.New(nil, remote.Config{Callback: "https://user:swordfish@jobs.example/?token=sesame", Secrets: [][]byte{[]byte("hunter2")}})
	holds(t, "faults are told", err != nil)
	for _, s := range []string{"swordfish", "sesame", "hunter2"} {
		holds(t, s+" is told: "+err.Error(), !contains(err.Error(), s))
	}
}

func TestAHubIsAttachedOnce(t *testing.T) {
	bubble(t, setup{serve: func(r *rig, w *worker.Worker) {
		r.hub.Attach(w)
		remote.Handle(w, render, r.pool, remote.Step{})
		r.hub.Attach(w)
	}}, func(r *rig) { r.parked(r.enqueue()) })
}

// A step that is called outside of a handler cannot be submitted.
func TestCallNeedsAHandler(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		_, err := remote.Call(r.Context(), r.pool, &worker.Job[in]{}, remote.Step{Name: "s"})
		holds(r, "it is refused", err != nil && strings.Contains(err.Error(), "handler"))
		is(r, "submissions", len(r.net.all(settle.ID{})), 0)
		is(r, "places taken at breakers", r.breaker("a").Probes+r.breaker("b").Probes, 0)
	})
}

func TestFatesAreListed(t *testing.T) {
	seen := map[remote.Fate]bool{}
	for _, f := range remote.Fates {
		holds(t, "a fate stands twice or is empty: "+string(f), !seen[f] && f != "")
		seen[f] = true
	}
	is(t, "fates", len(seen), 9)
}
