package remote

import (
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/mailbox"
)

// ServeHTTP takes the answers of nodes: POST …/v1/<job>/<attempt>/<token>, at
// whatever path the hub is mounted. docs/contract.md says what each status means;
// errors are application/problem+json.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, key, ok := h.addressed(r.URL.Path)
	switch {
	case !ok:
		problem(w, http.StatusNotFound, "unknown", "no answer is taken at this address")
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		problem(w, http.StatusMethodNotAllowed, "method", "an answer is posted")
		return
	}
	doc, err := io.ReadAll(io.LimitReader(r.Body, mailbox.MaxDocument+1))
	if err != nil {
		problem(w, http.StatusBadRequest, "cut", "the answer did not arrive whole: send it again")
		return
	}
	in.Doc = doc
	if len(doc) > mailbox.MaxDocument { // it is judged for that: its signature cannot be checked
		_, _ = io.CopyN(io.Discard, r.Body, maxRest)
	} else {
		in.unsigned = !signed(strings.Join(r.Header.Values(SignatureHeader), ","), key, doc)
	}
	fates, err := h.deliver(r.Context(), []Incoming{in})
	if err != nil {
		h.log.Error("an answer could not be recorded", "job", in.Job, "error", redact.Error(err))
		w.Header().Set("Retry-After", "2")
		problem(w, http.StatusServiceUnavailable, "not_recorded", "the answer is not recorded: send it again later")
		return
	}
	h.reply(w, fates[0], in)
}

// maxRest is how many bytes of a document that is too large are taken besides, so
// that a node that writes all before it reads hears what is wrong.
const maxRest = 32 << 20

// addressed reads an address that the hub has given out.
func (h *Hub) addressed(p string) (in Incoming, key string, ok bool) {
	rest, token := path.Split(p)
	rest, attempt := path.Split(strings.TrimSuffix(rest, "/"))
	rest, job := path.Split(strings.TrimSuffix(rest, "/"))
	if path.Base(rest) != "v1" {
		return in, "", false
	}
	var err1, err2 error
	in.Job, err1 = settle.ParseID(job)
	in.Attempt, err2 = settle.ParseID(attempt)
	if err1 != nil || err2 != nil {
		return in, "", false
	}
	for _, s := range h.seals {
		if hmac.Equal([]byte(token), []byte(s.token(in.Job, in.Attempt))) {
			return in, s.key(in.Job, in.Attempt), true
		}
	}
	return in, "", false
}

// reply tells a node what became of its answer.
func (h *Hub) reply(w http.ResponseWriter, f Fate, in Incoming) {
	switch f {
	case Malformed:
		text := "the answer is malformed: see docs/contract.md"
		if in.unsigned {
			text = "the answer is not signed with the key of its submission"
		}
		problem(w, http.StatusUnprocessableEntity, string(f), text)
	case Stale:
		problem(w, http.StatusConflict, string(f), "this attempt no longer counts: stop working on it")
	case Ended, Unknown:
		problem(w, http.StatusGone, string(Ended), "the job has ended: stop working on it")
	case Elsewhere:
		w.Header().Set("Retry-After", "2")
		problem(w, http.StatusServiceUnavailable, string(f), "this process does not know the pool: send the answer again")
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"recorded":%q}`+"\n", f)
	}
}

// problem writes an error as RFC 9457 says. Nothing of the request stands in it.
func problem(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "reason": kind, "detail": text})
}
