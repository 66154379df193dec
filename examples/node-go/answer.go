package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

// attempt is one submission at work.
type attempt struct {
	submission
	node    *node
	byRedis bool
	ctx     context.Context // ends at the deadline, or when nobody wants the answer any more
	stop    context.CancelFunc
	told    time.Time // of the last sign of life
}

// run works, and sends the answer: the same bytes, later and later, until they
// are recorded, or somebody says that they will never be, or the deadline.
func (a *attempt) run() {
	doc := a.answer(safely(a.ctx, a.Input, a.alive))
	if len(doc) > 1<<20 {
		doc = a.answer(nil, &failure{Reason: "too_large", Message: "an answer of more than 1 MiB", Retryable: new(bool)})
	}
	for pause := time.Second; a.ctx.Err() == nil; pause = min(2*pause, time.Minute) {
		switch status := a.send(doc, false); status {
		case 200:
			return
		case 409, 410, 422:
			log.Printf("attempt %s: nobody takes the answer: %d", a.Attempt, status)
			return
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-a.ctx.Done():
		}
	}
}

// alive tells that the work goes on, three times in the longest silence allowed.
func (a *attempt) alive() {
	if time.Since(a.told) < cmp.Or(time.Duration(a.SilenceMS)*time.Millisecond, 30*time.Second)/3 {
		return
	}
	a.told = time.Now()
	switch a.send(a.document("progress", "", nil), true) {
	case 409, 410, 422:
		a.stop()
	}
}

func (a *attempt) answer(output any, err error) []byte {
	var f *failure
	switch {
	case err == nil:
		return a.document("done", "output", output)
	case errors.As(err, &f):
		return a.document("error", "error", f)
	default: // whether trying again helps is not known, and so not said
		return a.document("error", "error", failure{Reason: "internal", Message: err.Error()})
	}
}

func (a *attempt) document(status, field string, value any) []byte {
	d := map[string]any{"v": 1, "job": a.Job, "step": a.Step, "attempt": a.Attempt, "node": a.node.name, "status": status}
	if field != "" {
		d[field] = value
	}
	doc, err := json.Marshal(d)
	if err != nil { // the output's fault: of the rest nothing can fail
		return a.answer(nil, err)
	}
	return doc
}

// send sends a document once. It returns the consumer's status: 200 is recorded,
// 0 is no reply.
func (a *attempt) send(doc []byte, progress bool) int {
	ctx, cancel := context.WithTimeout(a.ctx, 10*time.Second)
	defer cancel()
	status, err := 200, error(nil)
	if a.byRedis {
		err = a.add(ctx, string(doc), progress)
	} else {
		status, err = a.post(ctx, doc)
	}
	if err != nil {
		log.Printf("attempt %s: %v", a.Attempt, err)
		return 0
	}
	return status
}

// client follows no redirect: whoever answers there is not who was to be asked.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (a *attempt) post(ctx context.Context, doc []byte) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Answer.URL, bytes.NewReader(doc))
	if err != nil {
		return 0, err
	}
	mac := hmac.New(sha256.New, []byte(a.Answer.Key))
	mac.Write(doc)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Settle-Signature", fmt.Sprintf("v1=%x", mac.Sum(nil)))
	resp, err := client.Do(req)
	if broken := (*url.Error)(nil); errors.As(err, &broken) {
		return 0, broken.Err // without the address, which is a secret
	} else if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// add appends to a stream. Progress may be cut off there, an answer never.
func (a *attempt) add(ctx context.Context, doc string, progress bool) error {
	r, add := a.Answer.Redis, a.node.redis.B().Xadd()
	cmd := add.Key(r.Stream).Id("*").FieldValue().FieldValue("ticket", r.Ticket).FieldValue("doc", doc).Build()
	if progress {
		cmd = a.node.redis.B().Xadd().Key(r.Progress).Maxlen().Almost().Threshold("10000").Id("*").
			FieldValue().FieldValue("ticket", r.Ticket).FieldValue("doc", doc).Build()
	}
	return a.node.redis.Do(ctx, cmd).Error()
}
