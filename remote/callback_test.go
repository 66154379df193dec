package remote_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/remote"
)

func TestSignatures(t *testing.T) {
	for _, one := range []struct {
		name   string
		header func(s sub, doc string) string
		good   bool
	}{
		{"right", func(s sub, doc string) string { return remote.Sign(s.key(), []byte(doc)) }, true},
		{"in upper case", func(s sub, doc string) string { return strings.ToUpper(remote.Sign(s.key(), []byte(doc))) }, true},
		{"beside one that is not ours", func(s sub, doc string) string { return "v1=00,v2=11 " + remote.Sign(s.key(), []byte(doc)) }, true},
		{"none", func(sub, string) string { return "" }, false},
		{"of another document", func(s sub, doc string) string { return remote.Sign(s.key(), []byte(doc+" ")) }, false},
		{"with another key", func(s sub, doc string) string { return remote.Sign(strings.Repeat("0", 64), []byte(doc)) }, false},
		{"without its version", func(s sub, doc string) string { return strings.TrimPrefix(remote.Sign(s.key(), []byte(doc)), "v1=") }, false},
		{"cut", func(s sub, doc string) string { return remote.Sign(s.key(), []byte(doc))[:60] }, false},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				doc := s.doc(done)
				said := r.send(http.MethodPost, s.url(), one.header(s, doc), doc)
				if one.good {
					is(r, "HTTP status", said.Code, 200)
					r.ended("signed well", r.job(id), settle.Succeeded, settle.EndOK)
					return
				}
				is(r, "HTTP status", said.Code, 422)
				holds(r, "the reply says why: "+said.Body.String(), strings.Contains(said.Body.String(), "not signed"))
				is(r, "fate", r.fates(remote.Malformed), 1)
				is(r, "reason", attempt(r, r.job(id), 0).Reason, settle.AttemptProtocol)
				is(r, "failures at the breaker", r.breaker(s.Node).Failures, 1)
			})
		})
	}
}

// What openssl makes of the same bytes, with the key's text as it stands.
func TestTheKeyIsTheTextItself(t *testing.T) {
	got := remote.Sign("6f1c0b5e9a7d4c3821f0e6d5b4a39281706f5e4d3c2b1a0998877665544332ab", []byte("hello\n"))
	is(t, "signature", got, "v1=871ae4435b6bfe150979af633e934e9bdd7a8cb29b5e690aab6a47cd7e2cc077")
}

func TestSecretsAreRotated(t *testing.T) {
	old, new := secret(1), secret(2)
	for _, one := range []struct {
		name    string
		secrets [][]byte
		status  int
		end     settle.State
	}{
		{"a new one in front of the old", [][]byte{new, old}, 200, settle.Succeeded},
		{"the old one taken away", [][]byte{new}, 404, settle.Awaiting},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{hub: remote.Config{Secrets: [][]byte{old}}}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				is(r, "error of Run", r.stop(), nil)
				r.set.hub.Secrets = one.secrets
				r.start()
				is(r, "HTTP status of an answer to the old address", r.answer(s, done), one.status)
				is(r, "state", r.job(id).State, one.end)
				next := r.parked(r.enqueue())
				is(r, "HTTP status of an answer to a new address", r.answer(next, done), 200)
				holds(r, "the first secret signs", next.key() != s.key())
			})
		})
	}
	t.Run("the key of the other secret does not fit the address", func(t *testing.T) {
		bubble(t, setup{hub: remote.Config{Secrets: [][]byte{old}}}, func(r *rig) {
			s := r.parked(r.enqueue())
			is(r, "error of Run", r.stop(), nil)
			r.set.hub.Secrets = [][]byte{new, old}
			r.start()
			other := r.parked(r.enqueue())
			doc := s.doc(done)
			is(r, "HTTP status", r.send(http.MethodPost, s.url(), remote.Sign(other.key(), []byte(doc)), doc).Code, 422)
		})
	})
}

// An address that the hub has not given out leads nowhere, whatever is posted.
func TestP3OtherAddressesTouchNothing(t *testing.T) {
	watch := &watched{}
	bubble(t, setup{store: watch.over}, func(r *rig) {
		id, other := r.enqueue(), r.enqueue()
		s, o := r.parked(id), r.parked(other)
		before := r.shown(id) + r.shown(other)
		watch.calls.Store(0)
		url := s.url()
		cut := strings.LastIndex(url, "/")
		token, otherToken := url[cut+1:], o.url()[strings.LastIndex(o.url(), "/")+1:]
		for _, at := range []string{
			url[:cut], url[:cut+1], url + "/", url + "x", url[:len(url)-1], url[:cut+1] + otherToken, url[:cut+1] + strings.ToUpper(token),
			strings.Replace(url, s.Job.String(), o.Job.String(), 1), strings.Replace(url, s.Attempt.String(), o.Attempt.String(), 1),
			strings.Replace(url, s.Job.String(), "x", 1), strings.Replace(url, "/v1/", "/v2/", 1), strings.Replace(url, "/v1/", "/", 1),
			"https://jobs.example/", "https://jobs.example/answers/v1", "https://jobs.example/answers/v1///", "https://jobs.example/answers/v1/" + settle.ID{}.String() + "/" + settle.ID{}.String() + "/",
		} {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				doc := s.doc(done)
				is(r, method+" "+at, r.send(method, at, remote.Sign(s.key(), []byte(doc)), doc).Code, 404)
			}
		}
		is(r, "calls of the store", watch.calls.Load(), 0)
		is(r, "the jobs", r.shown(id)+r.shown(other), before)
		is(r, "documents that were looked at", len(r.hub.Stats().Fates), 0)
	})
}

func TestOnlyPostIsTaken(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		s := r.parked(r.enqueue())
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			said := r.send(method, s.url(), "", "")
			is(r, method, said.Code, 405)
			is(r, method+": Allow", said.Header().Get("Allow"), "POST")
		}
		is(r, "state", r.job(s.Job).State, settle.Awaiting)
	})
}

// Whatever path the hub is mounted at: behind a prefix, or with it cut off.
func TestTheHubIsMountedAnywhere(t *testing.T) {
	for _, at := range []string{"https://jobs.example", "https://jobs.example/", "http://jobs.example:8080/a/v1/b/", "https://jobs.example/answers"} {
		bubble(t, setup{hub: remote.Config{Callback: at}}, func(r *rig) {
			id := r.enqueue()
			s := r.parked(id)
			holds(r, "the address begins as was said: "+s.url(), strings.HasPrefix(s.url(), strings.TrimRight(at, "/")+"/v1/"))
			is(r, "HTTP status", r.answer(s, progress), 200)
			s.Answer["url"] = "https://jobs.example" + s.url()[strings.LastIndex(s.url(), "/v1/"):]
			is(r, "HTTP status without the prefix", r.answer(s, done), 200)
			is(r, "state", r.job(id).State, settle.Succeeded)
		})
	}
}

func TestErrorsAreProblemDetails(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		for _, one := range []struct {
			method, url, doc string
			status           int
			reason           string
		}{
			{http.MethodPost, s.url() + "x", done, 404, "unknown"},
			{http.MethodGet, s.url(), "", 405, "method"},
			{http.MethodPost, s.url(), "{", 422, "malformed"},
			{http.MethodPost, s.url(), "{", 409, "stale"}, // what nobody could read was not recorded
			{http.MethodPost, s.url(), s.doc(done), 409, "stale"},
		} {
			said := r.send(one.method, one.url, remote.Sign(s.key(), []byte(one.doc)), one.doc)
			is(r, "HTTP status", said.Code, one.status)
			var p struct {
				Type, Title, Reason, Detail string
				Status                      int
			}
			is(r, "error", json.Unmarshal(said.Body.Bytes(), &p), nil)
			is(r, "content type", said.Header().Get("Content-Type"), "application/problem+json")
			is(r, "status in the body", p.Status, one.status)
			is(r, "reason", p.Reason, one.reason)
			is(r, "title", p.Title, http.StatusText(one.status))
			holds(r, "detail", p.Detail != "")
		}
	})
}

// Two answers at once: one counts.
func TestP3OfTwoAnswersAtOnceOneCounts(t *testing.T) {
	bubble(t, setup{pool: never}, func(r *rig) {
		for range 20 {
			id := r.enqueue()
			s := r.parked(id)
			var all sync.WaitGroup
			var codes [4]int
			for n, says := range []string{done, failed, useless, `"status":"failed"`} {
				all.Go(func() { codes[n] = r.answer(s, says) })
			}
			all.Wait()
			j := r.job(id)
			is(r, "P3 answers that count", len(j.Steps)+len(j.Attempts), 1)
			first := 200 // what the others hear: after an answer that nobody can read, that they come too late
			if codes[3] == 422 {
				first = 409
				is(r, "recorded as", attempt(r, j, 0).Reason, settle.AttemptProtocol)
			}
			for n, code := range codes {
				holds(r, fmt.Sprint("a HTTP status: ", codes), code == first || n == 3 && code == 422)
			}
		}
		is(r, "fates that count", r.fates(remote.Applied)+r.fates(remote.Malformed), 20)
		is(r, "others", r.fates(remote.Duplicate)+r.fates(remote.Stale)+r.fates(remote.Ended), 60)
	})
}

// The fence is the address, whatever the judge knows of attempts.
func TestP3AJudgeThatKnowsNoAttempts(t *testing.T) {
	bubble(t, setup{pool: remote.PoolConfig{Judge: mailbox.StatusJudge}}, func(r *rig) {
		id := r.enqueue()
		first := r.parked(id)
		r.nap(policy.Wait + sweep + backoff)
		second := r.parked(id)
		is(r, "P3 HTTP status of a late answer to the first", r.post(first, `{"status":"done"}`).Code, 409)
		is(r, "P3 the job waits for the second", r.parked(id).Attempt, second.Attempt)
		is(r, "HTTP status of the second's", r.post(second, `{"status":"done","frames":240}`).Code, 200)
		is(r, "output", string(r.job(id).Output), `{"status":"done","frames":240}`)
	})
}

// A process that does not know the pool leaves the answer to others.
func TestAnAnswerForAnotherProcess(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		other, err := remote.New(r.st, remote.Config{Callback: "https://jobs.example/answers", Secrets: [][]byte{secret(7)}})
		is(r, "error", err, nil)
		ours := r.hub
		r.hub = other
		is(r, "HTTP status", r.answer(s, done), 503)
		is(r, "fate", r.fates(remote.Elsewhere), 1)
		is(r, "state", r.job(id).State, settle.Awaiting)
		r.hub = ours
		is(r, "HTTP status at the one that knows it", r.answer(s, done), 200)
	})
}
