package mailbox_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/settle-go/settle/mailbox"
)

var ticket = mailbox.Ticket{Job: "video-7", Step: "render", Attempt: "a1b2c3", Node: "gpu-3"}

// What one look into a mailbox comes to.
func Example() {
	judge := mailbox.Judge(mailbox.ContractJudge)
	look := func(doc string, found bool) {
		answer, err := judge.Look(ticket, []byte(doc), found)
		var step *mailbox.StepError
		switch {
		case err == nil:
			fmt.Printf("done: %s\n", answer.Output)
		case errors.As(err, &step) && step.Retry == mailbox.RetryUseless:
			fmt.Println("give up:", err)
		case mailbox.IsFinal(err):
			fmt.Println("try again:", err)
		default:
			fmt.Println("wait on:", err)
		}
	}
	const who = `{"v":1, "job":"video-7", "step":"render", "attempt":"a1b2c3", "node":"gpu-3", `
	look("", false)
	look(who+`"status":"progress"}`, true)
	look(who+`"status":"done", "output":{"frames":240}}`, true)
	look(who+`"status":"error", "error":{"reason":"gpu_oom", "message":"CUDA out of memory"}}`, true)
	look(who+`"status":"error", "error":{"reason":"bad_input", "message":"no video stream", "retryable":false}}`, true)
	look(who+`"status":"failed"}`, true)
	look("<html>502 Bad Gateway</html>", true)
	// Output:
	// wait on: no answer yet
	// wait on: the node is at work
	// done: {"frames":240}
	// try again: step render failed on node gpu-3: gpu_oom: CUDA out of memory
	// give up: step render failed on node gpu-3: bad_input: no video stream
	// try again: malformed answer to step render from node gpu-3: status: unknown value (96 bytes)
	// try again: malformed answer to step render from node gpu-3: not json (28 bytes)
}

// Producers that keep to no contract.
func ExampleStatusJudge() {
	for _, doc := range []string{
		`{"status":"done", "frames":240}`,
		`{"status":"error", "message":"CUDA out of memory"}`,
		`{"status":200}`,
		`{}`,
	} {
		answer, err := mailbox.StatusJudge(mailbox.Ticket{Step: "render"}, []byte(doc))
		fmt.Printf("%q %v\n", answer.Output, err)
	}
	// Output:
	// "{\"status\":\"done\", \"frames\":240}" <nil>
	// "" step render failed: CUDA out of memory
	// "" malformed answer to step render: status: wrong type (14 bytes)
	// "" malformed answer to step render: status: missing field (2 bytes)
}

// A judge of your own lists what is success and what goes on waiting. Whatever
// it does not know may be any error: Look makes a final one of it, and shows
// nothing of its text.
func ExampleJudge() {
	var judge mailbox.Judge = func(t mailbox.Ticket, doc []byte) (mailbox.Answer, error) {
		var d struct{ State, Log string }
		if err := json.Unmarshal(doc, &d); err != nil {
			return mailbox.Answer{}, err
		}
		switch d.State {
		case "COMPLETED":
			return mailbox.Answer{Output: doc}, nil
		case "FAILED":
			return mailbox.Answer{}, &mailbox.StepError{Message: d.Log}
		case "PENDING", "RUNNING":
			return mailbox.Answer{}, mailbox.ErrProgress
		default:
			return mailbox.Answer{}, fmt.Errorf("state %q", d.State)
		}
	}
	for _, doc := range []string{`{"State":"COMPLETED"}`, `{"State":"FAILED","Log":"\u001b[2Jdisk full"}`, `{"State":"RUNNING"}`, `{"State":"<script>"}`, `}`} {
		_, err := judge.Look(mailbox.Ticket{}, []byte(doc), true)
		fmt.Println(mailbox.IsFinal(err), err)
	}
	// Output:
	// false <nil>
	// true the step failed: disk full
	// false the node is at work
	// true malformed answer: judge failed (20 bytes)
	// true malformed answer: judge failed (1 bytes)
}
