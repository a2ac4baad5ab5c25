package server_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// A listening is one listen call. Its client takes what it is sent when the test
// calls next.
type listening struct {
	mcp.NoCaller
	sent   chan string
	cancel context.CancelFunc
	ended  chan error
	result mcp.Result
}

func (l *listening) Notify(ctx context.Context, n *mcp.Notification) error {
	select {
	case l.sent <- strings.TrimSpace(strings.TrimPrefix(n.Method, "notifications/") + " " + string(n.Params.Raw())):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listen opens a listen call and takes its acknowledgement.
func listen(t *testing.T, s *server.Server, filter string) *listening {
	t.Helper()
	l := open(t, s, filter)
	if got := l.next(); got == "" || !strings.HasPrefix(got, "subscriptions/acknowledged ") {
		t.Fatalf("first came %q", got)
	}
	return l
}

func open(t *testing.T, s *server.Server, filter string) *listening {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &listening{sent: make(chan string), cancel: cancel, ended: make(chan error, 1)}
	req := request(mcp.MethodListen, `{"notifications":`+filter+`}`)
	go func() {
		var err error
		l.result, err = s.Handle(ctx, req, l)
		l.ended <- err
	}()
	t.Cleanup(cancel)
	return l
}

// next returns what comes within a second, empty if nothing does.
func (l *listening) next() string {
	select {
	case got := <-l.sent:
		return got
	case <-time.After(time.Second):
		return ""
	}
}

// all returns what comes until nothing does.
func (l *listening) all() (got []string) {
	for next := l.next(); next != ""; next = l.next() {
		got = append(got, next)
	}
	return got
}

func updated(uri string) string { return `resources/updated {"uri":"` + uri + `"}` }

// watched is a server whose resources are all that begin with u:.
func watched(opts *server.Options) *server.Server {
	s := newServer(opts)
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "u:{+rest}", Name: "all"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return nil, nil
	})
	s.AddResource(mcp.Resource{URI: "file:///", Name: "root"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return nil, nil
	})
	addTools(s, "t")
	return s
}

func TestListenIsAcknowledgedWithWhatIsServed_B121(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for filter, want := range map[string]string{
			`{}`: `{}`,
			`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`: `{"toolsListChanged":true,"resourcesListChanged":true}`,
			`{"resourceSubscriptions":["u:a","v:b"]}`:                                         `{"resourceSubscriptions":["u:a"]}`,
			`{"resourceSubscriptions":["v:b"],"session":true}`:                                `{}`,
		} {
			l := open(t, watched(nil), filter)
			if got := l.next(); got != `subscriptions/acknowledged {"notifications":`+want+`}` {
				t.Errorf("%s: %s", filter, got)
			}
			l.cancel()
			if err := <-l.ended; err != nil || !strings.HasPrefix(string(l.result.Raw()), `{"resultType":"complete"`) {
				t.Errorf("it ended with %s, %v", l.result.Raw(), err)
			}
		}
	})
	for _, filter := range []string{`{"toolsListChanged":true}`, `{"promptsListChanged":true}`, `{"resourcesListChanged":true}`, `{"resourceSubscriptions":["u:a"]}`} {
		synctest.Test(t, func(t *testing.T) {
			l := open(t, newServer(nil), filter) // which has nothing
			if got := l.next(); got != `subscriptions/acknowledged {"notifications":{}}` {
				t.Errorf("%s: %s", filter, got)
			}
			l.cancel()
			<-l.ended
		})
	}
	for _, filter := range []string{`null`, `1`, `{"resourceSubscriptions":"u:a"}`, `{"toolsListChanged":1}`} {
		if _, err := handle(t, watched(nil), mcp.MethodListen, `{"notifications":`+filter+`}`); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

func TestListenersHearWhatTheyAskedFor_B121_SEC22(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(nil)
		tools := listen(t, s, `{"toolsListChanged":true}`)
		lists := listen(t, s, `{"toolsListChanged":true,"resourcesListChanged":true}`)
		a := listen(t, s, `{"resourceSubscriptions":["u:a"]}`)
		addTools(s, "x")
		s.RemoveResourceTemplates("none") // changes nothing
		s.AddResource(mcp.Resource{URI: "u:new", Name: "n"}, nil)
		s.Changed("u:a", "u:b", "u:a")
		for l, want := range map[*listening][]string{
			tools: {"tools/list_changed"},
			lists: {"tools/list_changed", "resources/list_changed"},
			a:     {updated("u:a")},
		} {
			if diff := cmp.Diff(want, l.all()); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestChangesBeforeTheAcknowledgementFollowIt_B121(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(nil)
		l := open(t, s, `{"resourceSubscriptions":["u:a"]}`)
		synctest.Wait() // the acknowledgement waits for the client
		s.Changed("u:a")
		if got := l.all(); len(got) != 2 || !strings.HasPrefix(got[0], "subscriptions/acknowledged") || got[1] != updated("u:a") {
			t.Errorf("got %q", got)
		}
	})
}

func TestPartsOfResourcesAreTold_B152(t *testing.T) {
	tests := []struct {
		watch string
		told  []string
		not   []string
	}{
		{"u:a", []string{"u:a", "u:a/", "u:a/b", "u:a/b/c", "u:a?q", "u:a#f", "u:a//b"}, []string{"u:ab", "u:", "u:b/a", "U:a"}},
		{"u:a/", []string{"u:a/", "u:a/b", "u:a?q"}, []string{"u:a", "u:ab"}},
		{"file:///", []string{"file:///", "file:///x", "file:///x/y"}, []string{"file:/", "file://host/x"}},
	}
	synctest.Test(t, func(t *testing.T) {
		for _, test := range tests {
			s := watched(nil)
			l := listen(t, s, `{"resourceSubscriptions":["`+test.watch+`"]}`)
			filter := mcp.Filter{ResourceSubscriptions: []string{test.watch}}
			for _, uri := range slices.Concat(test.told, test.not) {
				s.Changed(uri)
				n, err := mcp.NewNotification(mcp.NotificationResourceUpdated, mcp.ResourceUpdatedParams{URI: uri})
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Contains(test.told, uri)
				if got := l.next(); (got == updated(uri)) != want || filter.Wants(n) != want {
					t.Errorf("%s of %s: got %q; the filter says %v", uri, test.watch, got, filter.Wants(n))
				}
			}
			l.cancel()
			<-l.ended
		}
	})
}

func TestNotificationsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(&server.Options{Coalesce: 100 * time.Millisecond})
		l := listen(t, s, `{"toolsListChanged":true,"resourceSubscriptions":["u:a","u:b"]}`)
		start := time.Now()
		for i := range 90 {
			addTools(s, fmt.Sprint(i))
			s.Changed("u:b", "u:a")
			time.Sleep(time.Millisecond)
		}
		first := l.next()
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("the first came after %v", took)
		}
		if diff := cmp.Diff([]string{"tools/list_changed", updated("u:b"), updated("u:a")}, append([]string{first}, l.all()...)); diff != "" {
			t.Error(diff)
		}
		s.Changed("u:a")
		if got := l.all(); len(got) != 1 {
			t.Errorf("later came %q", got)
		}
	})
}

func TestSlowListenersAreBoundedAndMissNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(nil)
		slow := listen(t, s, `{"toolsListChanged":true,"resourceSubscriptions":["u:a","u:b"]}`)
		quick := listen(t, s, `{"resourceSubscriptions":["u:a"]}`)
		s.Changed("u:a") // fills the slow one's way back
		time.Sleep(time.Second)
		if got := quick.next(); got != updated("u:a") {
			t.Errorf("beside a slow listener came %q", got)
		}
		for i := range 1000 {
			s.Changed("u:b", "u:a", fmt.Sprintf("u:a/%d", i%5))
			addTools(s, "x")
		}
		want := []string{updated("u:a"), "tools/list_changed", updated("u:b"), updated("u:a"), updated("u:a/0")}
		for i := range 4 {
			want = append(want, updated(fmt.Sprintf("u:a/%d", i+1)))
		}
		if diff := cmp.Diff(want, slow.all()); diff != "" {
			t.Error(diff)
		}
		// Of too many parts the whole is told.
		s.Changed("u:b")
		time.Sleep(time.Second)
		for i := range 100_000 {
			s.Changed(fmt.Sprintf("u:a/%d", i))
		}
		got := slow.all()
		if len(got) > 1100 || !slices.Contains(got[1:], updated("u:a")) || !slices.Contains(got[1:], updated("u:b")) {
			t.Errorf("%d came: %.200q", len(got), got)
		}
	})
}

func TestListensAreBounded_TK1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(&server.Options{MaxListens: 2})
		first := listen(t, s, `{"toolsListChanged":true}`)
		listen(t, s, `{"toolsListChanged":true}`)
		listen(t, s, `{}`) // hears nothing and takes nothing
		_, err := handle(t, s, mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`)
		if limit, ok := errors.AsType[*mcp.CallError](err); !ok || limit.Limit != "MaxListens" || limit.Kind != mcp.LimitExceeded {
			t.Errorf("one more: %v", err)
		}
		first.cancel()
		<-first.ended
		listen(t, s, `{"toolsListChanged":true}`)
	})
}

func TestListenersThatEndLeaveTheOthers(t *testing.T) {
	for ends := range 3 {
		synctest.Test(t, func(t *testing.T) {
			s := watched(nil)
			var all []*listening
			for range 3 {
				all = append(all, listen(t, s, `{"resourceSubscriptions":["u:a","u:a/"]}`))
			}
			all[ends].cancel()
			<-all[ends].ended
			s.Changed("u:a")
			for i, l := range all {
				if got := l.next(); i != ends && got != `resources/updated {"uri":"u:a"}` {
					t.Errorf("%d of 3 ended: %d was told %q", ends, i, got)
				}
			}
			for i, l := range all {
				if l.cancel(); i != ends {
					<-l.ended
				}
			}
			if n := s.Watched(); n != 0 {
				t.Errorf("%d resources are still watched", n)
			}
		})
	}
}

// A badCaller panics when it is told something.
type badCaller struct{ mcp.NoCaller }

func (badCaller) Notify(context.Context, *mcp.Notification) error { panic("no") }

func TestListenThatCannotBeAcknowledgedTakesNoPlace_TK1(t *testing.T) {
	s := watched(&server.Options{MaxListens: 1})
	for range 2 {
		_, err := s.Handle(t.Context(), request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`), badCaller{})
		if _, full := errors.AsType[*mcp.CallError](err); err == nil || full {
			t.Errorf("got %v", err)
		}
	}
}

func TestListenEndsGracefullyWhileANotificationWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(nil)
		l := listen(t, s, `{"resourceSubscriptions":["u:a"]}`)
		s.Changed("u:a")
		time.Sleep(time.Second)
		l.cancel()
		if err := <-l.ended; err != nil || l.result.Type() != mcp.Complete {
			t.Errorf("it ended with %v", err)
		}
		s.Changed("u:a") // to nobody
	})
}

// TestAbandonedListensLeaveNothing: of clients that ask, listen and never come
// back.
func TestAbandonedListensLeaveNothing_TK3(t *testing.T) {
	s := watched(&server.Options{MaxListens: 4})
	req := request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["u:a","u:b/"]}}`)
	var before, after runtime.MemStats
	for i := range 10_000 {
		if i == 1000 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		ctx, leave := context.WithCancel(t.Context())
		if _, err := s.Handle(ctx, request(mcp.MethodDiscover, `{}`), mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
		gone := leaving{leave: leave}
		if _, err := s.Handle(ctx, req, gone); err != nil {
			t.Fatalf("listen call %d: %v", i, err)
		}
		s.Changed("u:a", "u:b/c")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("they have left %d bytes", grown)
	}
}

// leaving is a client that goes away when its listen call is acknowledged.
type leaving struct {
	mcp.NoCaller
	leave context.CancelFunc
}

func (l leaving) Notify(context.Context, *mcp.Notification) error {
	l.leave()
	return nil
}
