package cells_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/faulttest/cells"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// patience bounds what only a hang would miss.
const patience = 30 * time.Second

// A fixture is one bridge before one server, and clients of one kind.
type fixture struct {
	client, server cells.Side
	pool           transport.PoolOptions
	options        streamable.ServerOptions
	life           time.Duration // of parked calls, at bridge and server

	backend *cells.Backend
	bridge  *cells.Bridge
	clients []*cells.Client
	atEnd   func()
}

// inEachCell runs a test for all kinds of clients and servers, each with a bridge that
// has room for one parked call. Nothing may be left behind.
func inEachCell(t *testing.T, f fixture, test func(t *testing.T, f *fixture)) {
	f.options.Park = park.Options{MaxParked: 1, Life: f.life}
	f.options.Drain = 100 * time.Millisecond
	for _, server := range cells.Sides {
		t.Run("to "+server.String(), func(t *testing.T) {
			for _, client := range cells.Sides {
				t.Run("from "+client.String(), func(t *testing.T) {
					cell := f
					cell.client, cell.server = client, server
					dir := t.TempDir()
					before := faulttest.Count(dir)
					cell.run(t, dir, test)
					if left := faulttest.Since(before, dir); !left.None() {
						t.Errorf("%v are left", left)
					}
				})
			}
		})
	}
}

func (f *fixture) run(t *testing.T, dir string, test func(*testing.T, *fixture)) {
	var err error
	if f.backend, err = cells.NewBackend(f.server, dir, f.life); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.backend.Close(); err != nil {
			t.Error(err)
		}
	}()
	f.open(t)
	defer func() {
		for _, c := range f.clients {
			if err := c.Close(); err != nil {
				t.Errorf("closing a client: %v", err)
			}
		}
		f.close(t)
		if f.atEnd != nil {
			f.atEnd()
		}
	}()
	test(t, f)
}

func (f *fixture) open(t *testing.T) {
	t.Helper()
	var err error
	if f.bridge, err = cells.NewBridge(f.backend, f.pool, f.options); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) close(t *testing.T) {
	t.Helper()
	if err := f.bridge.Close(); err != nil {
		t.Errorf("closing the bridge: %v", err)
	}
}

// connect connects a client, which is closed at the end.
func (f *fixture) connect(t *testing.T, name string) *cells.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := f.bridge.Connect(ctx, f.client, name)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	f.clients = append(f.clients, c)
	return c
}

// try connects another client and has it make a call that asks nothing.
func (f *fixture) try(t *testing.T, name string, o *cells.Order) (mcp.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := f.bridge.Connect(ctx, f.client, name)
	if err != nil {
		return mcp.Result{}, err
	}
	f.clients = append(f.clients, c)
	call := c.NewCall(ctx, o)
	call.Go()
	return call.Result, call.Err
}

// asked returns a call whose client is being asked.
func asked(t *testing.T, c *cells.Client, id string) *cells.Call {
	t.Helper()
	call := c.NewCall(t.Context(), &cells.Order{ID: id, Asks: 1})
	if !call.Go() {
		t.Fatalf("the call %s was to ask, and ended: %v %s", id, call.Err, call.Result.Raw())
	}
	return call
}

// answered checks that a call goes well now that its client answers.
func answered(t *testing.T, call *cells.Call) {
	t.Helper()
	if call.Go() || call.Err != nil {
		t.Errorf("the call %s: %v", call.Order.ID, call.Err)
		return
	}
	content := call.Result.Get("content")
	if want := fmt.Sprintf(`[{"type":"text","text":"%s%s"}]`, call.Order.ID, strings.Repeat(" accept Ada", call.Order.Asks)); string(content.Raw()) != want {
		t.Errorf("the call %s has given %s", call.Order.ID, call.Result.Raw())
	}
}

// executed returns how often a call was.
func (f *fixture) executed(t *testing.T, id string) int {
	t.Helper()
	executed, err := f.backend.Executed()
	if err != nil {
		t.Fatal(err)
	}
	return executed[id]
}

func (f *fixture) executedOnce(t *testing.T, id string) {
	t.Helper()
	if n := f.executed(t, id); n != 1 {
		t.Errorf("the call %s was executed %d times", id, n)
	}
}

// abandoned waits until the server has seen that a call is cancelled.
func (f *fixture) abandoned(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the cancellation", func() bool {
		abandoned, err := f.backend.Abandoned()
		if err != nil {
			t.Fatal(err)
		}
		return abandoned[id] == 1
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for late := time.After(patience); !holds(); {
		select {
		case <-late:
			t.Fatalf("it does not come: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
