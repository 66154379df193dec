package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// shards is the number of inbox streams; a ticket names its own.
const shards = 16

// ticket names one attempt of one job's remote step.
type ticket struct {
	Job     int
	Attempt uint64
}

// nobody is what an unreadable answer is booked on: no job has it.
var nobody = ticket{Job: -1}

func (t ticket) String() string { return fmt.Sprintf("%d.%d.%x", t.shard(), t.Job, t.Attempt) }
func (t ticket) shard() int     { return t.Job % shards }
func (t ticket) key() string    { return "settle:answer:" + t.String() }

func stream(shard int) string { return fmt.Sprintf("settle:{%d}:inbox", shard) }

func parseTicket(s string) (t ticket, ok bool) {
	var shard int
	n, err := fmt.Sscanf(s, "%d.%d.%x", &shard, &t.Job, &t.Attempt)
	return t, err == nil && n == 3 && t.Job >= 0 && shard == t.shard()
}

// document is the part of the contract that the lab looks at.
type document struct {
	V       int    `json:"v"`
	Ticket  string `json:"ticket"`
	Node    string `json:"node"`
	Status  string `json:"status"`
	Output  string `json:"output"`
	Attempt int    `json:"n"`
}

var filler = strings.Repeat("o", 120)

// answerOf is what a node says: about 200 bytes.
func answerOf(t ticket) string {
	b, err := json.Marshal(document{V: 1, Ticket: t.String(), Node: "node-7", Status: "done", Output: filler})
	must(err)
	return string(b)
}

// judge is pure: which attempt the answer settles, or nobody.
func judge(name, doc string) ticket {
	t, ok := parseTicket(name)
	var d document
	if !ok || json.Unmarshal([]byte(doc), &d) != nil || d.V != 1 || d.Ticket != name {
		return nobody
	}
	if d.Status != "done" && d.Status != "error" {
		return nobody
	}
	return t
}
