package worker

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// FuzzInput: an input is decoded, or the fault is the payload's: terminal, with
// the reason that says so.
func FuzzInput(f *testing.F) {
	type input struct {
		Text  string
		Bytes []byte
		At    time.Duration
		Any   map[string]any
		ID    settle.ID
	}
	for _, s := range []string{"", "null", "{}", `{"Text":"a","Bytes":"AA==","At":7,"Any":{"x":[1,null]},"ID":""}`, `{"Text":1}`, `{"At":1e99}`,
		`{"ID":"0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a"}`, `{"ID":"x"}`, "{}{}", "\"\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var none settle.None
		if err := decode(b, &none); len(b) == 0 && err != nil {
			t.Fatalf("a kind without input refuses the empty one: %v", err)
		}
		var in, back input
		if err := decode(b, &in); err != nil {
			var fault *faultError
			if !errors.As(err, &fault) || fault.reason != settle.AttemptUndecodable {
				t.Fatalf("%q: %v is not the payload's fault", b, err)
			}
			return
		}
		text, err := encode(in)
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if err := decode(text, &back); err != nil || !reflect.DeepEqual(in, back) {
			t.Fatalf("%q is %+v, written %s, which is %+v, %v", b, in, text, back, err)
		}
	})
}
