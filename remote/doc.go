// Package remote lets jobs be done by nodes: machines elsewhere, in any language,
// that are given one step of a job and answer later with one document
// (docs/contract.md says what a node must do).
//
//	hub, err := remote.New(st, remote.Config{Callback: "https://jobs.example/answers", Secrets: [][]byte{secret}})
//	gpu, err := hub.Pool("gpu", remote.PoolConfig{Nodes: []remote.Node{{Name: "gpu-1", URL: "http://gpu-1:9000/run"}}})
//	remote.Handle(w, Render, gpu, remote.Step{Silence: time.Minute})
//	http.Handle("/answers/", hub)
//
// # A step's way
//
//	Call ──▶ choose a node ──▶ record the ticket ──▶ submit ──▶ park          step.go, pool.go, submit.go
//	answer ──▶ callback.go or an Inbox ──▶ judge ──▶ Decide ──▶ Apply         deliver.go: the one way of all answers
//	Call again: the step's result is there ──▶ the handler goes on
//
// The ticket stands in the store before anything is sent, so there is no answer
// that nobody can place. The wait is a row: it holds no goroutine, no lease and no
// connection, and survives every restart. An answer that comes before the park is
// kept, and the park finds it.
//
// # What ends a wait
//
// An answer; a silence longer than [Step.Silence]; the policy's Wait; the job's
// deadline; a person. An answer that reports a failure, or that nobody can read,
// ends it as surely as a success. A failed step is tried again within the policy's
// StepAttempts, on a node that has not failed the job if there is one. Answers that
// come late, or twice, are told so, counted, and touch nothing.
//
// # Several steps
//
// A handler may call several steps, one after the other: it runs from its
// beginning after each, and a finished step returns its result at once.
//
//	worker.Handle(w, Publish, func(ctx context.Context, j *worker.Job[In]) (Out, error) {
//		probe, err := remote.Call(ctx, cpu, j, remote.Step{Name: "probe"})
//		if err != nil {
//			return Out{}, err // parked, put off or failed: hand it on
//		}
//		film, err := remote.Call(ctx, gpu, j, remote.Step{Name: "render", Input: json.RawMessage(probe)})
//		…
//	})
package remote
