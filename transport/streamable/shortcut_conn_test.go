//go:build unix

package streamable_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A tampered is a network connection with a Write of the test's.
type tampered struct {
	*net.TCPConn
	write func(conn *net.TCPConn, p []byte) (int, error)
}

// Write implements [io.Writer].
func (c *tampered) Write(p []byte) (int, error) { return c.write(c.TCPConn, p) }

// tampering returns a shortcut whose connections write with write.
func tampering(t *testing.T, address string, write func(conn *net.TCPConn, p []byte) (int, error)) http.RoundTripper {
	rest, _ := newRest(t)
	rest.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tampered{conn.(*net.TCPConn), write}, nil
	}
	s := streamable.Shorten(rest, address)
	t.Cleanup((&http.Client{Transport: s}).CloseIdleConnections)
	return s
}

// TestShortcutKnowsWhatWasSent_P2: a request of which nothing was written is made anew, if
// that was on a kept connection, and otherwise not sent. Any other may be executed.
func TestShortcutKnowsWhatWasSent_P2(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name    string
		first   int // request that cannot be written as it should
		written int
		outcome mcp.Outcome // empty: it is made all the same
	}{
		{"nothing, on a new connection", 0, 0, mcp.NotSent},
		{"nothing, on a kept connection", 1, 0, ""},
		{"something, on a new connection", 0, 1, mcp.MaybeExecuted},
		{"something, on a kept connection", 1, 1, mcp.MaybeExecuted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			address, accepted := wireServer(t, func(conn net.Conn, r *http.Request, _ *jsonrpc.Message) bool {
				bodies = append(bodies, r.Header.Get("A"))
				return wholeOnWire(conn, "200 OK", "", "{}")
			})
			n := 0
			s := tampering(t, address, func(conn *net.TCPConn, p []byte) (int, error) {
				if n++; n != tt.first+1 {
					return conn.Write(p)
				}
				sent, _ := conn.Write(p[:tt.written])
				_ = conn.CloseWrite() // as after a reset, nothing comes any more
				return sent, broken
			})
			for i := range tt.first + 1 {
				req := newRequest(t, "POST", address, "{}")
				req.Header.Set("A", fmt.Sprint(i))
				got, err := roundTrip(s, req)
				switch {
				case i < tt.first || tt.outcome == "":
					if err != nil || got.Body != "{}" {
						t.Errorf("request %d: %v", i, err)
					}
				case !errors.Is(err, broken) || streamable.OutcomeOf(t.Context(), err) != tt.outcome:
					t.Errorf("%v, %v", err, streamable.OutcomeOf(t.Context(), err))
				}
			}
			if want := []string{"0", "1"}; tt.outcome == "" && (fmt.Sprint(bodies) != fmt.Sprint(want) || accepted.Load() != 2) {
				t.Errorf("%v over %d connections", bodies, accepted.Load())
			}
		})
	}
}

// TestShortcutCannotConnect: nothing was sent.
func TestShortcutCannotConnect(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + listener.Addr().String()
	_ = listener.Close()
	s, _ := shortcut(t, address)
	_, err = roundTrip(s, newRequest(t, "POST", address, "{}"))
	if streamable.OutcomeOf(t.Context(), err) != mcp.NotSent {
		t.Error(err)
	}
}

// shrink leaves a socket little room.
func shrink(fd uintptr) {
	for _, opt := range []int{syscall.SO_RCVBUF, syscall.SO_SNDBUF} {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, opt, 4<<10)
	}
}

// crampedServer accepts connections that have little room, and reads them as read does.
func crampedServer(t *testing.T, read func(conn net.Conn)) (address string, via http.RoundTripper) {
	small := func(_, _ string, raw syscall.RawConn) error { return raw.Control(shrink) }
	listener, err := (&net.ListenConfig{Control: small}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				read(conn)
			})
		}
	})
	address = "http://" + listener.Addr().String()
	rest, _ := newRest(t)
	rest.DialContext = (&net.Dialer{Control: small}).DialContext
	via = streamable.Shorten(rest, address)
	t.Cleanup((&http.Client{Transport: via}).CloseIdleConnections)
	return address, via
}

// TestShortcutSeesAnEarlyReply: a server that does not want a body says so before it
// has read it.
func TestShortcutSeesAnEarlyReply(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after func(conn net.Conn) // the reply
	}{
		{"and closes", func(net.Conn) {}},
		{"and reads no more", awaitEnd},
		{"and reads on", func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address, s := crampedServer(t, func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				_ = onWire(conn, "HTTP/1.1 413 Too Large\nContent-Length: 3\nConnection: close\n", "no!")
				tt.after(conn)
			})
			got, err := roundTrip(s, newRequest(t, "POST", address, strings.Repeat("x", streamable.MaxShortBody)))
			if got.Body != "no!" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestShortcutDoesNotGoOnInAnEarlyReply: a connection that a request is still being
// written to is not used for the next one.
func TestShortcutDoesNotGoOnInAnEarlyReply(t *testing.T) {
	accepted, over := make(chan struct{}, 2), make(chan struct{})
	address, s := crampedServer(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		accepted <- struct{}{}
		_ = wholeOnWire(conn, "413 Too Large", "", "no!")
		<-over // neither reads nor writes
	})
	t.Cleanup(func() { close(over) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		got, err := roundTrip(s, newRequest(t, "POST", address, strings.Repeat("x", streamable.MaxShortBody)).WithContext(ctx))
		if got.Body != "no!" {
			t.Errorf("%+v, %v", got, err)
		}
		await(t, accepted)
	}
}

// awaitEnd waits for the end of a connection, at which a write fails, and reads nothing.
func awaitEnd(conn net.Conn) {
	for range time.Tick(time.Millisecond) {
		if _, err := conn.Write([]byte("x")); err != nil {
			return
		}
	}
}

// TestShortcutWritesToASlowReader: a server that takes its time with a request gets
// all of it, and the next one over the same connection.
func TestShortcutWritesToASlowReader(t *testing.T) {
	body := strings.Repeat("0123456789", streamable.MaxShortBody/10)
	address, s := crampedServer(t, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			<-time.After(2 * streamable.WritePatience)
			got, err := io.ReadAll(r.Body)
			if err != nil || string(got) != body {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			_ = wholeOnWire(conn, "200 OK", "", "{}")
		}
	})
	for range 2 {
		if got, err := roundTrip(s, newRequest(t, "POST", address, body)); got.Body != "{}" {
			t.Error(err)
		}
	}
}

// TestShortcutIsCancelled: wherever an exchange is, the end of its context ends it and
// closes its connection.
func TestShortcutIsCancelled_R7(t *testing.T) {
	const half = "HTTP/1.1 200 OK\r\nContent-Le"
	for _, tt := range []struct {
		name, reply string
		body        string
		inBody      bool
	}{
		{"before the reply", "", "{}", false},
		{"in a write", "", strings.Repeat("x", streamable.MaxShortBody), false},
		{"in the header", half, "{}", false},
		{"after a hint", "HTTP/1.1 103 Early Hints\r\n\r\n", "{}", false},
		{"before the body", half + "ngth: 9\r\n\r\n", "{}", true},
		{"in the body", half + "ngth: 9\r\n\r\nhel", "{}", true},
		{"in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhel", "{}", true},
		{"in an endless body", "HTTP/1.1 200 OK\r\n\r\nhel", "{}", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun, gone := make(chan struct{}, 1), make(chan struct{}, 1)
			address, s := crampedServer(t, func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				_, _ = io.WriteString(conn, tt.reply)
				begun <- struct{}{}
				_, _ = io.Copy(io.Discard, conn)
				gone <- struct{}{}
			})
			why := errors.New("why")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended, replied := make(chan error, 1), make(chan struct{}, 1)
			go func() {
				resp, err := s.RoundTrip(newRequest(t, "POST", address, tt.body).WithContext(ctx))
				if (err == nil) != tt.inBody {
					t.Errorf("RoundTrip returns %v", err)
				}
				replied <- struct{}{}
				if err == nil {
					_, err = io.ReadAll(resp.Body)
				}
				ended <- err
			}()
			await(t, begun)
			if tt.inBody {
				await(t, replied)
			}
			cancel(why)
			if err := await(t, ended); !errors.Is(err, why) {
				t.Error(err)
			}
			await(t, gone)
		})
	}
	t.Run("connecting", func(t *testing.T) {
		rest, _ := newRest(t)
		begun := make(chan struct{}, 1)
		rest.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s := streamable.Shorten(rest, "http://example.com/")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		if _, err := s.RoundTrip(newRequest(t, "POST", "http://example.com/", "{}").WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestShortcutRacesWithItsContext: requests that end when their replies come neither
// lose a connection that is good nor leave another one to the next request.
func TestShortcutRacesWithItsContext_P1(t *testing.T) {
	address, _ := wireServer(t, func(conn net.Conn, r *http.Request, _ *jsonrpc.Message) bool {
		return wholeOnWire(conn, "200 OK", "", r.Header.Get("A"))
	})
	s, asked := shortcut(t, address)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(2) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(200))*time.Microsecond, cancel)
				}
				req := newRequest(t, "POST", address, "{}").WithContext(ctx)
				name := fmt.Sprint(caller, i)
				req.Header.Set("A", name)
				got, err := roundTrip(s, req)
				if err == nil && got.Body != name || err != nil && ctx.Err() == nil {
					t.Errorf("%s got %q, %v", name, got.Body, err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	if asked.Load() > 0 {
		t.Error("net/http has made requests")
	}
}

// TestShortcutBodyEndsOnce: a body may be closed by others while it is read.
func TestShortcutBodyEndsOnce(t *testing.T) {
	address, _ := wireServer(t, func(conn net.Conn, r *http.Request, _ *jsonrpc.Message) bool {
		return onWire(conn, "HTTP/1.1 200 OK\nContent-Length: 9\n", "hello")
	})
	s, _ := shortcut(t, address)
	resp, err := s.RoundTrip(newRequest(t, "POST", address, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Millisecond, func() { _ = resp.Body.Close() })
	got, err := io.ReadAll(resp.Body)
	if string(got) != "hello" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, again := resp.Body.Read(make([]byte, 1)); again == nil || again == io.EOF {
		t.Errorf("after that: %v", again)
	}
}

// TestShortcutLimitsTheHeader of a reply, and names the limit.
func TestShortcutLimitsTheHeader(t *testing.T) {
	for name, text := range map[string]string{
		"a long line":  "HTTP/1.1 200 " + strings.Repeat("x", 10*replyHeader),
		"many lines":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 10*replyHeader),
		"many replies": strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 10*replyHeader),
	} {
		address, _ := wireServer(t, func(conn net.Conn, _ *http.Request, _ *jsonrpc.Message) bool {
			_, err := io.WriteString(conn, text)
			return err == nil
		})
		s, _ := shortcut(t, address)
		_, err := roundTrip(s, newRequest(t, "POST", address, "{}"))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("MaxReplyHeader of %d bytes", replyHeader)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
