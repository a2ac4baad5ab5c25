package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// An interviewer asks in each call, tells its progress before and after, and
// gives back the answer and the arguments of the call.
type interviewer struct {
	ended chan error    // causes of the contexts of calls that failed
	then  chan struct{} // calls wait for it after the answer; nil for none to
}

func (i *interviewer) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Method != mcp.MethodCallTool {
		return raw(`{"tools":[]}`)
	}
	i.tell(ctx, req, caller, 1)
	answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(question))})
	if err == nil && i.then != nil {
		i.tell(ctx, req, caller, 2)
		select {
		case <-i.then:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		i.ended <- context.Cause(ctx)
		return mcp.Result{}, err
	}
	arguments := req.Params.Get("arguments")
	return raw(`{"answer":` + string(answer.Raw()) + `,"arguments":` + string(arguments.Raw()) + `}`)
}

func (i *interviewer) tell(ctx context.Context, req *mcp.Request, caller mcp.Caller, n int) {
	if token := req.Meta.ProgressToken; !token.IsZero() {
		params := jsonrpc.Trusted(fmt.Appendf(nil, `{"progress":%d}`, n))
		// A client that has gone needs no telling.
		_ = caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: mcp.WithProgressToken(&params, token)})
	}
}

// asked returns the body of a call of a client that can be asked.
func asked(id, params string) string {
	return strings.Replace(modernRequest(id, "tools/call", params), `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)
}

// again returns the body of the retry of a call.
func again(id, params, state string) string {
	return asked(id, params+`,"inputResponses":{"q1":`+accepted+`},"requestState":"`+state+`"`)
}

// stateIn returns the requestState in a reply.
func stateIn(t *testing.T, body string) string {
	t.Helper()
	_, after, ok := strings.Cut(body, `"requestState":"`)
	state, _, _ := strings.Cut(after, `"`)
	if !ok {
		t.Fatalf("no input is required: %.200s", body)
	}
	return state
}

// progressOf returns body as that of a request that wants progress.
func progressOf(body, token string) string {
	return strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":`+token+`,`, 1)
}

func newInterview(t *testing.T, i *interviewer, opts park.Options) (*browser, *streamable.Handler) {
	o := strict(t)
	o.Park = opts
	o.Principal = func(r *http.Request) mcp.Principal { return mcp.Principal{Subject: r.Header.Get("X-User")} }
	h := streamable.NewHandler(i, &o)
	t.Cleanup(h.Close)
	return newBrowser(t, newServer(t, h)), h
}

func TestModernClientIsAskedOverHTTP_B151(t *testing.T) {
	b, _ := newInterview(t, new(interviewer), park.Options{})
	call := toolCall("t", `{"n":9007199254740993}`)
	first := b.modern(t, asked("1", call))
	want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":` + question + `}},"requestState":"`
	if first.status != http.StatusOK || !strings.HasPrefix(first.body, want) {
		t.Fatalf("got %v", first)
	}
	second := b.modern(t, again(`"b"`, call, stateIn(t, first.body)))
	want = `{"jsonrpc":"2.0","id":"b","result":{"answer":` + accepted + `,"arguments":{"n":9007199254740993},"resultType":"complete"}}`
	if second.body != want {
		t.Errorf("got %v", second)
	}
}

// TestHandlesOfOthersAreUnknown: to another user a state is like one that was
// never given out.
func TestHandlesOfOthersAreUnknown_TG2_TG5(t *testing.T) {
	b, _ := newInterview(t, &interviewer{ended: make(chan error, 10)}, park.Options{})
	call := toolCall("t", `{}`)
	first := b.modern(t, asked("1", call), "X-User", "a")
	state := stateIn(t, first.body)
	body := again("2", call, state)
	theirs := b.do(t, http.MethodPost, body, modernHeader(t, body, "X-User", "b"))
	never := b.modern(t, again("2", call, state[:len(state)-20]+"AAAAAAAAAAAAAAAAAAAA"), "X-User", "b")
	if theirs.code(t) != jsonrpc.CodeInvalidParams || theirs.body != never.body || theirs.status != never.status {
		t.Errorf("got %v and %v", theirs, never)
	}
	if mine := b.do(t, http.MethodPost, body, modernHeader(t, body, "X-User", "a")); mine.code(t) != 0 {
		t.Errorf("the owner gets %v", mine)
	}
}

func TestParkedCallsAreCapped(t *testing.T) {
	b, _ := newInterview(t, &interviewer{ended: make(chan error, 10)}, park.Options{MaxParkedPerPrincipal: 1})
	stateIn(t, b.modern(t, asked("1", toolCall("t", `{}`))).body)
	if got := b.modern(t, asked("2", toolCall("t", `{}`))); !strings.Contains(got.body, `"limit":"MaxParkedPerPrincipal"`) {
		t.Errorf("got %v", got)
	}
}

// TestProgressGoesToTheRetry: under its own token, on its own stream.
func TestProgressGoesToTheRetry_B139(t *testing.T) {
	i := &interviewer{ended: make(chan error, 10), then: make(chan struct{})}
	b, _ := newInterview(t, i, park.Options{})
	body := progressOf(asked("1", toolCall("t", `{}`)), `"one"`)
	first := readEvents(b.open(t, http.MethodPost, body, modernHeader(t, body)))
	first.await(t, `"progressToken":"one"`)
	state := stateIn(t, first.await(t, `input_required`))
	first.wantEnd(t)
	body = progressOf(again("2", toolCall("t", `{}`), state), `2`)
	second := readEvents(b.open(t, http.MethodPost, body, modernHeader(t, body)))
	second.await(t, `{"progress":2,"progressToken":2}`)
	close(i.then)
	second.await(t, `"id":2,"result":{"answer"`)
	second.wantEnd(t)
}

// TestDisconnectOfARetryCancels: as that of the first request did before it was
// answered.
func TestDisconnectOfARetryCancels_B122(t *testing.T) {
	i := &interviewer{ended: make(chan error, 10), then: make(chan struct{})}
	b, _ := newInterview(t, i, park.Options{})
	body := progressOf(asked("1", toolCall("t", `{}`)), `"one"`)
	first := b.open(t, http.MethodPost, body, modernHeader(t, body))
	state := stateIn(t, readEvents(first).await(t, `input_required`))
	_ = first.Body.Close()
	b.http.CloseIdleConnections()
	body = progressOf(again("2", toolCall("t", `{}`), state), `2`)
	second := b.open(t, http.MethodPost, body, modernHeader(t, body))
	readEvents(second).await(t, `{"progress":2,"progressToken":2}`)
	if len(i.ended) > 0 {
		t.Error("the call ended with its first exchange")
	}
	_ = second.Body.Close()
	if err := await(t, i.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is %v", err)
	}
}

func TestCloseCancelsParkedCalls(t *testing.T) {
	i := &interviewer{ended: make(chan error, 10)}
	b, h := newInterview(t, i, park.Options{})
	state := stateIn(t, b.modern(t, asked("1", toolCall("t", `{}`))).body)
	h.Close()
	if err := await(t, i.ended); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("the cause is %v", err)
	}
	if got := b.modern(t, again("2", toolCall("t", `{}`), state)); got.code(t) != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v", got)
	}
}

// TestParkedRequestsKeepTheirMemory: bodies whose memory is used again do not
// write into those that are still needed.
func TestParkedRequestsKeepTheirMemory(t *testing.T) {
	b, _ := newInterview(t, new(interviewer), park.Options{})
	var calling sync.WaitGroup
	for i := range 16 {
		calling.Go(func() {
			arguments := `{"text":"` + strings.Repeat(string(rune('a'+i)), 100_000) + `"}`
			state := stateIn(t, b.modern(t, asked("1", toolCall("t", arguments))).body)
			for range 4 { // of a client that cannot be asked
				b.modern(t, modernRequest("1", "tools/list", `"cursor":"`+strings.Repeat("z", 100_000)+`"`))
			}
			got := b.modern(t, again("2", toolCall("t", arguments), state))
			if !strings.Contains(got.body, `"arguments":`+arguments+`,`) {
				t.Errorf("call %d has got %.200s", i, got.body)
			}
		})
	}
	calling.Wait()
}
