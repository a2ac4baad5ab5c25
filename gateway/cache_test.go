package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// personal lists to everybody a tool of their own, for as long as hints say.
func personal(hints string) *fake {
	b := newFake()
	b.handle(mcp.MethodListTools, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		name := req.Meta.Principal.Subject + strings.Trim(string(req.Meta.Capabilities), `{}:"`)
		return mcp.RawResult(fmt.Appendf(nil, `{"tools":[{"name":%q}]%s}`, name, hints)), nil
	})
	return b
}

func as(subject, capabilities string) mcp.Metadata {
	m := modern
	m.Principal = mcp.Principal{Issuer: "i", Subject: subject}
	m.Capabilities = []byte(capabilities)
	return m
}

// TestListsAreOfTheirPrincipal: not even of a backend that has died is anybody shown
// what another one was.
func TestListsAreOfTheirPrincipal_B155(t *testing.T) {
	b := personal(`,"ttlMs":60000,"cacheScope":"private"`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	ann, bob, able := as("ann", `{}`), as("bob", `{}`), as("ann", `{"roots":{}}`)
	want := map[string]mcp.Metadata{"ann": ann, "bob": bob, "annroots": able}
	for range 2 {
		for name, who := range want {
			if diff := cmp.Diff([]string{name}, listAs(t, g, who, mcp.MethodListTools, "tools", "name")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	if n := b.times(mcp.MethodListTools); n != 3 {
		t.Errorf("the backend was asked %d times for three lists that last", n)
	}
	b.fail(mcp.MethodListTools, errCrashed)
	namesake := ann
	namesake.Principal.Issuer = "another"
	legacy := ann
	legacy.Revision = mcp.NewestLegacy
	for _, who := range []mcp.Metadata{as("eve", `{}`), namesake, legacy} {
		if got := listAs(t, g, who, mcp.MethodListTools, "tools", "name"); len(got) != 0 {
			t.Errorf("%v in %s is shown %q", who.Principal, who.Revision, got)
		}
	}
	// Another session of ann's, of whom nothing is kept.
	again := ann
	again.Session = "s2"
	if diff := cmp.Diff([]string{"ann"}, listAs(t, g, again, mcp.MethodListTools, "tools", "name")); diff != "" {
		t.Errorf("ann in another session (-want +got):\n%s", diff)
	}
}

func TestListsLastAsLongAsTheySay_B155(t *testing.T) {
	for _, tt := range []struct {
		hints string
		after time.Duration
		asked int
		want  string // hints of the merged list, a second after it was asked for
	}{
		{``, 0, 2, `"ttlMs":0,"cacheScope":"private"`},
		{`,"ttlMs":0,"cacheScope":"public"`, 0, 2, `"ttlMs":0,"cacheScope":"private"`},
		{`,"ttlMs":-5,"cacheScope":"public"`, 0, 2, `"ttlMs":0,"cacheScope":"private"`},
		{`,"ttlMs":"9","cacheScope":"public"`, 0, 2, `"ttlMs":0,"cacheScope":"private"`},
		{`,"ttlMs":60000,"cacheScope":"private"`, 59 * time.Second, 1, `"ttlMs":1000,"cacheScope":"private"`},
		{`,"ttlMs":60000,"cacheScope":"public"`, 59 * time.Second, 1, `"ttlMs":1000,"cacheScope":"public"`},
		{`,"ttlMs":60000`, 60 * time.Second, 2, `"ttlMs":60000,"cacheScope":"private"`},
		{`,"ttlMs":1e99`, 59 * time.Minute, 1, `"ttlMs":60000,"cacheScope":"private"`},
	} {
		t.Run(tt.hints, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := personal(tt.hints)
				g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
				listTools(t, g)
				time.Sleep(tt.after)
				result := do(t, g, mcp.MethodListTools, `{}`)
				if n := b.times(mcp.MethodListTools); n != tt.asked {
					t.Errorf("the backend was asked %d times, want %d", n, tt.asked)
				}
				if !strings.Contains(string(result.Raw()), `"resultType":"complete",`+tt.want) {
					t.Errorf("the list is %s, want %s", result.Raw(), tt.want)
				}
			})
		})
	}
}

// TestChangesEndWhatIsKept: also those that come while the list is on its way.
func TestChangesEndWhatIsKept_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := personal(`,"ttlMs":60000`)
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		_, stop := listen(t, g, as("bob", `{}`), `{"toolsListChanged":true}`)
		defer stop()
		h := <-radio.calls
		changed := &mcp.Notification{Method: mcp.NotificationToolsListChanged}
		listTools(t, g)
		listTools(t, g)
		h.tell(t, changed)
		listTools(t, g)
		if n := b.times(mcp.MethodListTools); n != 2 {
			t.Errorf("the backend was asked %d times, want 2", n)
		}
		b.handle(mcp.MethodListTools, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			h.tell(t, changed)
			return mcp.RawResult([]byte(`{"tools":[],"ttlMs":60000}`)), nil
		})
		h.tell(t, changed)
		listTools(t, g)
		listTools(t, g)
		if n := b.times(mcp.MethodListTools); n != 4 {
			t.Errorf("the backend was asked %d times, want 4", n)
		}
	})
}

// TestListIsAskedForAfterAGap: what changed while nobody listened was not told of.
func TestListIsAskedForAfterAGap_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := personal(`,"ttlMs":3600000`)
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		_, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		listTools(t, g)
		(<-radio.calls).end <- errCrashed
		<-radio.calls
		synctest.Wait()
		listTools(t, g)
		if n := b.times(mcp.MethodListTools); n != 2 {
			t.Errorf("the backend was asked %d times, want 2", n)
		}
	})
}

// TestListThatABackendDoesNotHaveLasts: as long as it says that it does not.
func TestListThatABackendDoesNotHaveLasts_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, other := personal(`,"ttlMs":60000,"cacheScope":"public"`), newFake()
		other.answer(mcp.MethodDiscover, `{"capabilities":{"prompts":{}},"ttlMs":30000,"cacheScope":"public"}`)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b, "other": other})
		for _, want := range []string{`"ttlMs":30000,`, `"ttlMs":20000,`, `"ttlMs":10000,`, `"ttlMs":0,`} {
			result := do(t, g, mcp.MethodListTools, `{}`)
			if !strings.Contains(string(result.Raw()), want) {
				t.Errorf("the list is %s, want %s", result.Raw(), want)
			}
			time.Sleep(10 * time.Second)
			do(t, g, mcp.MethodListResources, `{}`) // neither is this there
		}
		if n := other.times(mcp.MethodListTools); n != 0 {
			t.Errorf("it is asked %d times for what it does not have", n)
		}
	})
}

// TestKeptListsAreBounded: those that were not used for longest are forgotten.
func TestKeptListsAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name         string
		opts         gateway.Options
		instructions int
	}{
		{"views", gateway.Options{MaxViews: 10}, 0},
		{"bytes", gateway.Options{MaxKept: 1000}, 0},
		{"bytes of instructions", gateway.Options{MaxKept: 100_000}, 10_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := personal(`,"ttlMs":60000`)
			b.answer(mcp.MethodDiscover, `{"capabilities":{"tools":{}},"instructions":"`+strings.Repeat("x", tt.instructions)+`"}`)
			tt.opts.ListBudget, tt.opts.KeptBudget = patience, patience
			g := newGateway(t, &tt.opts, map[string]mcp.Handler{"b": b})
			for i := range 100 {
				listAs(t, g, as(fmt.Sprintf("user %d", i), `{}`), mcp.MethodListTools, "tools", "name")
			}
			before := b.times(mcp.MethodListTools)
			listAs(t, g, as("user 99", `{}`), mcp.MethodListTools, "tools", "name")
			if n := b.times(mcp.MethodListTools); n != before {
				t.Error("the newest list is not kept")
			}
			listAs(t, g, as("user 0", `{}`), mcp.MethodListTools, "tools", "name")
			if n := b.times(mcp.MethodListTools); n != before+1 {
				t.Error("the oldest list is kept")
			}
		})
	}
}

// TestClassIsRememberedWhileItIsInUse: what a client was shown just now is shown to a new
// session of its user, however many others have come since the first one did.
func TestClassIsRememberedWhileItIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := personal("")
		g := newGateway(t, &gateway.Options{MaxViews: 6}, map[string]mcp.Handler{"b": b})
		ann := as("ann", `{}`)
		ann.Session = "s1"
		for i := range 10 {
			listAs(t, g, ann, mcp.MethodListTools, "tools", "name")
			listAs(t, g, as(fmt.Sprint(i), `{}`), mcp.MethodListTools, "tools", "name")
		}
		b.hang(mcp.MethodListTools)
		ann.Session = "s2"
		if diff := cmp.Diff([]string{"ann"}, listAs(t, g, ann, mcp.MethodListTools, "tools", "name")); diff != "" {
			t.Errorf("in a new session (-want +got):\n%s", diff)
		}
	})
}

// TestListLastsAsItsWorstPage, and one of no backend not at all.
func TestListLastsAsItsWorstPage_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long, short = `"ttlMs":60000,"cacheScope":"public"`, `"ttlMs":1000,"cacheScope":"private"`
		for _, hints := range [][2]string{{long, short}, {short, long}} {
			b := newFake()
			b.handle(mcp.MethodListTools, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				if _, second := req.Params.Lookup("cursor"); second {
					return mcp.RawResult([]byte(`{"tools":[],` + hints[1] + `}`)), nil
				}
				return mcp.RawResult([]byte(`{"tools":[],"nextCursor":"2",` + hints[0] + `}`)), nil
			})
			g := newGateway(t, hurried, nil)
			if result := do(t, g, mcp.MethodListTools, `{}`); !strings.Contains(string(result.Raw()), `"ttlMs":0,"cacheScope":"private"`) {
				t.Errorf("without backends the list is %s", result.Raw())
			}
			add(t, g, "b", b)
			if result := do(t, g, mcp.MethodListTools, `{}`); !strings.Contains(string(result.Raw()), short) {
				t.Errorf("of pages with %s the list is %s", hints, result.Raw())
			}
		}
	})
}

// TestWhatIsKeptIsCountedRightly: when lists were forgotten, there is room for as many as
// before.
func TestWhatIsKeptIsCountedRightly(t *testing.T) {
	for _, tt := range []struct {
		name   string
		forget func(t *testing.T, g *gateway.Gateway)
	}{
		{"others came", func(t *testing.T, g *gateway.Gateway) {
			for i := range 100 {
				listAs(t, g, as(fmt.Sprintf("other %d", i), `{}`), mcp.MethodListTools, "tools", "name")
			}
		}},
		{"a backend was removed", func(t *testing.T, g *gateway.Gateway) {
			for range 100 {
				add(t, g, "other", personal(`,"ttlMs":60000`))
				listAs(t, g, as("other", `{}`), mcp.MethodListTools, "tools", "name")
				g.Remove("other")
			}
		}},
		{"they came when they were forgotten already", func(t *testing.T, g *gateway.Gateway) {
			slow := personal("")
			slow.handle(mcp.MethodListTools, after(time.Second, newFake(strings.Repeat("x", 20))))
			add(t, g, "slow", slow)
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() { listAs(t, g, as(fmt.Sprintf("slow %d", i), `{}`), mcp.MethodListTools, "tools", "name") })
			}
			wg.Wait()
			g.Remove("slow")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := personal(`,"ttlMs":60000`)
				g := newGateway(t, &gateway.Options{MaxViews: 20, MaxKept: 2000}, map[string]mcp.Handler{"b": b})
				tt.forget(t, g)
				for _, want := range []int{5, 0} {
					before := b.times(mcp.MethodListTools)
					for i := range 5 {
						listAs(t, g, as(fmt.Sprintf("user %d", i), `{}`), mcp.MethodListTools, "tools", "name")
					}
					if n := b.times(mcp.MethodListTools) - before; n != want {
						t.Errorf("for five users it is asked %d times, want %d", n, want)
					}
				}
			})
		})
	}
}
