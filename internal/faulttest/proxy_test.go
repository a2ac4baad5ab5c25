package faulttest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
)

// echo is a server that returns what it gets, to the end of each connection.
func echo(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	return listener.Addr().String()
}

// through connects to an echo server through a proxy with a fault.
func through(t *testing.T, faults faulttest.Faults) *net.TCPConn {
	t.Helper()
	address := echo(t)
	proxy, err := faulttest.NewProxy(address, faulttest.Once(faults))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

var text = []byte("0123456789")

// What the end of reading is, besides EOF.
var (
	errReset   = syscall.ECONNRESET
	errNothing = errors.New("nothing comes")
)

// received reads all that comes.
func received(t *testing.T, conn *net.TCPConn) ([]byte, error) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		err = errNothing
	}
	return got, err
}

func TestFaultsOfAProxy(t *testing.T) {
	one := func(f faulttest.Fault) []faulttest.Fault { return []faulttest.Fault{f} }
	for _, tt := range []struct {
		name   string
		faults faulttest.Faults
		want   string
		err    error // nil for EOF after the client has said all
	}{
		{"none", faulttest.Faults{}, "0123456789", nil},
		{"delay", faulttest.Faults{Up: one(faulttest.Fault{Trouble: faulttest.Delay, At: 3, Wait: time.Millisecond})}, "0123456789", nil},
		{"trickle", faulttest.Faults{Down: one(faulttest.Fault{Trouble: faulttest.Trickle, At: 3, Wait: time.Millisecond})}, "0123456789", nil},
		{"stall up", faulttest.Faults{Up: one(faulttest.Fault{Trouble: faulttest.Stall, At: 3})}, "012", errNothing},
		{"stall down", faulttest.Faults{Down: one(faulttest.Fault{Trouble: faulttest.Stall, At: 4})}, "0123", errNothing},
		{"freeze at once", faulttest.Faults{Down: one(faulttest.Fault{Trouble: faulttest.Freeze})}, "", errNothing},
		{"half-close up", faulttest.Faults{Up: one(faulttest.Fault{Trouble: faulttest.HalfClose, At: 5})}, "01234", nil},
		{"half-close down", faulttest.Faults{Down: one(faulttest.Fault{Trouble: faulttest.HalfClose, At: 5})}, "01234", nil},
		{"sever down", faulttest.Faults{Down: one(faulttest.Fault{Trouble: faulttest.Sever, At: 9})}, "012345678", nil},
		{"sever late, when there is nothing more", faulttest.Faults{Down: one(faulttest.Fault{Trouble: faulttest.Sever, At: 10, Late: true})}, "0123456789", nil},
		{"reset late", faulttest.Faults{Down: one(faulttest.Fault{Trouble: faulttest.Reset, Late: true})}, "", errReset},
		{"two", faulttest.Faults{Up: []faulttest.Fault{
			{Trouble: faulttest.Delay, At: 1, Wait: time.Millisecond}, {Trouble: faulttest.HalfClose, At: 2},
		}}, "01", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := through(t, tt.faults)
			if _, err := conn.Write(text); err != nil {
				t.Fatal(err)
			}
			_ = conn.CloseWrite() // the connection may be gone
			got, err := received(t, conn)
			if string(got) != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestDelaysTakeTheirTime(t *testing.T) {
	conn := through(t, faulttest.Faults{Up: []faulttest.Fault{{Trouble: faulttest.Delay, Wait: 100 * time.Millisecond}}})
	began := time.Now()
	if _, err := conn.Write(text); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len(text))); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

func TestFaultsAreOfOneConnection(t *testing.T) {
	proxy, err := faulttest.NewProxy(echo(t), faulttest.Once(faulttest.Faults{Up: []faulttest.Fault{{Trouble: faulttest.Reset, At: 1}}}))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	for i, want := range []string{"", "0123456789"} {
		conn, err := net.Dial("tcp", proxy.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(text)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("connection %d: got %q, %v", i, got, err)
		}
		_ = conn.Close()
	}
	if n := proxy.Connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

func TestResetEndsWhatIsThere(t *testing.T) {
	proxy, err := faulttest.NewProxy(echo(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	for range 2 {
		conn, err := net.Dial("tcp", proxy.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write(text)
		if _, err := io.ReadFull(conn, make([]byte, len(text))); err != nil {
			t.Fatal(err)
		}
		proxy.Reset()
		if _, err := received(t, conn.(*net.TCPConn)); !errors.Is(err, errReset) {
			t.Errorf("got %v", err)
		}
	}
}

func TestServerThatIsNotThereIsAReset(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	proxy, err := faulttest.NewProxy(listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	conn, err := net.Dial("tcp", proxy.Addr())
	if err == nil { // else it has come already
		defer conn.Close()
		_, err = received(t, conn.(*net.TCPConn))
	}
	if !errors.Is(err, errReset) {
		t.Errorf("got %v", err)
	}
}

func TestSeededPlansRepeat(t *testing.T) {
	a, b, other := faulttest.Seeded(1, 100), faulttest.Seeded(1, 100), faulttest.Seeded(2, 100)
	equal, faulty := true, 0
	for n := range 100 {
		if !reflect.DeepEqual(a(n), b(n)) {
			t.Errorf("connection %d differs", n)
		}
		equal = equal && reflect.DeepEqual(a(n), other(n))
		if f := a(n); len(f.Up)+len(f.Down) > 0 {
			faulty++
		}
	}
	if equal || faulty < 25 || faulty > 75 {
		t.Errorf("equal to that of another seed: %v; %d of 100 connections have faults", equal, faulty)
	}
}
