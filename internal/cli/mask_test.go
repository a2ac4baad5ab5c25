package cli_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/cli"
)

func TestMasking(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`{"Authorization":"Bearer x"}`, `{"Authorization":"[masked]"}`},
		{`{"a":{"client_secret":"x","b":2}}`, `{"a":{"client_secret":"[masked]","b":2}}`},
		{`[{"token":"x"},{"token":"y"}]`, `[{"token":"[masked]"},{"token":"[masked]"}]`},
		{`{"X-Api-Key":1,"apiKey":null,"api key":[1,[2]],"API.KEY":{"a":"x"}}`, `{"X-Api-Key":"[masked]","apiKey":"[masked]","api key":"[masked]","API.KEY":"[masked]"}`},
		{`{"requestState":"x","refreshToken":"x","id_token":"x","dbPassword":"x","set-cookie":"x"}`,
			`{"requestState":"[masked]","refreshToken":"[masked]","id_token":"[masked]","dbPassword":"[masked]","set-cookie":"[masked]"}`},
		{`{"taskId":"x","taskIds":["x","y"],"task":{"ttl":1}}`, `{"taskId":"[masked]","taskIds":"[masked]","task":{"ttl":1}}`},
		{`{"\u0074oken":"x"}`, `{"\u0074oken":"[masked]"}`},
		{`{"token":"x","token":"y"}`, `{"token":"[masked]","token":"[masked]"}`},
		// what only looks like a secret, and what must stay as it is
		{`{"progressToken":"p","maxTokens":5,"text":"token"}`, `{"progressToken":"p","maxTokens":5,"text":"token"}`},
		{"{ \"n\" : 1.50e+3 ,\r\n \"s\":\"\\u00e9\\/\" }", `{"n":1.50e+3,"s":"\u00e9\/"}`},
		{`{"id":12345678901234567890,"x":-0.0}`, `{"id":12345678901234567890,"x":-0.0}`},
		// what is no message
		{"Listening, token=abc password: \"d e\"\n", `"Listening, token=[masked] password: [masked]\n"`},
		{"Authorization: Bearer abc", `"Authorization: [masked]"`},
		{`{"secret":"abc`, `"{\"secret\":[masked]"`},
		{`{"a":1} x`, `{"a":1}`},
		{"\xff", `"\ufffd"`},
		{``, `""`},
	} {
		t.Run(tt.message, func(t *testing.T) {
			got := string(cli.AppendMasked([]byte("> "), []byte(tt.message)))
			if strings.ReplaceAll(got, "\ufffd", `\ufffd`) != "> "+tt.want {
				t.Errorf("got  %s\nwant > %s", got, tt.want)
			}
		})
	}
}

func TestLongNoiseIsCut(t *testing.T) {
	if got := cli.AppendMasked(nil, bytes.Repeat([]byte("x"), 1<<20)); len(got) > 2000 {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzMasking(f *testing.F) {
	for _, seed := range []string{`{"token":{"a":[1,"x"]}}`, `[]`, `"x"`, `{"a":`, "token=x", `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got := cli.AppendMasked(nil, message)
		if bytes.ContainsAny(got, "\r\n") || len(got) == 0 {
			t.Errorf("not one line: %q", got)
		}
		if again := cli.AppendMasked(nil, got); got[0] != '"' && !bytes.Equal(again, got) {
			t.Errorf("masking again changes it: %q, then %q", got, again)
		}
	})
}

// A stuck writer takes nothing until it is let go.
type stuckWriter struct {
	free chan struct{}
	out  bytes.Buffer
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	<-w.free
	return w.out.Write(p)
}

func TestTraceNeverDelaysMessages(t *testing.T) {
	w := &stuckWriter{free: make(chan struct{})}
	tap, closeTrace, err := cli.OpenTrace(w)
	if err != nil {
		t.Fatal(err)
	}
	const messages = 10_000
	for range messages {
		tap(true, []byte(`{"a":1}`))
	}
	close(w.free)
	if err := closeTrace(); err != nil {
		t.Fatal(err)
	}
	tap(true, []byte(`{}`)) // too late, and no harm
	lines := strings.Count(w.out.String(), `"message"`)
	if lines >= messages || lines < 1000 {
		t.Errorf("%d of %d messages were kept", lines, messages)
	}
	if !strings.Contains(w.out.String(), `{"dropped":`) {
		t.Error("the trace does not say that it is not whole")
	}
}

type brokenWriter struct{}

var errBroken = errors.New("no room")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestTraceTellsThatItCannotBeWritten(t *testing.T) {
	tap, closeTrace, err := cli.OpenTrace(brokenWriter{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		tap(true, []byte(`{}`))
	}
	if err := closeTrace(); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}
