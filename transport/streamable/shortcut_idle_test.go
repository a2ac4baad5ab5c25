//go:build unix

package streamable_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A kept is a shortcut with its server, which counts.
type kept struct {
	http.RoundTripper
	address  string
	accepted *atomic.Int64 // connections
	ended    *atomic.Int64 // of them
	latest   atomic.Pointer[net.TCPConn]
	delay    atomic.Pointer[func()] // before a connection is closed
}

// keeping returns a shortcut whose net/http transport is changed first. Answer may be
// nil.
func keeping(t *testing.T, change func(*http.Transport), answer func(conn net.Conn, r *http.Request) bool) *kept {
	if answer == nil {
		answer = func(conn net.Conn, _ *http.Request) bool { return wholeOnWire(conn, "200 OK", "", "{}") }
	}
	k := &kept{ended: new(atomic.Int64)}
	k.delay.Store(new(func() {}))
	k.address, k.accepted = wireServer(t, func(conn net.Conn, r *http.Request, _ *jsonrpc.Message) bool { return answer(conn, r) })
	rest, _ := newRest(t)
	rest.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		k.latest.Store(conn.(*net.TCPConn))
		return &counted{TCPConn: conn.(*net.TCPConn), ended: k.ended, delay: func() { (*k.delay.Load())() }}, nil
	}
	if change != nil {
		change(rest)
	}
	k.RoundTripper = streamable.Shorten(rest, k.address)
	t.Cleanup(k.close)
	return k
}

func (k *kept) close() { (&http.Client{Transport: k.RoundTripper}).CloseIdleConnections() }

func (k *kept) fetch(t *testing.T) {
	t.Helper()
	if got, err := roundTrip(k, newRequest(t, "POST", k.address, "{}")); got.Body != "{}" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A counted is a network connection whose end is counted, and may be delayed.
type counted struct {
	*net.TCPConn
	once  sync.Once
	ended *atomic.Int64
	delay func()
}

// Close implements [io.Closer].
func (c *counted) Close() error {
	c.delay()
	c.once.Do(func() { c.ended.Add(1) })
	return c.TCPConn.Close()
}

// open returns how many descriptors there are.
func (k *kept) open() int64 { return k.accepted.Load() - k.ended.Load() }

// TestShortcutKeepsConnections: as many as it may, and no longer than it may.
func TestShortcutKeepsConnections(t *testing.T) {
	const most, callers = 3, 8
	var all sync.WaitGroup
	release := make(chan struct{})
	arrived := make(chan struct{}, callers)
	k := keeping(t, func(rest *http.Transport) { rest.MaxIdleConnsPerHost = most }, func(conn net.Conn, _ *http.Request) bool {
		arrived <- struct{}{}
		<-release
		return wholeOnWire(conn, "200 OK", "", "{}")
	})
	for range callers {
		all.Go(func() { k.fetch(t) })
	}
	for range callers {
		await(t, arrived)
	}
	close(release)
	all.Wait()
	if n := k.open(); n != most {
		t.Errorf("%d connections of %d are kept", n, k.accepted.Load())
	}
	k.close()
	if n := k.open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	k.fetch(t)
	if n := k.open(); n != 1 {
		t.Errorf("%d connections are kept again", n)
	}
}

// TestShortcutForgetsIdleConnections after their time, though nobody asks for one.
func TestShortcutForgetsIdleConnections(t *testing.T) {
	k := keeping(t, func(rest *http.Transport) { rest.IdleConnTimeout = 20 * time.Millisecond }, nil)
	k.fetch(t)
	eventually(t, func() bool { return k.open() == 0 })
	k.fetch(t)
	eventually(t, func() bool { return k.open() == 0 })
}

// TestShortcutClosesWhatIsGivenBackLate: a reply that is read when all has been closed
// leaves no connection.
func TestShortcutClosesWhatIsGivenBackLate(t *testing.T) {
	k := keeping(t, nil, nil)
	resp, err := k.RoundTrip(newRequest(t, "POST", k.address, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	k.close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
	if n := k.open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestShortcutClosesWhatIsNotRead to its end.
func TestShortcutClosesWhatIsNotRead(t *testing.T) {
	k := keeping(t, nil, nil)
	resp, err := k.RoundTrip(newRequest(t, "POST", k.address, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if n := k.open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestShortcutLeavesNoFailure: a reply that is none leaves no connection, though the
// server would, and nobody closes its body.
func TestShortcutLeavesNoFailure(t *testing.T) {
	for _, text := range []string{"no HTTP\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n"} {
		k := keeping(t, nil, func(conn net.Conn, _ *http.Request) bool {
			_, err := io.WriteString(conn, text)
			return err == nil
		})
		resp, err := k.RoundTrip(newRequest(t, "POST", k.address, "{}"))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
		}
		if n := k.open(); err == nil || n != 0 {
			t.Errorf("%q: %d connections are left after %v", text, n, err)
		}
	}
}

// TestShortcutHeedsConnectionClose, even if the server does not.
func TestShortcutHeedsConnectionClose(t *testing.T) {
	k := keeping(t, nil, func(conn net.Conn, _ *http.Request) bool {
		return wholeOnWire(conn, "200 OK", "Connection: close\n", "{}")
	})
	k.fetch(t)
	if n := k.open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestShortcutKeepsNoDeadline: how long one request may take to be written does not
// count for the next.
func TestShortcutKeepsNoDeadline(t *testing.T) {
	k := keeping(t, nil, nil)
	for range 2 {
		got, err := roundTrip(k, newRequest(t, "POST", k.address, strings.Repeat("x", streamable.MaxShortBody)))
		if got.Body != "{}" {
			t.Errorf("%+v, %v", got, err)
		}
		<-time.After(streamable.WritePatience + streamable.WritePatience/10)
		k.fetch(t)
	}
	if n := k.accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestShortcutKeepsNothingThatIsBeingClosed: the end of its context may come when a
// reply has just been read. The next request is not to feel it.
func TestShortcutKeepsNothingThatIsBeingClosed_P1(t *testing.T) {
	k := keeping(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := k.RoundTrip(newRequest(t, "POST", k.address, "{}").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	closing, release := make(chan struct{}, 2), make(chan struct{})
	k.delay.Store(new(func() {
		closing <- struct{}{}
		<-release
	}))
	cancel()
	await(t, closing)
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(resp.Body)
		read <- err
	}()
	// Whoever reads the end closes the connection too.
	await(t, closing)
	k.delay.Store(new(func() {}))
	k.fetch(t)
	close(release)
	await(t, read)
	k.fetch(t)
	if n := k.accepted.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// arrival waits until there is something to be read, and leaves it.
func arrival(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool {
			var b [1]byte
			_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
			return err != syscall.EAGAIN
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestShortcutRepeatsWhatIsSafeToRepeat: a server may close a kept connection just when a
// request comes. A GET that nothing came for is made again, as by net/http; a POST may have
// been executed.
func TestShortcutRepeatsWhatIsSafeToRepeat_P2(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		begun        string // of the reply that the connection ends in
		ok           bool
	}{
		{"a GET", "GET", "", true},
		{"a GET that was answered", "GET", "HTTP/1.1 2", false},
		{"a POST", "POST", "", false},
		{"a DELETE", "DELETE", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requests := 0
			k := keeping(t, nil, func(conn net.Conn, _ *http.Request) bool {
				if requests++; requests == 2 {
					_, _ = io.WriteString(conn, tt.begun)
					return false
				}
				return wholeOnWire(conn, "200 OK", "", "{}")
			})
			k.fetch(t)
			got, err := roundTrip(k, newRequest(t, tt.method, k.address, ""))
			if ok := err == nil && got.Body == "{}"; ok != tt.ok {
				t.Errorf("%+v, %v", got, err)
			}
			if want := 2 + map[bool]int{true: 1}[tt.ok]; requests != want {
				t.Errorf("%d requests came, want %d", requests, want)
			}
		})
	}
}

// TestShortcutPassesOverDeadConnections: what a server has closed, or has said
// unasked, after its reply is noticed before a request is sent there.
func TestShortcutPassesOverDeadConnections(t *testing.T) {
	unasked := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
	for _, tt := range []struct {
		name string
		then func(conn net.Conn) // after the reply
	}{
		{"closed", func(conn net.Conn) { _ = conn.Close() }},
		{"closed for writing", func(conn net.Conn) { _ = conn.(*net.TCPConn).CloseWrite() }},
		{"reset", func(conn net.Conn) {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}},
		{"a reply to nothing", func(conn net.Conn) { _, _ = io.WriteString(conn, unasked) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var conn atomic.Pointer[net.TCPConn]
			k := keeping(t, nil, func(c net.Conn, _ *http.Request) bool {
				conn.CompareAndSwap(nil, c.(*net.TCPConn))
				return wholeOnWire(c, "200 OK", "", "{}")
			})
			k.fetch(t)
			k.fetch(t)
			if n := k.accepted.Load(); n != 1 {
				t.Fatalf("%d connections for two requests", n)
			}
			tt.then(conn.Load())
			arrival(t, k.latest.Load())
			k.fetch(t)
			if n := k.accepted.Load(); n != 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
	// What comes with the reply itself need not be waited for.
	k := keeping(t, nil, func(conn net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(conn, strings.Replace(unasked, "wrong", "right", 1)+unasked)
		return err == nil
	})
	for i := range 3 {
		if got, err := roundTrip(k, newRequest(t, "POST", k.address, "{}")); got.Body != "right" {
			t.Errorf("request %d: %+v, %v", i, got, err)
		}
	}
	if n := k.accepted.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}
