package visit_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/visit"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func TestRequired(t *testing.T) {
	const page = `{"mode":"url","url":"https://a.example/"}`
	for _, tt := range []struct {
		name string
		code int
		data string
		want int
	}{
		{"pages", jsonrpc.CodeURLElicitationRequired, `{"elicitations":[` + page + `,` + page + `]}`, 2},
		{"too many", jsonrpc.CodeURLElicitationRequired, `{"elicitations":[` + page + strings.Repeat(","+page, 2) + `]}`, 0},
		{"none", jsonrpc.CodeURLElicitationRequired, `{"elicitations":[]}`, 0},
		{"a form", jsonrpc.CodeURLElicitationRequired, `{"elicitations":[` + page + `,{"mode":"form","url":"https://a.example/"}]}`, 0},
		{"no address", jsonrpc.CodeURLElicitationRequired, `{"elicitations":[{"mode":"url"}]}`, 0},
		{"another error", jsonrpc.CodeInvalidParams, `{"elicitations":[` + page + `]}`, 0},
	} {
		err := &jsonrpc.Error{Code: tt.code, Message: "first", Data: jsonrpc.Trusted([]byte(tt.data))}
		if got := visit.Required(err, 2); len(got) != tt.want {
			t.Errorf("%s: %d questions", tt.name, len(got))
		}
	}
	if got := visit.Required(errors.New("?"), 2); got != nil {
		t.Errorf("%d questions", len(got))
	}
}

// TestWaits: they grow, and begin anew once something else was asked; their sum is
// bounded.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pages visit.Pages
		for range 2 {
			began := time.Now()
			for i := 0; ; i++ {
				wait, ok := pages.Next()
				if want := min(time.Second<<i, 15*time.Second); wait != want && i < 10 {
					t.Errorf("wait %d is %v, want %v", i, wait, want)
				}
				if !ok {
					break
				}
				<-time.After(wait)
			}
			if took := time.Since(began); took > visit.MaxWait || took <= visit.MaxWait-15*time.Second {
				t.Errorf("waited %v in all", took)
			}
			pages.Asked()
		}
	})
}

// TestAnswersAreKept of who agreed, as long as the page is wanted.
func TestAnswersAreKept(t *testing.T) {
	var pages visit.Pages
	for answer, want := range map[string]bool{`{"action":"accept"}`: true, `{"action":"decline"}`: false, `{"action":"cancel"}`: false, `{}`: false} {
		if got := pages.Keep("https://"+answer, []byte(answer)); got != want || string(pages.Answer("https://"+answer)) != answer == want {
			t.Errorf("%s is kept: %t", answer, got)
		}
	}
	if pages.Keep("", []byte(`{"action":"accept"}`)) {
		t.Error("the answer to what is no page is kept")
	}
	const accepted = `https://{"action":"accept"}`
	if done := pages.Retain([]string{"https://b", accepted}); len(done) != 0 {
		t.Errorf("%q are done", done)
	}
	if done := pages.Retain([]string{"https://b"}); len(done) != 1 || done[0] != accepted || pages.Answer(accepted) != nil {
		t.Errorf("%q are done", done)
	}
	form := mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(`{"mode":"form","url":"https://a"}`))}
	if url := visit.URL(&form); url != "" {
		t.Errorf("a form has the page %q", url)
	}
}
