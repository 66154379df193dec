package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

type in struct{ Text string }
type out struct{ Frames int }

var render = settle.Define[in, out]("video.render", settle.Policy{BackoffMin: 10 * time.Millisecond, BackoffMax: 20 * time.Millisecond})

func TestSmoke(t *testing.T) {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var hub *remote.Hub
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hub.ServeHTTP(w, r) }))
	defer answers.Close()
	hub, err = remote.New(st, remote.Config{Callback: answers.URL + "/answers", Secrets: [][]byte{bytes.Repeat([]byte{7}, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string, status string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var s map[string]any
			_ = json.NewDecoder(r.Body).Decode(&s)
			w.WriteHeader(202)
			go func() {
				a := s["answer"].(map[string]any)
				doc := []byte(fmt.Sprintf(`{"v":1,"job":%q,"step":%q,"attempt":%q,"node":%q,%s}`, s["job"], s["step"], s["attempt"], name, status))
				req, _ := http.NewRequest("POST", a["url"].(string), bytes.NewReader(doc))
				req.Header.Set(remote.SignatureHeader, remote.Sign(a["key"].(string), doc))
				resp, err := http.DefaultClient.Do(req)
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("%v %v", err, resp)
				}
			}()
		}))
	}
	a := node("a", `"status":"error","error":{"reason":"gpu_oom","message":"CUDA out of memory"}`)
	b := node("b", `"status":"done","output":{"Frames":240}`)
	defer a.Close()
	defer b.Close()
	gpu, err := hub.Pool("gpu", remote.PoolConfig{Nodes: []remote.Node{{Name: "b", URL: b.URL}, {Name: "a", URL: a.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(st, worker.Config{})
	remote.Handle(w, render, gpu, remote.Step{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	q := settle.NewClient(st)
	for range 4 {
		began := time.Now()
		id, err := render.Enqueue(ctx, q, in{"x"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := render.Await(ctx, q, id)
		j, _ := q.Get(ctx, id)
		t.Log(time.Since(began), got, err, j.Attempts)
	}
	t.Log(hub.Stats().Fates, hub.Nodes())
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
