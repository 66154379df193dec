package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/remote"
)

// never is a breaker that counts and stays closed.
var never = remote.PoolConfig{Retries: 10, Breaker: breaker.Config{Failures: 1_000_000}}

// golden are the documents by which the contract is explained, of one verdict.
// They are made answers to a submission by putting its names in place of theirs.
func golden(t *testing.T, verdict string) (names []string, docs func(name string, s sub) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "mailbox", "testdata", "contract", verdict, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	texts := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		names, texts[name] = append(names, name), string(b)
	}
	return names, func(name string, s sub) string {
		return strings.NewReplacer("video-7", s.Job.String(), "a1b2c3", s.Attempt.String()).Replace(texts[name])
	}
}

// Every malformed document of the contract, by callback.
func TestP5EveryMalformedDocumentEndsItsWait(t *testing.T) {
	t.Parallel()
	names, doc := golden(t, "protocol")
	bubble(t, setup{pool: never}, func(r *rig) {
		for _, name := range names {
			r.malformed(name, func(s sub) string { return doc(name, s) })
		}
	})
	if len(names) < 80 {
		t.Errorf("%d documents, want 80 or more", len(names))
	}
}

// malformed answers a new job with a document that nobody can read.
func (r *rig) malformed(name string, doc func(sub) string) {
	r.Helper()
	id := r.enqueue()
	s := r.parked(id)
	failures, before := r.breaker(s.Node).Failures, r.fates(remote.Malformed)
	said := r.post(s, doc(s))
	is(r, name+": HTTP status", said.Code, 422)
	is(r, name+": fate", r.fates(remote.Malformed), before+1)
	j := r.job(id)
	is(r, name+": the wait has ended", j.State, settle.Pending)
	a := attempt(r, j, 0)
	is(r, name+": reason", a.Reason, settle.AttemptProtocol)
	is(r, name+": node", a.Node, s.Node)
	holds(r, name+": the text says what is wrong: "+a.Error, strings.HasPrefix(a.Error, "malformed answer to step render from node "+s.Node+": "))
	is(r, name+": P11 the breaker counts one failure", r.breaker(s.Node).Failures, failures+1)
	next := r.again(id)
	holds(r, name+": it is tried on another node", next.Node != s.Node)
	r.post(next, next.doc(`"status":"failed"`))
	r.ended(name+": P10 one retry, not more", r.job(id), settle.Dead, settle.EndExhausted)
}

// The good ones, too, are taken as the contract says.
func TestEveryOtherDocumentIsTakenAsItIsMeant(t *testing.T) {
	for verdict, want := range map[string]struct {
		status int
		fate   remote.Fate
	}{
		"done": {200, remote.Applied}, "error": {200, remote.Applied}, "progress": {200, remote.Progress}, "stale": {409, remote.Stale},
	} {
		t.Run(verdict, func(t *testing.T) {
			names, doc := golden(t, verdict)
			bubble(t, setup{pool: never}, func(r *rig) {
				for n, name := range names {
					id := r.enqueue()
					s := r.parked(id)
					is(r, name+": HTTP status", r.post(s, doc(name, s)).Code, want.status)
					is(r, name+": fate", r.fates(want.fate), n+1)
					is(r, name+": the wait has ended", r.job(id).State != settle.Awaiting, want.fate == remote.Applied)
					is(r, name+": failures at the breaker", r.breaker(s.Node).Failures, 0)
				}
			})
		})
	}
}

func TestDocumentsOfEverySize(t *testing.T) {
	for _, one := range []struct {
		name   string
		size   int
		status int
		words  string
	}{
		{"of 1 MiB", mailbox.MaxDocument, 200, ""},
		{"a byte larger", mailbox.MaxDocument + 1, 422, "too large (1048577 bytes)"},
		{"much larger", 5 << 20, 422, "too large (1048577 bytes)"}, // what was read of it
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				empty := len(s.doc(`"status":"done","output":""`))
				doc := s.doc(`"status":"done","output":"` + strings.Repeat("x", one.size-empty) + `"`)
				is(r, "HTTP status", r.post(s, doc).Code, one.status)
				j := r.job(id)
				if one.status == 200 {
					r.ended("B-054", j, settle.Succeeded, settle.EndOK)
					return
				}
				a := attempt(r, j, 0)
				is(r, "reason", a.Reason, settle.AttemptProtocol)
				holds(r, "it is told to be too large: "+a.Error, strings.HasSuffix(a.Error, one.words))
				is(r, "failures at the breaker", r.breaker(s.Node).Failures, 1)
			})
		})
	}
}

// What lies in the mailbox when it is not an answer at all.
func TestB023BrokenPayloadsAreBoundedFailures(t *testing.T) {
	for _, doc := range []string{"", "null", "[]", "{", "\xff", "\ufeff{\"v\":1}", "{}{}", "<html><h1>502 Bad Gateway</h1></html>", "   "} {
		t.Run(fmt.Sprintf("%q", doc), func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				is(r, "HTTP status", r.post(s, doc).Code, 422)
				is(r, "B-023 parse failure class", attempt(r, r.job(id), 0).Reason, settle.AttemptProtocol)
				r.post(r.again(id), doc)
				r.ended("B-023 the job reaches an end with a reason", r.job(id), settle.Dead, settle.EndExhausted)
				is(r, "B-023 each answer was read once", r.fates(remote.Malformed), 2)
				next := r.enqueue()
				r.answer(r.parked(next), done)
				r.ended("B-023 the worker goes on with the next job", r.job(next), settle.Succeeded, settle.EndOK)
			})
		})
	}
}

// Nothing that stood in a malformed document is shown to anybody, nor stored.
func TestP12NothingOfAMalformedDocumentIsShown(t *testing.T) {
	const canary = "canary7f3a"
	for _, doc := range []string{
		canary, `"` + canary + `"`, `{"` + canary + `":1}`, `<html>` + canary + `</html>`,
		`{"v":1,"status":"` + canary + `"`, `{"v":"` + canary + `"}`,
		`"status":"` + canary + `"`, `"status":"done","output":1,"error":{"reason":"` + canary + `"}`,
		`"status":"done","output":"` + canary + `","status":"x"`, `"status":"error","error":"` + canary + `"`,
		`"status":"error","error":{"reason":"x","message":1,"` + canary + `":"` + canary + `"}`,
		`"status":"error","error":{"reason":"` + canary + `","message":"` + canary + `"},"output":"` + canary + `"`,
		`"status":"progress","output":"` + canary + `"`, `"at":7,"status":"done","output":"` + canary + `"`,
	} {
		t.Run(doc, func(t *testing.T) {
			bubble(t, setup{pool: remote.PoolConfig{Breaker: breaker.Config{Failures: 1}}}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				whole := doc
				if strings.HasPrefix(doc, `"status"`) || strings.HasPrefix(doc, `"at"`) {
					whole = s.doc(doc)
				}
				said := r.post(s, whole)
				is(r, "HTTP status", said.Code, 422)
				r.nap(backoff)
				nodes, err := r.st.Nodes(r.Context())
				is(r, "error", err, nil)
				stats, _ := json.Marshal(r.hub.Stats())
				for what, text := range map[string]string{
					"the job": r.shown(id), "the reply": said.Body.String() + fmt.Sprint(said.Header()), "the log": r.logs.text(),
					"the nodes": fmt.Sprintf("%+v %+v", nodes, r.pool.Nodes()), "the statistics": string(stats), "the database": r.file(),
				} {
					holds(r, "P12 "+what+" has words of the document: "+text[:min(len(text), 2000)], !strings.Contains(text, canary))
				}
			})
		})
	}
}

// file is what the store has on disk.
func (r *rig) file() string {
	r.Helper()
	var all bytes.Buffer
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(r.path + end)
		if err != nil {
			r.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// What a node says of its failure is shown, but made safe first.
func TestP12WordsOfANodeAreMadeSafe(t *testing.T) {
	const message = "GET https://user:hunter2@db.example/x?token=sesame failed\\u001b[2J\\u202e\\u0000 password=swordfish"
	for _, says := range []string{
		`"status":"error","error":{"reason":"io","message":"` + message + `"}`,
		`"status":"error","error":{"reason":"` + message + `","message":""}`,
	} {
		bubble(t, setup{}, func(r *rig) {
			id := r.enqueue()
			is(r, "HTTP status", r.answer(r.parked(id), says), 200)
			text := attempt(r, r.job(id), 0).Error
			for _, bad := range []string{"hunter2", "sesame", "swordfish", "\x1b", "\u202e", "\x00"} {
				holds(r, fmt.Sprintf("P12 %q is shown: %q", bad, text), !strings.Contains(text, bad) && !strings.Contains(r.shown(id)+r.logs.text(), bad))
			}
			holds(r, "what happened stays readable: "+text, strings.Contains(text, "db.example"))
		})
	}
}
