package gate

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Guard lets requests through to next while the gate is open. Else it answers 503
// with Retry-After and application/problem+json, which names queue, tenant, age
// and the last error.
func (g *Gate) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := ""
		if g.config.Tenant != nil {
			tenant = g.config.Tenant(r)
		}
		a := g.Ask(r.Context(), tenant)
		if a.State == Open || a.State == Unknown && g.config.OpenUnknown {
			next.ServeHTTP(w, r)
			return
		}
		a.refuse(w)
	})
}

// retryAfter is when to ask again: nobody knows how soon the event is reported.
const retryAfter = 30 * time.Second

func (a Answer) refuse(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "about:blank", "title": http.StatusText(http.StatusServiceUnavailable), "status": http.StatusServiceUnavailable,
		"detail": a.Text(), "gate": a.State, "queue": a.Queue, "tenant": a.who(), "age_seconds": seconds(a.Age),
		"max_age_seconds": seconds(a.MaxAge), "last_error": a.Error,
	})
}

// Text says it in one line for people.
func (a Answer) Text() string {
	switch {
	case a.State == Unknown:
		return "it is not known whether events are reported: " + a.Fault
	case a.Age == 0:
		return "no event waits to be reported"
	case a.State == Shut:
		s := fmt.Sprintf("an event%s has not been reported for %s, the limit is %s", of(a.who()), a.Age.Round(time.Second), a.MaxAge)
		if a.Error != "" {
			s += ": " + a.Error
		}
		return s
	default:
		return fmt.Sprintf("the oldest unreported event is %s old, the limit is %s", a.Age.Round(time.Second), a.MaxAge)
	}
}

func (a Answer) who() string {
	if a.Tenant != "" {
		return a.Tenant
	}
	return a.Of
}

func of(tenant string) string {
	if tenant == "" {
		return ""
	}
	return " of " + tenant
}

func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// ServeHTTP tells how the gate stands, as application/health+json: 200 while it is
// open (status pass), 503 while it is shut (fail) or unknown (warn, with 200 where
// OpenUnknown is set). The query tenant=… asks for one tenant.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the gate is asked by GET", http.StatusMethodNotAllowed)
		return
	}
	a := g.Ask(r.Context(), r.URL.Query().Get("tenant"))
	status, code := "pass", http.StatusOK
	switch {
	case a.State == Shut:
		status, code = "fail", http.StatusServiceUnavailable
	case a.State == Unknown:
		status = "warn"
		if !g.config.OpenUnknown {
			code = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/health+json")
	w.Header().Set("Cache-Control", "no-store")
	if code != http.StatusOK {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": status, "output": a.Text(),
		"checks": map[string]any{"events:age": []any{map[string]any{
			"componentId": a.Queue, "componentType": "datastore", "observedValue": seconds(a.Age), "observedUnit": "s", "status": status,
			"gate": a.State, "tenant": a.who(), "max_age_seconds": seconds(a.MaxAge), "last_error": a.Error,
		}}},
	})
}
