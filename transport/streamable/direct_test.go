package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestWhatEndsACallWhereverItIs: a call makes its POST itself, and ends with its context, its time and its connection, however far the reply has come.
func TestWhatEndsACallWhereverItIs(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		t.Run(era.String(), func(t *testing.T) { whatEndsACall(t, era, `{}`) })
		t.Run(era.String()+", large", func(t *testing.T) {
			whatEndsACall(t, era, `"`+strings.Repeat("x", streamable.MaxShortBody)+`"`)
		})
	}
}

func whatEndsACall(t *testing.T, era mcp.Era, arguments string) {
	why := errors.New("why")
	for _, where := range []struct {
		name  string
		begin func(w http.ResponseWriter)
	}{
		{"before the reply", func(http.ResponseWriter) {}},
		{"in a JSON body", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"jsonrpc":`))
			_ = http.NewResponseController(w).Flush()
		}},
		{"in an event stream", func(w http.ResponseWriter) { writeStream(w, ":\n\n") }},
	} {
		for _, how := range []struct {
			name    string
			maxCall time.Duration
			end     func(c *streamable.Conn, cancel context.CancelCauseFunc)
			kind    mcp.FailureKind
			cause   error
		}{
			{"cancelled", 0, func(_ *streamable.Conn, cancel context.CancelCauseFunc) { cancel(why) }, mcp.Cancelled, why},
			{"out of time", 300 * time.Millisecond, func(*streamable.Conn, context.CancelCauseFunc) {}, mcp.TimedOut, context.DeadlineExceeded},
			{"closed", 0, func(c *streamable.Conn, _ context.CancelCauseFunc) { _ = c.Close() }, mcp.ConnectionLost, mcp.ErrClosed},
		} {
			t.Run(where.name+", "+how.name, func(t *testing.T) {
				begun := make(chan struct{}, 1)
				gone := make(chan struct{}, 1)
				answer := onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					if string(m.Method) != mcp.MethodCallTool {
						justAnswer(w, r, m)
						return
					}
					where.begin(w)
					begun <- struct{}{}
					<-r.Context().Done()
					gone <- struct{}{}
				})
				p := newPeer(t, modernPeer(answer))
				if era == mcp.Legacy {
					p = newPeer(t, legacyPeer("2025-11-25", "s", answer))
				}
				opts := knownEra(era)
				opts.MaxCall = how.maxCall
				c := dial(t, p.url, opts)
				list(t, c)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				ended := make(chan error, 1)
				go func() {
					_, err := c.Handle(ctx, toolRequest("t", arguments), mcp.NoCaller{})
					ended <- err
				}()
				await(t, begun)
				how.end(c, cancel)
				err := await(t, ended)
				checkFailure(t, where.name, err, how.kind, 0)
				if !errors.Is(err, how.cause) || mcp.OutcomeOf(err) != mcp.MaybeExecuted {
					t.Errorf("%v: %v", mcp.OutcomeOf(err), err)
				}
				await(t, gone)
			})
		}
	}
}

// A deaf RoundTripper does not heed contexts.
type deaf struct{ released chan struct{} }

func (d deaf) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Mcp-Method") == mcp.MethodCallTool {
		<-d.released
		return nil, errors.New("too late")
	}
	return http.DefaultTransport.RoundTrip(req)
}

func TestRoundTripperThatHeedsNoContext(t *testing.T) {
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
		writeResult(w, m, `{"tools":[]}`)
	}))
	d := deaf{make(chan struct{})}
	opts := knownEra(mcp.Modern)
	opts.Transport = d
	c := dial(t, p.url, opts)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer close(d.released)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := callWithin(ctx, c, mcp.NoCaller{})
	checkFailure(t, "a call that is never answered", err, mcp.TimedOut, 0)
}
