package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestLateListsEndSomeTime: a client that asks whenever it is told of a change is not told
// for ever.
func TestLateListsEndSomeTime_B149(t *testing.T) {
	for _, tt := range []struct {
		name     string
		late     time.Duration
		list     func(n int) *fake
		min, max int // how often it is told in an hour
	}{
		{"another order each time", 5 * time.Second, func(n int) *fake {
			names := []string{"x", "y", "z"}
			return newFake(append(names[n%3:], names[:n%3]...)...)
		}, 1, 2},
		{"another list each time", 5 * time.Second, func(n int) *fake { return newFake(fmt.Sprint("x", n)) }, 100, 125},
		{"another list each time, hardly late", 300 * time.Millisecond, func(n int) *fake { return newFake(fmt.Sprint("x", n)) }, 100, 125},
		{"another list once", 5 * time.Second, func(n int) *fake { return newFake(fmt.Sprint("x", min(n, 2))) }, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake()
				n := 0
				b.handle(mcp.MethodListTools, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					n++
					return after(tt.late, tt.list(n))(ctx, req, caller)
				})
				g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
				events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
				defer stop()
				told := 0
				for range 2 { // the second time it is known
					listTools(t, g)
				}
				for range 60 * 60 {
					time.Sleep(time.Second)
					if events.took() > 0 {
						told++
						listTools(t, g)
					}
				}
				if told < tt.min || told > tt.max {
					t.Errorf("in an hour the client is told %d times, want %d to %d", told, tt.min, tt.max)
				}
			})
		})
	}
}

// TestMissingListIsAskedForAgain: a client that listens is told when a list is there that
// was not, also if the backend itself tells nothing.
func TestMissingListIsAskedForAgain_B149(t *testing.T) {
	starting := jsonrpc.Errorf(jsonrpc.CodeInternalError, "starting")
	for _, tt := range []struct {
		name   string
		broken []string // methods
		err    error
		heard  bool // the backend serves listen calls afterwards
		first  bool // the list is asked for before the client listens
	}{
		{"dead, and does not serve listen calls", []string{mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListen}, errCrashed, false, true},
		{"dead when the client listens", []string{mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListen}, errCrashed, false, false},
		{"no list at first", []string{mcp.MethodListTools}, starting, true, true},
		{"no list when the client listens", []string{mcp.MethodListTools}, starting, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake()
				newRadio(b)
				if !tt.heard {
					b.fail(mcp.MethodListen, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found"))
				}
				whole := map[string]mcp.HandlerFunc{}
				for _, method := range tt.broken {
					whole[method] = b.on[method]
					b.fail(method, tt.err)
				}
				g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
				if tt.first {
					listTools(t, g)
				}
				events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
				if !tt.first {
					listTools(t, g)
				}
				before := b.times(mcp.MethodDiscover)
				time.Sleep(time.Hour)
				events.none(t)
				if n := b.times(mcp.MethodDiscover) - before; n > 30 {
					t.Errorf("in an hour it is asked %d times", n)
				}
				for method, h := range whole {
					b.handle(method, h)
				}
				b.setTools("x")
				time.Sleep(10 * time.Minute)
				events.want(t, mcp.NotificationToolsListChanged)
				b.fail(mcp.MethodListTools, tt.err)
				listTools(t, g)
				stop()
				before = b.times(mcp.MethodListTools)
				time.Sleep(time.Hour)
				if b.times(mcp.MethodListTools) != before {
					t.Error("it is asked for a list that nobody awaits")
				}
			})
		})
	}
}

// TestListThatNobodyWaitsForIsNotAskedForAgain: who listens for another one, or is
// somebody else, does not.
func TestListThatNobodyWaitsForIsNotAskedForAgain(t *testing.T) {
	for _, tt := range []struct {
		listens mcp.Metadata
		filter  string
	}{
		{as("ann", `{}`), `{"promptsListChanged":true}`},
		{as("bob", `{}`), `{"toolsListChanged":true}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newFake()
			b.fail(mcp.MethodListTools, errCrashed)
			g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
			_, stop := listen(t, g, tt.listens, tt.filter)
			defer stop()
			listAs(t, g, as("ann", `{}`), mcp.MethodListTools, "tools", "name")
			time.Sleep(time.Hour)
			if n := b.times(mcp.MethodListTools); n != 1 {
				t.Errorf("while %s listens for %s it is asked for %d times", tt.listens.Principal.Subject, tt.filter, n)
			}
		})
	}
}

// TestLateListIsToldOnlyToWhoseItIs: under whichever token that client listens.
func TestLateListIsToldOnlyToWhoseItIs_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		b.handle(mcp.MethodListTools, after(3*time.Second, newFake("x")))
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		ann, bob := as("ann", `{}`), as("bob", `{}`)
		ann.Grant = "before"
		anns, stop := listen(t, g, ann, `{"toolsListChanged":true}`)
		defer stop()
		bobs, stop := listen(t, g, bob, `{"toolsListChanged":true}`)
		defer stop()
		ann.Grant = "now"
		listAs(t, g, ann, mcp.MethodListTools, "tools", "name")
		time.Sleep(5 * time.Second)
		anns.want(t, mcp.NotificationToolsListChanged)
		bobs.none(t)
	})
}

// TestLateListsAreToldOfOnce: several that come within a while are one change.
func TestLateListsAreToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, n := newFake(), 0
		b.handle(mcp.MethodListTools, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			n++
			return after(3*time.Second, newFake(fmt.Sprint("x", n)))(ctx, req, caller)
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		listTools(t, g)
		time.Sleep(3 * time.Second)
		if n := events.took(); n != 1 {
			t.Errorf("of the first one it is told %d times", n)
		}
		for range 3 {
			listTools(t, g)
			time.Sleep(5 * time.Second)
		}
		events.none(t)
		told := 0
		for range 60 {
			time.Sleep(time.Second)
			told += events.took()
		}
		if told != 1 {
			t.Errorf("of three more it is told %d times", told)
		}
	})
}

// TestBackendThatFailedIsAskedWhatItCanDo: it may come back as another version of itself.
func TestBackendThatFailedIsAskedWhatItCanDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("x")
		b.answer(mcp.MethodDiscover, `{"capabilities":{"tools":{}}}`)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		listTools(t, g)
		b.fail(mcp.MethodListTools, errCrashed)
		listTools(t, g)
		b.answer(mcp.MethodDiscover, everything)
		b.answer(mcp.MethodListPrompts, `{"prompts":[{"name":"p"}]}`)
		if got := list(t, g, mcp.MethodListPrompts, "prompts", "name"); len(got) != 1 {
			t.Errorf("prompts %q", got)
		}
	})
}

// TestListThatIsMissingOnceMoreIsAskedForSoon: how long it was missing before does not
// matter.
func TestListThatIsMissingOnceMoreIsAskedForSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("x")
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		_, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		b.fail(mcp.MethodListTools, errCrashed)
		listTools(t, g)
		time.Sleep(time.Hour)
		b.setTools("x")
		listTools(t, g)
		time.Sleep(time.Hour) // until nothing is to be asked for
		b.fail(mcp.MethodListTools, errCrashed)
		listTools(t, g)
		before := b.times(mcp.MethodListTools)
		time.Sleep(time.Minute)
		if b.times(mcp.MethodListTools) == before {
			t.Error("within a minute it is not asked for again")
		}
	})
}

// TestListThatIsGivenUpIsNone: not one with what has come until then.
func TestListThatIsGivenUpIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake()
		hung.hang(mcp.MethodListTools)
		g := newGateway(t, hurried, map[string]mcp.Handler{"hung": hung, "b": newFake("x")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.Handle(ctx, request(mcp.MethodListTools, `{}`), mcp.NoCaller{})
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.TimedOut || e.Outcome != mcp.NotSent {
			t.Errorf("it ends with %v", err)
		}
	})
}
