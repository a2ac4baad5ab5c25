package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A late is what a slow server replies: after a while, or never if that is 0.
type late struct {
	after   time.Duration // since the request came
	status  int           // 0 for a network connection that is lost
	session string
	body    string // $ stands for the id
	err     error  // of the network
}

// A slowServer is a scripted server in a bubble, as an [http.RoundTripper].
type slowServer struct {
	replies map[string]late // by a message's method, or HTTP's
	began   time.Time

	mu   sync.Mutex
	got  []string // "METHOD at 5s", and "METHOD hung up at 6s", with the session if there is one
	rest int      // requests that are being served
}

func newSlowServer(replies map[string]late) *slowServer {
	all := map[string]late{
		"notifications/initialized": {after: 1, status: 202},
		"GET":                       {after: 1, status: 405},
		"DELETE":                    {after: 1, status: 204},
		"ping":                      {after: 1, status: 200, body: `"result":{}`},
	}
	maps.Copy(all, replies)
	return &slowServer{replies: all, began: time.Now()}
}

func (s *slowServer) note(what string, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest += change
	s.got = append(s.got, fmt.Sprintf("%s at %v", what, time.Since(s.began).Round(time.Second)))
}

// seen returns what was asked for, but for what is asked for after the handshake.
func (s *slowServer) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := slices.DeleteFunc(slices.Clone(s.got), func(what string) bool { return strings.HasPrefix(what, "GET") })
	return strings.Join(got, ", ")
}

// RoundTrip implements [http.RoundTripper].
func (s *slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var m jsonrpc.Message
	what := r.Method
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if jsonrpc.Scan(body, &m) == nil {
			what = string(m.Method)
		}
	}
	reply := s.replies[what]
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		what += " of " + id
	}
	s.note(what, 1)
	var answered <-chan time.Time
	if reply.after > 0 {
		answered = time.After(reply.after)
	}
	select {
	case <-answered:
	case <-r.Context().Done():
		s.note(what+" hung up", -1)
		return nil, r.Context().Err()
	}
	s.mu.Lock()
	s.rest--
	s.mu.Unlock()
	if reply.err != nil {
		return nil, reply.err
	}
	resp := &http.Response{StatusCode: reply.status, Header: make(http.Header), Request: r, ContentLength: -1}
	if reply.session != "" {
		resp.Header.Set("Mcp-Session-Id", reply.session)
	}
	text := reply.body
	if strings.HasPrefix(text, `"`) {
		resp.Header.Set("Content-Type", "application/json")
		text = `{"jsonrpc":"2.0","id":` + m.ID.String() + `,` + text + `}`
	}
	resp.Body = io.NopCloser(strings.NewReader(text))
	return resp, nil
}

const (
	slowModern = `"result":{"capabilities":{},"supportedVersions":["2026-07-28"]}`
	slowLegacy = `"result":{"protocolVersion":"2025-11-25","capabilities":{}}`
)

// TestProbeThatIsNotAnswered_B110: after five seconds initialize is sent beside the
// probe, and the first usable answer decides. The other request leaves nothing behind.
func TestProbeThatIsNotAnswered_B110(t *testing.T) {
	in := func(seconds int, status int, body string) late {
		return late{after: time.Duration(seconds) * time.Second, status: status, body: body}
	}
	begins := func(id string, l late) late {
		l.session = id
		return l
	}
	refusal := func(code int) string { return fmt.Sprintf(`"error":{"code":%d,"message":"why not"}`, code) }
	unsupported := `"error":{"code":-32022,"message":"why not","data":{"supported":["2026-07-28"]}}`
	const asked = "server/discover at 0s, "
	const both = asked + "initialize at 5s"
	for _, tt := range []struct {
		name                 string
		discover, initialize late
		era                  mcp.Era // NoEra if connecting fails
		says                 string  // the error
		seen                 string  // when the connection, closed after 30 s, has ended
	}{
		{"initialize is answered", late{}, begins("s", in(1, 200, slowLegacy)), mcp.Legacy, "",
			both + ", notifications/initialized of s at 6s, server/discover hung up at 6s, DELETE of s at 30s"},
		{"in a second, and the probe never too late", in(4, 200, slowModern), late{}, mcp.Modern, "",
			"server/discover at 0s"},
		{"the probe is answered late", in(7, 200, slowModern), late{}, mcp.Modern, "",
			both + ", initialize hung up at 30s"},
		{"the probe is answered late, then initialize", in(7, 200, slowModern), begins("s", in(4, 200, slowLegacy)), mcp.Modern, "",
			both + ", DELETE of s at 9s"},
		{"the probe is answered late, then initialize is refused", in(7, 200, slowModern), in(4, 400, refusal(-32600)), mcp.Modern, "",
			both},
		{"the probe is answered late, then initialize is refused in a session", in(7, 200, slowModern), begins("s", in(4, 200, refusal(-32600))), mcp.Modern, "",
			both + ", DELETE of s at 9s"},
		{"initialize is answered first, then the probe", in(7, 200, slowModern), begins("s", in(1, 200, slowLegacy)), mcp.Legacy, "",
			both + ", notifications/initialized of s at 6s, server/discover hung up at 6s, DELETE of s at 30s"},
		{"the probe is refused late", in(6, 404, ""), begins("s", in(3, 200, slowLegacy)), mcp.Legacy, "",
			both + ", notifications/initialized of s at 8s, DELETE of s at 30s"},
		{"the revision is refused late", in(7, 400, unsupported), late{}, mcp.NoEra, "-32022",
			both + ", server/discover at 7s, initialize hung up at 14s"},
		{"initialize is refused, then the probe is answered", in(20, 200, slowModern), in(1, 200, refusal(-32601)), mcp.Modern, "",
			both},
		{"initialize is refused in a session, then the probe is answered", in(20, 200, slowModern), begins("s", in(1, 200, refusal(-32601))), mcp.Modern, "",
			both + ", DELETE of s at 20s"},
		{"initialize is refused by a modern error, then the probe is answered", in(25, 200, slowModern), in(1, 400, unsupported), mcp.Modern, "",
			both},
		{"initialize is answered in no revision of ours, then the probe", in(20, 200, slowModern), begins("s", in(1, 200, `"result":{"protocolVersion":"1999-01-01","capabilities":{}}`)), mcp.Modern, "",
			both + ", DELETE of s at 20s"},
		{"initialize is refused, the probe is not answered", late{}, in(1, 200, refusal(-32601)), mcp.NoEra, "-32601",
			both + ", server/discover hung up at 30s"},
		{"initialize is refused in a session, the probe is not answered", late{}, begins("s", in(1, 200, refusal(-32601))), mcp.NoEra, "-32601",
			both + ", server/discover hung up at 30s, DELETE of s at 30s"},
		{"nothing is answered", late{}, late{}, mcp.NoEra, "deadline",
			both + ", initialize hung up at 30s, server/discover hung up at 30s"},
		{"503 late, then initialize is answered", in(6, 503, ""), begins("s", in(3, 200, slowLegacy)), mcp.Legacy, "",
			both + ", notifications/initialized of s at 8s, DELETE of s at 30s"},
		{"503 late, then nothing", in(6, 503, ""), late{}, mcp.NoEra, "503",
			both + ", initialize hung up at 30s"},
		{"503 to initialize, then the probe is answered", in(9, 200, slowModern), in(1, 503, ""), mcp.Modern, "",
			both},
		{"503 early", in(4, 503, ""), late{}, mcp.NoEra, "503", "server/discover at 0s"},
		{"401 late", in(6, 401, ""), late{}, mcp.NoEra, "401", both + ", initialize hung up at 6s"},
		{"401 to initialize", late{}, in(1, 401, ""), mcp.NoEra, "401", both + ", server/discover hung up at 6s"},
		{"a connection that is lost late", late{after: 6 * time.Second, err: io.ErrUnexpectedEOF}, begins("s", in(3, 200, slowLegacy)), mcp.Legacy, "",
			both + ", notifications/initialized of s at 8s, DELETE of s at 30s"},
		{"405 to initialize, the probe is not answered", late{}, in(1, 405, ""), mcp.NoEra, "405",
			both + ", server/discover hung up at 18s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowServer(map[string]late{"server/discover": tt.discover, "initialize": tt.initialize})
				c, err := streamable.Dial(t.Context(), "http://h/mcp", &streamable.DialOptions{Transport: s})
				if (err == nil) != (tt.era != mcp.NoEra) || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Fatalf("connecting: %v", err)
				}
				if err == nil {
					if era := c.Server().Era; era != tt.era {
						t.Errorf("taken for %s", era)
					}
					time.Sleep(30*time.Second - time.Since(s.began))
					closeSoon(t, c)
				}
				synctest.Wait()
				if got := sorted(s.seen()); got != sorted(tt.seen) || s.rest != 0 {
					t.Errorf("the server was asked for\n%s\nand not\n%s\n%d are left", got, sorted(tt.seen), s.rest)
				}
			})
		})
	}
}

// sorted returns a list in an order that does not tell apart what happens at once.
func sorted(list string) string {
	parts := strings.Split(list, ", ")
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// TestLosingInitializeEndsWithTheConnection: Close does not wait for a reply to it.
func TestLosingInitializeEndsWithTheConnection_B110_P7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowServer(map[string]late{"server/discover": {after: 7 * time.Second, status: 200, body: slowModern}})
		c, err := streamable.Dial(t.Context(), "http://h/mcp", &streamable.DialOptions{Transport: s})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil || time.Since(s.began) != 7*time.Second {
			t.Errorf("closed after %v: %v", time.Since(s.began), err)
		}
		if got, want := s.seen(), "server/discover at 0s, initialize at 5s, initialize hung up at 7s"; got != want || s.rest != 0 {
			t.Errorf("asked for %s, %d are left", got, s.rest)
		}
	})
}

// TestDialingThatIsGivenUpBesideTheProbe_B110: both requests end with its context.
func TestDialingThatIsGivenUpBesideTheProbe_B110(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowServer(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		_, err := streamable.Dial(ctx, "http://h/mcp", &streamable.DialOptions{Transport: s})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(s.began) != 8*time.Second || s.rest != 0 {
			t.Errorf("%v after %v, %d are left", err, time.Since(s.began), s.rest)
		}
	})
}

// TestLegacyClientOfAServerWithoutSessions: that it may do better as a modern one is
// waited for as long as a probe, and no longer.
func TestLegacyClientOfAServerWithoutSessions_B110(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		discover, initialize late
		era                  mcp.Era
		after                time.Duration
	}{
		{"silent", late{}, late{after: 1, status: 200, body: slowLegacy}, mcp.Legacy, transport.ProbeSilence},
		{"slow", late{after: 4 * time.Second, status: 200, body: slowModern}, late{after: 1, status: 200, body: slowLegacy}, mcp.Modern, 4 * time.Second},
		{"silent, and no server of Streamable HTTP", late{}, late{after: 1, status: 405}, mcp.NoEra, 15 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowServer(map[string]late{"server/discover": tt.discover, "initialize": tt.initialize})
				opts := &streamable.DialOptions{Transport: s, DialOptions: transport.DialOptions{Prefer: mcp.Legacy}}
				c, err := streamable.Dial(t.Context(), "http://h/mcp", opts)
				if took := time.Since(s.began).Round(time.Second); (err == nil) != (tt.era != mcp.NoEra) || took != tt.after {
					t.Errorf("%v after %v", err, took)
				}
				if err == nil {
					if era := c.Server().Era; era != tt.era {
						t.Errorf("taken for %s", era)
					}
					closeSoon(t, c)
				}
			})
		})
	}
}

// TestFallingBackBesideAProbeThatIsNotAnswered: there is time left for HTTP with SSE.
func TestFallingBackBesideAProbeThatIsNotAnswered_B134(t *testing.T) {
	for _, prefer := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlowServer(map[string]late{"initialize": {after: 1, status: 405}, "GET": {after: 1, status: 418}})
			opts := &streamable.DialOptions{Transport: s, DialOptions: transport.DialOptions{Prefer: prefer}}
			_, err := streamable.DialAny(t.Context(), "http://h/mcp", opts)
			if err == nil || !strings.Contains(err.Error(), "405") || !strings.Contains(err.Error(), "418") {
				t.Errorf("%s: %v after %v", prefer, err, time.Since(s.began))
			}
		})
	}
}
