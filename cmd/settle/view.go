package main

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/settle-go/settle"
)

// jobJSON is a job as --json shows it. Field names are stable: new ones may
// come, none goes. Ids are text, instants RFC 3339 UTC, durations seconds.
type jobJSON struct {
	ID        settle.ID        `json:"id"`
	Kind      string           `json:"kind"`
	Queue     string           `json:"queue"`
	Tenant    string           `json:"tenant"`
	Key       string           `json:"key"`
	State     settle.State     `json:"state"`
	Label     string           `json:"label"`
	Reason    settle.EndReason `json:"reason,omitempty"`
	LastError string           `json:"last_error,omitempty"`
	Note      string           `json:"note,omitempty"` // why it ended, where no attempt says so

	Attempt  int `json:"attempt"`
	Charged  int `json:"charged"`
	Tries    int `json:"tries"`
	Crashed  int `json:"crashed"`
	Deferred int `json:"deferred"`
	Redrives int `json:"redrives"`

	Enqueued   time.Time `json:"enqueued"`
	FirstDue   time.Time `json:"first_due"`
	Due        time.Time `json:"due,omitzero"`
	Deadline   time.Time `json:"deadline,omitzero"`
	EndsBy     time.Time `json:"ends_by,omitzero"`
	HeldUntil  time.Time `json:"held_until,omitzero"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`

	Worker  int64     `json:"worker,omitempty,string"`
	Batch   settle.ID `json:"batch,omitzero"`
	Wait    *waitJSON `json:"wait,omitempty"`
	Suspect bool      `json:"suspect"`
	Acked   bool      `json:"acked"`

	// Input and Output stand here as they are if they are JSON, else in base64.
	Input        json.RawMessage `json:"input,omitempty"`
	InputBase64  []byte          `json:"input_base64,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	OutputBase64 []byte          `json:"output_base64,omitempty"`

	Attempts []attemptJSON `json:"attempts,omitempty"`
	Steps    []stepJSON    `json:"steps,omitempty"`
	Policy   policyJSON    `json:"policy"`
}

type waitJSON struct {
	Ticket  settle.ID `json:"ticket"`
	Step    string    `json:"step"`
	Node    string    `json:"node,omitempty"`
	Silence float64   `json:"silence_seconds,omitempty"`
	Until   time.Time `json:"until,omitzero"`
}

type attemptJSON struct {
	N      int                  `json:"n"`
	Reason settle.AttemptReason `json:"reason"`
	Error  string               `json:"error,omitempty"`
	Step   string               `json:"step,omitempty"`
	Ticket settle.ID            `json:"ticket,omitzero"`
	Node   string               `json:"node,omitempty"`
	Worker int64                `json:"worker,omitempty,string"`
	At     time.Time            `json:"at"`
	// Retryable is what the node said of the step's failure.
	Retryable bool `json:"retryable,omitempty"`
}

type stepJSON struct {
	Step         string          `json:"step"`
	Ticket       settle.ID       `json:"ticket"`
	Node         string          `json:"node,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	OutputBase64 []byte          `json:"output_base64,omitempty"`
}

type policyJSON struct {
	Attempts   int     `json:"attempts"`
	Crashes    int     `json:"crashes"`
	Deferrals  int     `json:"deferrals"`
	Redrives   int     `json:"redrives"`
	Timeout    float64 `json:"timeout_seconds"`
	BackoffMin float64 `json:"backoff_min_seconds"`
	BackoffMax float64 `json:"backoff_max_seconds"`
	Deadline   float64 `json:"deadline_seconds"`
	Wait       float64 `json:"wait_seconds"`
	OnEnd      string  `json:"on_end,omitempty"`
}

// viewJob makes the JSON form of a job.
func viewJob(j settle.Job) jobJSON {
	p := j.Policy.WithDefaults()
	v := jobJSON{ID: j.ID, Kind: j.Kind, Queue: j.Queue, Tenant: j.Tenant, Key: j.Key,
		State: j.State, Label: j.Label(), Reason: j.Reason, Note: j.Note,
		Attempt: j.Attempt, Charged: j.Charged(), Tries: j.Tries, Crashed: j.Crashed,
		Deferred: j.Deferred, Redrives: j.Redrives,
		Enqueued: j.Enqueued.UTC(), FirstDue: j.FirstDue.UTC(), Due: utc(j.Due), Deadline: utc(j.Deadline),
		EndsBy: utc(j.EndsBy), HeldUntil: utc(j.Held), EndedAt: utc(j.EndedAt),
		Worker: j.Worker, Batch: j.Batch, Suspect: j.Suspect, Acked: j.Acked,
		Policy: policyJSON{p.Attempts, p.Crashes, p.Deferrals, p.Redrives, p.Timeout.Seconds(),
			p.BackoffMin.Seconds(), p.BackoffMax.Seconds(), p.Deadline.Seconds(), p.Wait.Seconds(), p.OnEnd}}
	v.Input, v.InputBase64 = payload(j.Input)
	v.Output, v.OutputBase64 = payload(j.Output)
	if j.State == settle.Running {
		v.LeaseUntil = utc(j.Alarm)
	}
	if j.Wait != nil {
		v.Wait = &waitJSON{j.Wait.Ticket, j.Wait.Step, j.Wait.Node, j.Wait.Silence.Seconds(), utc(j.WaitEnds)}
	}
	if last, ok := j.LastError(); ok {
		v.LastError = last.Error
	}
	for _, a := range j.Attempts {
		v.Attempts = append(v.Attempts, attemptJSON{a.N, a.Reason, a.Error, a.Step, a.Ticket, a.Node, a.Worker, a.At.UTC(), a.Retryable})
	}
	for _, s := range j.Steps {
		doc, raw := payload(s.Output)
		v.Steps = append(v.Steps, stepJSON{s.Step, s.Ticket, s.Node, doc, raw})
	}
	return v
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// payload returns b for embedding if it is JSON in valid UTF-8, else as bytes.
func payload(b []byte) (doc json.RawMessage, raw []byte) {
	if len(b) > 0 && utf8.Valid(b) && json.Valid(b) {
		return b, nil
	}
	return nil, b
}

// exportJob is viewJob for an export: where the embedded JSON is not the input
// byte for byte (white space, escapes), the exact bytes stand beside it.
func exportJob(j settle.Job) jobJSON {
	v := viewJob(j)
	if v.Input != nil && !embeds(j.Input) {
		v.InputBase64 = j.Input
	}
	if v.Output != nil && !embeds(j.Output) {
		v.OutputBase64 = j.Output
	}
	return v
}

// embeds reports whether writeJSON writes this document byte for byte.
func embeds(doc []byte) bool {
	var b bytes.Buffer
	return writeJSON(&b, json.RawMessage(doc)) == nil && bytes.Equal(bytes.TrimSuffix(b.Bytes(), []byte("\n")), doc)
}
