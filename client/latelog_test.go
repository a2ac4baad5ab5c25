package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A lateLogger is a legacy server in this process, as an [http.RoundTripper], that logs
// on its GET stream after its response to the call of a tool.
type lateLogger struct {
	t      *testing.T
	reader *io.PipeReader
	stream *io.PipeWriter
}

func newLateLogger(t *testing.T) *lateLogger {
	s := &lateLogger{t: t}
	s.reader, s.stream = io.Pipe()
	return s
}

// RoundTrip implements [http.RoundTripper].
func (s *lateLogger) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Request: r, Body: http.NoBody, ContentLength: -1}
	switch r.Method {
	case http.MethodGet:
		context.AfterFunc(r.Context(), func() { _ = s.reader.CloseWithError(io.EOF) })
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = s.reader
		return resp, nil
	case http.MethodDelete:
		return resp, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var m jsonrpc.Message
	if err := jsonrpc.Scan(body, &m); err != nil {
		return nil, err
	}
	result := `{"content":[]}`
	switch method := string(m.Method); {
	case m.Kind != jsonrpc.Request:
		resp.StatusCode = http.StatusAccepted
		return resp, nil
	case method == mcp.MethodInitialize:
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"x","version":"1"}}`
	case method == mcp.MethodCallTool:
		time.AfterFunc(100*time.Microsecond, func() {
			const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"late"}}`
			if _, err := io.WriteString(s.stream, "data: "+log+"\n\n"); err != nil {
				s.t.Error(err)
			}
		})
	}
	resp.Header.Set("Content-Type", "application/json")
	resp.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID.Raw(), result)))
	return resp, nil
}

// TestLogsOfACallComeBeforeItReturns: also those that the server has sent on a stream of
// its own, where the response has overtaken them, and whoever else listens.
func TestLogsOfACallComeBeforeItReturns(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts client.Options
		call client.CallOptions
		own  bool // the call has a function of its own
	}{
		{"the client's level and function", client.Options{LogLevel: "debug"}, client.CallOptions{}, false},
		{"the call's level", client.Options{}, client.CallOptions{LogLevel: "debug"}, false},
		{"the call's function", client.Options{LogLevel: "debug"}, client.CallOptions{}, true},
		{"the call's level and function", client.Options{}, client.CallOptions{LogLevel: "debug"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told, elsewhere []string
				note := func(to *[]string) func(*mcp.LogParams) {
					return func(p *mcp.LogParams) { *to = append(*to, string(p.Data)) }
				}
				tt.opts.Era = mcp.Legacy
				tt.opts.Log = note(&told)
				if tt.own {
					tt.opts.Log, tt.call.Log = note(&elsewhere), note(&told)
				}
				target := client.URL("http://legacy.example/mcp")
				target.Options.Transport = newLateLogger(t)
				c, err := client.Connect(t.Context(), target, &tt.opts)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait() // for the GET stream
				if _, err := c.CallTool(t.Context(), "t", nil, &tt.call); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(told, []string{`"late"`}) || len(elsewhere) > 0 {
					t.Errorf("before it returns, %q has come, and %q elsewhere", told, elsewhere)
				}
				time.Sleep(time.Second)
			})
		})
	}
}
