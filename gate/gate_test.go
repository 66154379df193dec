package gate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
)

// store is a source in which one event lies.
type store struct {
	mu     sync.Mutex
	event  settle.ID
	at     time.Time
	fault  error
	asked  int
	tenant string
}

func (s *store) append(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.event, s.at, s.tenant = settle.NewID(), time.Now(), tenant
}

func (s *store) report() { s.mu.Lock(); s.event = settle.ID{}; s.mu.Unlock() }

func (s *store) breaks(err error) { s.mu.Lock(); s.fault = err; s.mu.Unlock() }

func (s *store) Anchor(_ context.Context, _, tenant string, all bool) (settle.Anchor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.fault != nil || s.event.IsZero() || !all && tenant != s.tenant {
		return settle.Anchor{}, s.fault
	}
	return settle.Anchor{Job: s.event, Tenant: s.tenant, State: settle.Pending, Age: time.Since(s.at), Error: "HTTP 503 Service Unavailable"}, nil
}

func newGate(t *testing.T, s Source, c Config) *Gate {
	t.Helper()
	g, err := New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *Gate) state(t *testing.T, want State, tenant string) Answer {
	t.Helper()
	a := g.Ask(t.Context(), tenant)
	if a.State != want {
		t.Errorf("%q: the gate is %s, want %s: %s", tenant, a.State, want, a.Text())
	}
	return a
}

func TestP7TheGateFollowsTheOldestEventAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		g := newGate(t, s, Config{MaxAge: 5 * time.Minute})
		g.state(t, Open, "") // no event at all, read on demand
		s.append("acme")
		time.Sleep(5 * time.Minute)
		g.state(t, Open, "")
		time.Sleep(time.Millisecond)
		a := g.state(t, Shut, "")
		if a.Of != "acme" || a.Age <= 5*time.Minute || a.Error == "" || !strings.Contains(a.Text(), "acme") {
			t.Errorf("B-039 the answer says how old and which tenant: %+v", a)
		}
		time.Sleep(90 * 24 * time.Hour)
		g.state(t, Shut, "")
		s.report()
		g.state(t, Shut, "") // the reading is not a second old
		time.Sleep(time.Second)
		g.state(t, Open, "") // by itself
	})
}

func TestP7AReadingIsReusedForASecondAndGrowsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.append("acme")
		g := newGate(t, s, Config{MaxAge: 10 * time.Second})
		time.Sleep(9500 * time.Millisecond)
		g.state(t, Open, "")
		time.Sleep(600 * time.Millisecond)
		if a := g.state(t, Shut, ""); a.Age != 10100*time.Millisecond || s.asked != 1 {
			t.Errorf("the age is %s after %d questions", a.Age, s.asked)
		}
		var all sync.WaitGroup
		time.Sleep(time.Second)
		for range 50 {
			all.Go(func() { g.Ask(t.Context(), "") })
		}
		all.Wait()
		if s.asked != 2 {
			t.Errorf("fifty who ask at once asked the store %d times", s.asked-1)
		}
	})
}

func TestUnknownIsAThirdAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{fault: errors.New("dial postgres://u:hunter2@db/x: refused")}
		g := newGate(t, s, Config{MaxAge: time.Minute})
		if a := g.state(t, Unknown, ""); !strings.Contains(a.Text(), "not known") || strings.Contains(a.Text(), "hunter2") {
			t.Errorf("it says so, safely: %s", a.Text())
		}
		s.breaks(nil)
		s.append("")
		g.state(t, Open, "")
		s.breaks(errors.New("gone"))
		time.Sleep(maxBelieved)
		g.state(t, Open, "") // the last reading serves for ten seconds
		time.Sleep(time.Millisecond)
		g.state(t, Unknown, "")
		s.breaks(nil)
		g.state(t, Open, "")
	})
}

func TestTenantsHaveAnswersOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.append("acme")
		g := newGate(t, s, Config{MaxAge: time.Minute})
		time.Sleep(2 * time.Minute)
		g.state(t, Shut, "acme")
		g.state(t, Open, "other")
		g.state(t, Shut, "")
		for range maxTenants + 10 { // bounded
			g.Ask(t.Context(), settle.NewID().String())
		}
		if len(g.read) > maxTenants {
			t.Errorf("%d readings are kept", len(g.read))
		}
	})
}

func TestP8OnlyWhatIsGuardedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.append("acme")
		time.Sleep(time.Hour)
		var passed atomic.Int64
		work := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed.Add(1) })
		g := newGate(t, s, Config{MaxAge: time.Minute, Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") }})
		ask := func(h http.Handler, method, path, tenant string) *http.Response {
			r := httptest.NewRequest(method, path, nil)
			r.Header.Set("Tenant", tenant)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result()
		}
		guarded := g.Guard(work)
		resp := ask(guarded, "POST", "/orders", "acme")
		var p map[string]any
		body, _ := io.ReadAll(resp.Body)
		if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "30" ||
			resp.Header.Get("Content-Type") != "application/problem+json" || p["tenant"] != "acme" || p["age_seconds"] != 3600.0 || p["last_error"] == "" {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
		if ask(guarded, "POST", "/orders", "other").StatusCode != 200 || ask(work, "POST", "/events", "acme").StatusCode != 200 || passed.Load() != 2 {
			t.Errorf("%d requests passed", passed.Load())
		}
		for _, c := range []struct {
			path   string
			status int
			says   string
		}{{"/gate", 503, "fail"}, {"/gate?tenant=other", 200, "pass"}, {"/gate?tenant=acme", 503, "fail"}} {
			resp := ask(g, "GET", c.path, "")
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || !strings.Contains(string(body), `"status":"`+c.says+`"`) || resp.Header.Get("Content-Type") != "application/health+json" {
				t.Errorf("%s: %d %s", c.path, resp.StatusCode, body)
			}
		}
		if resp := ask(g, "DELETE", "/gate", ""); resp.StatusCode != 405 {
			t.Errorf("DELETE: %d", resp.StatusCode)
		}
		s.breaks(errors.New("gone"))
		time.Sleep(time.Minute)
		if ask(guarded, "POST", "/orders", "acme").StatusCode != 503 || ask(g, "GET", "/gate", "").StatusCode != 503 {
			t.Error("unknown is shut unless it is said otherwise")
		}
		lenient := newGate(t, s, Config{OpenUnknown: true})
		if ask(lenient.Guard(work), "POST", "/orders", "acme").StatusCode != 200 || ask(lenient, "GET", "/gate", "").StatusCode != 200 {
			t.Error("unknown is open where it is said so")
		}
	})
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := New(&store{}, Config{MaxAge: time.Millisecond, Fresh: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "MaxAge") || !strings.Contains(err.Error(), "Fresh") {
		t.Error(err)
	}
}
