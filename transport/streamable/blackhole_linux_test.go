package streamable_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// net/http goes on to connect when the request that wanted it has been given up, until
// its transport is closed.
func TestConnectingEndsWithTheConnection_R7_P7(t *testing.T) {
	hole, err := faulttest.NewBlackHole()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hole.Close() })
	for _, era := range []mcp.Era{mcp.Legacy, mcp.NoEra} {
		t.Run(era.String(), func(t *testing.T) {
			before := runtime.NumGoroutine()
			opts := knownEra(era)
			opts.HandshakeTimeout = 50 * time.Millisecond
			if _, err := streamable.Dial(t.Context(), "http://"+hole.Addr, opts); err == nil {
				t.Fatal("connected")
			}
			const soon = streamable.DefaultConnectTimeout / 5
			for began := time.Now(); runtime.NumGoroutine() > before; <-time.After(time.Millisecond) {
				if time.Since(began) > soon {
					t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				}
			}
		})
	}
}

func TestConnectTimeout_R7(t *testing.T) {
	hole, err := faulttest.NewBlackHole()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hole.Close() })
	opts := knownEra(mcp.Legacy)
	opts.ConnectTimeout = 50 * time.Millisecond
	_, err = streamable.Dial(t.Context(), "http://"+hole.Addr, opts)
	if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.Unreachable || e.Outcome != mcp.NotSent {
		t.Errorf("got %v", err)
	}
}
