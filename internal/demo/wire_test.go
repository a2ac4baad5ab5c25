package demo_test

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// overStream returns a connection to the demo over a byte stream.
func overStream(t *testing.T, opts transport.DialOptions) mcp.Handler {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() {
		link := transport.NewLineLink(theirs, theirs, theirs.Close, transport.LineOptions{})
		served <- transport.Serve(context.Background(), link, demo.New(""), transport.ServeOptions{})
	}()
	conn, err := transport.Dial(t.Context(), transport.NewLineLink(ours, ours, ours.Close, transport.LineOptions{}), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// overHTTP returns a connection to the demo over HTTP.
func overHTTP(t *testing.T, opts transport.DialOptions) mcp.Handler {
	t.Helper()
	h := streamable.NewHandler(demo.New(""), nil)
	server := httptest.NewServer(h)
	conn, err := streamable.Dial(t.Context(), server.URL, &streamable.DialOptions{DialOptions: opts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
		h.Close()
	})
	return conn
}

// TestAskOnTheWire: clients of both eras are asked, whichever way they come.
func TestAskOnTheWire_B151(t *testing.T) {
	ada := mcp.RawResult([]byte(`{"action":"accept","content":{"name":"Ada"}}`))
	for name, dial := range map[string]func(*testing.T, transport.DialOptions) mcp.Handler{"stream": overStream, "HTTP": overHTTP} {
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			t.Run(name+" "+era.String(), func(t *testing.T) {
				capabilities := []byte(`{"elicitation":{}}`)
				conn := dial(t, transport.DialOptions{Era: era, Capabilities: capabilities})
				req := request(t, mcp.MethodCallTool, `{"name":"ask"}`)
				req.Meta.Capabilities = capabilities
				c := &client{answer: func(*mcp.Request) (mcp.Result, error) { return ada, nil }}
				result, err := conn.Handle(t.Context(), req, c)
				if era == mcp.Modern {
					req = retried(t, req, &result, ada)
					result, err = conn.Handle(t.Context(), req, c)
				}
				content := result.Get("content")
				if err != nil || string(content.Raw()) != `[{"type":"text","text":"Hello, Ada!"}]` {
					t.Errorf("got %s, %v", result.Raw(), err)
				}
				// Now the state is nobody's, and the work is not done again.
				if era == mcp.Modern {
					if got := shown(demo.New("").Handle(t.Context(), req, c)); got != "error -32602: Invalid params: requestState is not one of this server's" {
						t.Errorf("another instance answers %s", got)
					}
				}
			})
		}
	}
}

// retried returns the retry of req with an answer to its one question.
func retried(t *testing.T, req *mcp.Request, result *mcp.Result, answer mcp.Result) *mcp.Request {
	t.Helper()
	requests := result.Get("inputRequests")
	state, ok := result.Lookup("requestState")
	if result.Type() != mcp.InputRequired || requests.Len() != 1 || !ok {
		t.Fatalf("no input is required: %s", result.Raw())
	}
	responses := jsonrpc.Value{}
	for key := range requests.Members() {
		responses = jsonrpc.Edited(&responses, jsonrpc.Edit{Name: key, Value: answer.Raw()})
	}
	again := *req
	again.Params = jsonrpc.Edited(&req.Params,
		jsonrpc.Edit{Name: "inputResponses", Value: responses.Raw()}, jsonrpc.Edit{Name: "requestState", Value: state})
	return &again
}
