package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// TestKeptListsAreOfOneGrant: two tokens of one user need not show the same (2026-07-28,
// server/utilities/caching, Cache Scope Field).
func TestKeptListsAreOfOneGrant_B155(t *testing.T) {
	b := newFake()
	b.handle(mcp.MethodListTools, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		return mcp.RawResult(fmt.Appendf(nil, `{"tools":[{"name":"of_%s"}],"ttlMs":60000,"cacheScope":"private"}`, req.Meta.Grant)), nil
	})
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	read, write := as("ann", `{}`), as("ann", `{}`)
	read.Grant, write.Grant = "read", "write"
	for _, who := range []mcp.Metadata{write, read, write} {
		if diff := cmp.Diff([]string{"of_" + who.Grant}, listAs(t, g, who, mcp.MethodListTools, "tools", "name")); diff != "" {
			t.Errorf("with the token to %s (-want +got):\n%s", who.Grant, diff)
		}
	}
	b.fail(mcp.MethodListTools, errCrashed)
	other := as("ann", `{}`)
	other.Grant, other.Session = "other", "s"
	if got := listAs(t, g, other, mcp.MethodListTools, "tools", "name"); len(got) != 0 {
		t.Errorf("with another token, of a backend that is dead: %q", got)
	}
}

// TestNewTokenIsToldOfLateLists: the listen call was made with the one before.
func TestNewTokenIsToldOfLateLists_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		b.handle(mcp.MethodListTools, after(5*time.Second, newFake("x")))
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		old, now := as("ann", `{}`), as("ann", `{}`)
		old.Grant, now.Grant = "old", "new"
		events, stop := listen(t, g, old, `{"toolsListChanged":true}`)
		defer stop()
		listAs(t, g, now, mcp.MethodListTools, "tools", "name")
		time.Sleep(10 * time.Second)
		events.want(t, mcp.NotificationToolsListChanged)
	})
}

// TestNewTokenIsToldOfMissingLists that come: they are asked for again.
func TestNewTokenIsToldOfMissingLists_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		b.fail(mcp.MethodListTools, errCrashed)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		old, now := as("ann", `{}`), as("ann", `{}`)
		old.Grant, now.Grant = "old", "new"
		events, stop := listen(t, g, old, `{"toolsListChanged":true}`)
		defer stop()
		listAs(t, g, now, mcp.MethodListTools, "tools", "name")
		b.setTools("x")
		time.Sleep(10 * time.Minute)
		events.want(t, mcp.NotificationToolsListChanged)
	})
}

// TestPagesOfAListHaveOneScope (2026-07-28, server/utilities/caching, Interaction with
// Pagination).
func TestPagesOfAListHaveOneScope_B155(t *testing.T) {
	b := newFake()
	big := strings.Repeat("x", 600<<10)
	b.answer(mcp.MethodListTools, fmt.Sprintf(
		`{"tools":[{"name":"a","description":%q},{"name":"b","description":%q},{"name":"c"}],"ttlMs":60000,"cacheScope":"public"}`, big, big))
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	first := do(t, g, mcp.MethodListTools, `{}`)
	cursor, ok := first.Lookup("nextCursor")
	if !ok {
		t.Fatal("there is one page")
	}
	second := do(t, g, mcp.MethodListTools, fmt.Sprintf(`{"cursor":%s}`, cursor))
	one, _ := first.LookupString("cacheScope")
	if two, _ := second.LookupString("cacheScope"); one != two {
		t.Errorf("the first page is %s, the second %s", one, two)
	}
}

// TestListThatChangesWhileItIsAskedForMayNotBeKept: the client was told before it came.
func TestListThatChangesWhileItIsAskedForMayNotBeKept_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		h := <-radio.calls
		b.handle(mcp.MethodListTools, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			h.tell(t, &mcp.Notification{Method: mcp.NotificationToolsListChanged})
			return mcp.RawResult([]byte(`{"tools":[],"ttlMs":60000,"cacheScope":"public"}`)), nil
		})
		result := do(t, g, mcp.MethodListTools, `{}`)
		if !strings.Contains(string(result.Raw()), `"ttlMs":0,"cacheScope":"private"`) {
			t.Errorf("the list is %s", result.Raw())
		}
		events.want(t, mcp.NotificationToolsListChanged)
	})
}

// TestListThatFailsIsNotGood: calls that succeed do not make it so, the list does.
func TestListThatFailsIsNotGood(t *testing.T) {
	b := newFake("x")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	listTools(t, g)
	b.fail(mcp.MethodListTools, jsonrpc.Errorf(jsonrpc.CodeInternalError, "no database"))
	listTools(t, g)
	callTool(t, g, "x")
	list(t, g, mcp.MethodListPrompts, "prompts", "name")
	if s := statusOf(t, g, "b"); s.State != gateway.Degraded || !strings.Contains(s.Reason, "no database") {
		t.Errorf("while its list fails: %v", s)
	}
	b.setTools("x")
	listTools(t, g)
	if s := statusOf(t, g, "b"); s.State != gateway.Good || s.Reason != "" {
		t.Errorf("when it is there again: %v", s)
	}
}

// TestBrokenListStaysBrokenWhileItsBackendIsAway: that it is there again does not mend it.
func TestBrokenListStaysBrokenWhileItsBackendIsAway(t *testing.T) {
	b := newFake("x")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	listTools(t, g)
	for _, err := range []error{jsonrpc.Errorf(jsonrpc.CodeInternalError, "no database"), errCrashed} {
		b.fail(mcp.MethodListTools, err)
		listTools(t, g)
	}
	callTool(t, g, "x")
	if s := statusOf(t, g, "b"); s.State != gateway.Degraded {
		t.Errorf("its list has not come since: %v", s)
	}
	b.setTools("x")
	listTools(t, g)
	if s := statusOf(t, g, "b"); s.State != gateway.Good {
		t.Errorf("when it is there again: %v", s)
	}
}

// TestErrorOfItsOwnShowsThatABackendIsThere after it was not.
func TestErrorOfItsOwnShowsThatABackendIsThere(t *testing.T) {
	b := newFake("x")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	listTools(t, g)
	for _, tt := range []struct {
		err  error
		want gateway.State
	}{
		{errCrashed, gateway.Degraded},
		{jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "its own"), gateway.Good},
	} {
		b.fail(mcp.MethodCallTool, tt.err)
		if _, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"x"}`), mcp.NoCaller{}); err == nil {
			t.Error("the call succeeds")
		}
		if s := statusOf(t, g, "b"); s.State != tt.want {
			t.Errorf("after %v: %v", tt.err, s)
		}
	}
}

// TestReasonIsBoundedAndPlain: it is what a backend says, and operators read it in their
// terminals.
func TestReasonIsBoundedAndPlain(t *testing.T) {
	b := newFake()
	b.fail(mcp.MethodListTools, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", "\x1b[2J\u202e\nold "+strings.Repeat("ä", 1<<20)))
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	listTools(t, g)
	s := statusOf(t, g, "b")
	if len(s.Reason) > 10_000 || !utf8.ValidString(s.Reason) || !strings.Contains(s.Reason, "old ää") {
		t.Errorf("%d bytes: %.100q", len(s.Reason), s.Reason)
	}
	if line := s.String(); strings.ContainsAny(line, "\x1b\n\u202e") {
		t.Errorf("the line is %.200q", line)
	}
}

// TestNothingIsRememberedOfRemovedBackends: a list that was being put together meanwhile
// brings none of their conflicts back.
func TestNothingIsRememberedOfRemovedBackends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, slow := listed("x:1"), listed("x:1"), newFake()
		slow.handle(mcp.MethodListResources, after(time.Second, listed("x:2")))
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "two": two, "slow": slow})
		done := make(chan struct{})
		go func() {
			list(t, g, mcp.MethodListResources, "resources", "uri")
			close(done)
		}()
		synctest.Wait()
		g.Remove("one")
		<-done
		if got := g.Conflicts(); len(got) != 0 {
			t.Errorf("conflicts with a backend that was removed: %v", got)
		}
	})
}

// TestStateIsAsOldAsItIs: not as its last failure.
func TestStateIsAsOldAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("x")
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		listTools(t, g)
		b.fail(mcp.MethodListTools, errCrashed)
		time.Sleep(time.Minute)
		began := time.Now()
		for range 3 {
			listTools(t, g)
			if s := statusOf(t, g, "b"); !s.Since.Equal(began) || s.State != gateway.Degraded {
				t.Errorf("%v, want since %v", s, began)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestCallShowsThatABackendIsThere also if it was late when it was asked what it can do.
func TestCallShowsThatABackendIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("x")
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		listTools(t, g)
		b.hang(mcp.MethodDiscover)
		do(t, g, mcp.MethodDiscover, `{}`)
		if s := statusOf(t, g, "b"); s.State != gateway.Degraded {
			t.Errorf("when it was late: %v", s)
		}
		callTool(t, g, "x")
		if s := statusOf(t, g, "b"); s.State != gateway.Good {
			t.Errorf("after a call: %v", s)
		}
	})
}

// TestInstructionsOfAllAreBounded: those that would be too much are left out whole.
func TestInstructionsOfAllAreBounded(t *testing.T) {
	backends := make(map[string]mcp.Handler)
	for name, n := range map[string]int{"a": 20_000, "b": 20_000, "c": 100} {
		f := newFake()
		f.answer(mcp.MethodDiscover, fmt.Sprintf(`{"capabilities":{"tools":{}},"instructions":%q}`, strings.Repeat(name, n)))
		backends[name] = f
	}
	g := newGateway(t, unhurried, backends)
	result := do(t, g, mcp.MethodDiscover, `{}`)
	text, _ := result.LookupString("instructions")
	want := "[a]\n" + strings.Repeat("a", 20_000) + "\n\n[c]\n" + strings.Repeat("c", 100)
	if text != want {
		t.Errorf("%d bytes of instructions, want %d: %.20s", len(text), len(want), text)
	}
}

// TestLogSaysHowMuchItLeavesOut: of the trouble of a backend.
func TestLogSaysHowMuchItLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var mu sync.Mutex
		b := newFake()
		b.fail(mcp.MethodListTools, errCrashed)
		g := newGateway(t, &gateway.Options{Logger: slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))}, map[string]mcp.Handler{"b": b})
		for range 3 {
			listTools(t, g)
			listTools(t, g)
			listTools(t, g)
			time.Sleep(time.Minute)
		}
		var got []string
		mu.Lock()
		defer mu.Unlock()
		for line := range strings.Lines(log.String()) {
			_, muffled, _ := strings.Cut(strings.TrimSpace(line), " muffled=")
			got = append(got, muffled)
		}
		if diff := cmp.Diff([]string{"0", "2", "2"}, got); diff != "" {
			t.Errorf("lines that were not logged (-want +got):\n%s", diff)
		}
	})
}

// TestListThatPanicsIsNotGood: nor is one whose answer is none.
func TestListThatPanicsIsNotGood(t *testing.T) {
	for name, answer := range map[string]mcp.HandlerFunc{
		"boom":    func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) { panic("boom") },
		"no list": answering(`{"tools":{}}`),
	} {
		b := newFake("x")
		g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
		listTools(t, g)
		b.handle(mcp.MethodListTools, answer)
		listTools(t, g)
		b.fail(mcp.MethodCallTool, errCrashed)
		_, _ = g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"x"}`), mcp.NoCaller{})
		b.answer(mcp.MethodCallTool, `{}`)
		do(t, g, mcp.MethodCallTool, `{"name":"x"}`)
		if s := statusOf(t, g, "b"); s.State != gateway.Degraded {
			t.Errorf("%s: %v", name, s)
		}
	}
}

// TestBackendThatWasLostIsGoodOnceItAnswers: a call shows that it is there, and nothing was
// wrong with its list.
func TestBackendThatWasLostIsGoodOnceItAnswers(t *testing.T) {
	b := newFake("x")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	listTools(t, g)
	b.fail(mcp.MethodListTools, errCrashed)
	listTools(t, g)
	if s := statusOf(t, g, "b"); s.State != gateway.Degraded {
		t.Errorf("when it is lost: %v", s)
	}
	b.answer(mcp.MethodCallTool, `{}`)
	do(t, g, mcp.MethodCallTool, `{"name":"x"}`)
	if s := statusOf(t, g, "b"); s.State != gateway.Good {
		t.Errorf("after a call: %v", s)
	}
}
