package settle

import (
	"encoding/json"
	"slices"
	"time"
)

// RecallKind is the kind of the jobs that tell a node that nobody waits for its
// answer any more. Their input is a [Recall].
const RecallKind = "settle.recall"

// Recall is the input of a job of RecallKind.
type Recall struct {
	Job     ID     `json:"job"`
	Step    string `json:"step"`
	Attempt ID     `json:"attempt"` // the ticket
	Node    string `json:"node"`
	Pool    string `json:"pool"`
}

// abandons reports whether an event makes a job stop waiting for a node that may
// still be at work.
func (d *decision) abandons(ev Event) bool {
	if w := d.s.Wait; w == nil || !w.Recall || d.t.To == Running || d.t.To == Awaiting {
		return false
	}
	switch e := ev.(type) {
	case Delivered:
		return false // it has had its say
	case Deferred:
		return !slices.Contains(unbegun, e.Reason)
	default:
		return true
	}
}

// unbegun are the deferrals after which the node is not at work.
var unbegun = []AttemptReason{AttemptNoNode, AttemptBusy, AttemptRateLimited, AttemptLaneHeld}

// recall is a job that tells the node to stop.
func (d *decision) recall() *New {
	w := d.s.Wait
	doc, _ := json.Marshal(Recall{Job: d.s.ID, Step: w.Step, Attempt: w.Ticket, Node: w.Node, Pool: w.Pool}) // cannot fail
	return &New{Kind: RecallKind, Input: doc, EnqueueOpts: EnqueueOpts{
		ID: DeriveID([]byte("recall"), w.Ticket[:]), Queue: d.s.Queue, Tenant: d.s.Tenant, Policy: &recallPolicy}}
}

// recallPolicy: a node that cannot be told soon need not be told at all.
var recallPolicy = Policy{Attempts: 5, Timeout: 30 * time.Second, BackoffMax: time.Minute, Deadline: time.Hour}
