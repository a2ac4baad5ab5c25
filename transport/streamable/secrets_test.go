package streamable_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// rawServer accepts connections, reads the head of a request on each, and writes what
// answer says.
func rawServer(t *testing.T, answer func(head string) string) (host string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-served
	})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var head strings.Builder
			for reader := bufio.NewReader(conn); !strings.HasSuffix(head.String(), "\r\n\r\n"); {
				line, err := reader.ReadString('\n')
				if err != nil {
					break
				}
				head.WriteString(line)
			}
			_, _ = io.WriteString(conn, answer(head.String()))
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // until the client has read it
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// TestSecretsInWhatIsNoReplyStaySecret has a server repeat what it was sent where an
// HTTP reply should be, of which net/http tells all.
func TestSecretsInWhatIsNoReplyStaySecret(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
	line := func(head, name string) string {
		_, rest, _ := strings.Cut(head, "\r\n"+name+": ")
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	target := func(head string) string { return strings.Fields(head)[1] }
	for name, answer := range map[string]func(head string) string{
		"an echo":               func(head string) string { return head },
		"a header line":         func(head string) string { return "HTTP/1.1 200 OK\r\n" + line(head, "X-Api-Key") + "\r\n\r\n" },
		"a redirect to nowhere": func(head string) string { return "HTTP/1.1 307 No\r\nLocation: http://[" + target(head) + "\r\n\r\n" },
		"a redirect with it": func(head string) string {
			return "HTTP/1.1 302 No\r\nLocation: /" + line(head, "X-Api-Key") + "\r\n\r\n"
		},
		"credentials": func(head string) string { return line(head, "Authorization") + "\r\n\r\n" },
		"a long line": func(head string) string { return strings.Repeat("long", 200_000) + "\r\n\r\n" },
		"a trailer": func(head string) string {
			return chunked + "application/json\r\n\r\n1\r\n{\r\n0\r\n" + line(head, "X-Api-Key") + "\r\n\r\n"
		},
		"a trailer of an event stream": func(head string) string {
			return chunked + "text/event-stream\r\n\r\n0\r\n" + target(head) + "\r\n\r\n"
		},
		"a page about a path": func(head string) string {
			return "HTTP/1.1 404 No\r\nContent-Type: text/html\r\n\r\nCannot POST " + target(head)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := rawServer(t, answer)
			address := "http://hidden-user:hidden-password@" + host + "/mcp?a=hidden%20one&b=%zzhidden-two"
			for kind, transport := range map[string]http.RoundTripper{"our own": nil, "net/http's": &http.Transport{DisableKeepAlives: true}} {
				var log journal
				opts := knownEra(mcp.NoEra)
				opts.Logger, opts.Transport = log.logger(), transport
				opts.Header = http.Header{"X-Api-Key": {"hidden-three"}}
				_, err := streamable.Dial(t.Context(), address, opts)
				_, err2 := streamable.CallOnce(t.Context(), address, toolRequest("t", "{}"), nil, opts)
				_, err3 := streamable.DialSSE(t.Context(), address, opts)
				for _, err := range []error{err, err2, err3} {
					text := fmt.Sprintf("%v %+v %s %s", err, err, jsonrpc.ToWire(err), log.String())
					if err == nil || strings.Contains(text, "hidden") || len(text) > 10_000 {
						t.Errorf("D1.26: %s: %.1000v", kind, err)
					}
					if _, ok := errors.AsType[*mcp.CallError](err); !ok {
						t.Errorf("%s: %.1000v is no failure of a call", kind, err)
					}
				}
			}
		})
	}
}

// TestSessionIDsStaySecret: who knows one has the session.
func TestSessionIDsStaySecret(t *testing.T) {
	const id = "hidden-session"
	p := newPeer(t, legacyPeer("2025-11-25", id, onPost(func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		http.Error(w, "cannot serve session "+r.Header.Get("Mcp-Session-Id"), http.StatusConflict)
	})))
	c := dial(t, p.url, knownEra(mcp.Legacy))
	_, err := call(t, c, mcp.NoCaller{})
	if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), id) || !strings.Contains(err.Error(), "cannot serve session ***") {
		t.Errorf("%v", err)
	}
}

// TestSessionIDsInEndpointsStaySecret, wherever in it they are, and of whatever length.
func TestSessionIDsInEndpointsStaySecret(t *testing.T) {
	const id = "hidden-session-6f1d9a"
	for _, endpoint := range []string{"/message?session=" + id, "/" + id + "-long/message", "/message/" + id + "/", "/message?a=hidden-s&session=" + id} {
		s := newOldServer(t, endpointIs(endpoint), atCalls(func(_ *oldServer, w http.ResponseWriter, _ *jsonrpc.Message) {
			http.Error(w, "cannot take "+endpoint, http.StatusConflict)
		}))
		c := dialSSE(t, s.url, nil)
		_, err := call(t, c, mcp.NoCaller{})
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "hidden") || !strings.Contains(err.Error(), "cannot take /") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// TestPasswordOfAProxyStaysSecret: also if there is no such proxy.
func TestPasswordOfAProxyStaysSecret(t *testing.T) {
	const secret = "hidden-secret"
	for name, address := range map[string]string{"no URL": "http://user:" + secret + "@proxy:x", "nobody": "http://user:" + secret + "@127.0.0.1:1"} {
		transport := &http.Transport{Proxy: streamable.Discreetly(func(*http.Request) (*url.URL, error) {
			proxy, err := url.Parse(address)
			if err != nil {
				return nil, fmt.Errorf("invalid proxy address %q: %v", address, err) // as net/http says it
			}
			return proxy, nil
		})}
		for _, scheme := range []string{"http", "https"} {
			opts := knownEra(mcp.NoEra)
			opts.Transport = transport
			_, err := streamable.Dial(t.Context(), scheme+"://server.example/mcp", opts)
			e, ok := errors.AsType[*mcp.CallError](err)
			if !ok || e.Kind != mcp.Unreachable || e.Outcome != mcp.NotSent || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
				t.Errorf("%s, %s: %v", name, scheme, err)
			}
		}
	}
}
