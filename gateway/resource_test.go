package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// library has resources that it reads, some of which it lists.
func library(name, template string, uris ...string) *fake {
	f := newFake()
	f.answer(mcp.MethodListResourceTemplates, `{"resourceTemplates":[{"uriTemplate":"`+template+`","name":"t"}]}`)
	f.handle(mcp.MethodReadResource, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		uri, _ := req.Params.LookupString("uri")
		if slices.Contains(uris, uri) {
			return mcp.NewResult(map[string]string{"from": name})
		}
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "%s has none", name)
	})
	return f
}

func TestResourcesAreFound(t *testing.T) {
	a := library("a", "x:/{name}", "x:/1", "y:1")
	b := library("b", "x:/deep/{name}/end", "x:/deep/2/end", "x:/3", "x:/1")
	tools := newFake()
	tools.answer(mcp.MethodDiscover, `{"capabilities":{"tools":{}}}`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b, "tools": tools})
	for _, tt := range []struct {
		uri  string
		from string
		a, b int // how often each is asked
	}{
		{"x:/1", "a", 1, 0},          // fits a template of a
		{"x:/deep/2/end", "b", 0, 1}, // fits both, that of b better
		{"x:/3", "b", 1, 1},          // fits a template of a, which has none
		{"x:/3", "b", 0, 1},          // and is known then
		{"y:1", "a", 1, 0},           // fits none
		{"z:1", "", 1, 1},
	} {
		beforeA, beforeB := a.times(mcp.MethodReadResource), b.times(mcp.MethodReadResource)
		result, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"`+tt.uri+`"}`), mcp.NoCaller{})
		if from, _ := result.LookupString("from"); from != tt.from || (err == nil) != (tt.from != "") {
			t.Errorf("%s is read from %q: %v", tt.uri, from, err)
		}
		if err != nil && err.Error() != "a has none (-32002)" {
			t.Errorf("%s: %v", tt.uri, err)
		}
		if asked := a.times(mcp.MethodReadResource) - beforeA; asked != tt.a {
			t.Errorf("%s: a was asked %d times", tt.uri, asked)
		}
		if asked := b.times(mcp.MethodReadResource) - beforeB; asked != tt.b {
			t.Errorf("%s: b was asked %d times", tt.uri, asked)
		}
	}
	b.fail(mcp.MethodReadResource, jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "gone"))
	a.answer(mcp.MethodReadResource, `{"from":"a"}`)
	_, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"x:/3"}`), mcp.NoCaller{})
	if jsonrpc.ToWire(err).Message != "gone" {
		t.Errorf("a resource that has gone: %v", err)
	}
	moved := do(t, g, mcp.MethodReadResource, `{"uri":"x:/3"}`)
	if from, _ := moved.LookupString("from"); from != "a" {
		t.Errorf("afterwards it is read from %q", from)
	}
	if tools.times(mcp.MethodReadResource)+tools.times(mcp.MethodListResources) != 0 {
		t.Error("a backend without resources was asked for some")
	}
}

// TestErrorOfAResourceEndsTheSearch: a backend that cannot read it has it.
func TestErrorOfAResourceEndsTheSearch(t *testing.T) {
	a, b := library("a", "x:/{name}"), library("b", "y:/{name}", "x:/1")
	a.fail(mcp.MethodReadResource, jsonrpc.Errorf(jsonrpc.CodeInternalError, "disk full"))
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	_, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"x:/1"}`), mcp.NoCaller{})
	if wire := jsonrpc.ToWire(err); wire.Message != "disk full" || b.times(mcp.MethodReadResource) != 0 {
		t.Errorf("%v, and the other one was asked %d times", err, b.times(mcp.MethodReadResource))
	}
	a.fail(mcp.MethodReadResource, errCrashed)
	result := do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`)
	if from, _ := result.LookupString("from"); from != "b" {
		t.Errorf("when the first one is dead it is read from %q", from)
	}
	g.Remove("b")
	a.answer(mcp.MethodReadResource, `{"from":"a"}`)
	result = do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`)
	if from, _ := result.LookupString("from"); from != "a" {
		t.Errorf("when the other one is removed it is read from %q", from)
	}
}

// TestRetriesGoWhereTheyBelong: nobody else is shown the state of a request.
func TestRetriesGoWhereTheyBelong(t *testing.T) {
	a, b := library("a", "x:/{name}"), library("b", "x:/{name}")
	needs := `{"resultType":"input_required","requestState":"s","inputRequests":{}}`
	b.answer(mcp.MethodReadResource, needs)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	const retry = `{"uri":"x:/1","requestState":"s","inputResponses":{}}`
	if _, err := g.Handle(t.Context(), request(mcp.MethodReadResource, retry), mcp.NoCaller{}); jsonrpc.ToWire(err).Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a retry of nothing: %v", err)
	}
	if a.times(mcp.MethodReadResource)+b.times(mcp.MethodReadResource) != 0 {
		t.Error("a backend was shown the state")
	}
	do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`)
	asked := a.times(mcp.MethodReadResource)
	do(t, g, mcp.MethodReadResource, retry)
	if a.times(mcp.MethodReadResource) != asked || b.times(mcp.MethodReadResource) != 2 {
		t.Error("the retry went elsewhere")
	}
}

// TestRetryGoesWhereItWasAskedFor: a resource that another backend lists meanwhile.
func TestRetryGoesWhereItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake(), listed("x:1")
		a.handle(mcp.MethodListResources, after(5*time.Second, listed("x:1")))
		a.answer(mcp.MethodReadResource, `{"contents":[]}`)
		b.answer(mcp.MethodReadResource, `{"resultType":"input_required","requestState":"s","inputRequests":{}}`)
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": a, "b": b})
		list(t, g, mcp.MethodListResources, "resources", "uri")
		do(t, g, mcp.MethodReadResource, `{"uri":"x:1"}`)
		time.Sleep(5 * time.Second)
		do(t, g, mcp.MethodReadResource, `{"uri":"x:1","requestState":"s","inputResponses":{}}`)
		if at := a.times(mcp.MethodReadResource); at != 0 || b.times(mcp.MethodReadResource) != 2 {
			t.Errorf("%d requests went to a backend that has not asked for anything", at)
		}
		do(t, g, mcp.MethodReadResource, `{"uri":"x:1"}`)
		if a.times(mcp.MethodReadResource) != 1 {
			t.Error("a new request does not go where the resource is listed")
		}
	})
}

// TestHungBackendDoesNotHideResources: it is left after a while if another one may have
// what is wanted.
func TestHungBackendDoesNotHideResources_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, b := library("hung", "x:/{name}"), library("b", "q:/{name}", "x:/1")
		hung.hang(mcp.MethodReadResource)
		g := newGateway(t, hurried, map[string]mcp.Handler{"hung": hung, "b": b})
		began := time.Now()
		result := do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`)
		if from, _ := result.LookupString("from"); from != "b" || time.Since(began) > 10*time.Second {
			t.Errorf("it is read from %q after %v", from, time.Since(began))
		}
		// What was found stays, and what one alone can have is waited for.
		began = time.Now()
		do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`)
		if time.Since(began) != 0 {
			t.Errorf("the second time it takes %v", time.Since(began))
		}
	})
}

func TestTemplatesFit(t *testing.T) {
	for _, tt := range []struct {
		template, uri string
		want          bool
	}{
		{"x:/1", "x:/1", true},
		{"x:/1", "x:/12", false},
		{"x:/{a}", "x:/1", true},
		{"x:/{a}", "y:/1", false},
		{"x:/{a}/end", "x:/1/end", true},
		{"x:/{a}/end", "x:/1/end2", false},
		{"x:/{a}-{b}/c", "x:/1-2/c", true},
		{"x:/{a}-{b}/c", "x:/1/c", false},
		{"x:{", "x:1", false},
		{"{+all}", "anything", true},
	} {
		has := library("has", tt.template, tt.uri)
		hidden := library("a", "only:/this", tt.uri) // comes first by its name
		g := newGateway(t, unhurried, map[string]mcp.Handler{"z": has, "a": hidden})
		result := do(t, g, mcp.MethodReadResource, `{"uri":"`+tt.uri+`"}`)
		if from, _ := result.LookupString("from"); (from == "has") != tt.want {
			t.Errorf("%s fits %s: %t, want %t", tt.uri, tt.template, !tt.want, tt.want)
		}
	}
}

// TestAnswersAloneAreARetry, and so is a state alone.
func TestAnswersAloneAreARetry(t *testing.T) {
	a, b := library("a", "x:/{name}"), library("b", "x:/{name}")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	for _, member := range []string{`"requestState":"s"`, `"inputResponses":{}`} {
		_, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"x:/1",`+member+`}`), mcp.NoCaller{})
		if jsonrpc.ToWire(err).Code != jsonrpc.CodeInvalidParams {
			t.Errorf("with %s: %v", member, err)
		}
	}
	if a.times(mcp.MethodReadResource)+b.times(mcp.MethodReadResource) != 0 {
		t.Error("a backend was shown what is another one's")
	}
}

// TestReadThatIsCancelledIsMadeNowhereElse.
func TestReadThatIsCancelledIsMadeNowhereElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := library("a", "q:/{name}"), library("b", "q:/{name}", "x:/1")
		a.hang(mcp.MethodReadResource)
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": a, "b": b})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.Handle(ctx, request(mcp.MethodReadResource, `{"uri":"x:/1"}`), mcp.NoCaller{})
		if n := b.times(mcp.MethodReadResource); n != 0 || err == nil {
			t.Errorf("%v, and another backend is asked %d times", err, n)
		}
	})
}

// TestRemovedBackendIsReadNoMore: not even if it was removed while a resource was found
// there.
func TestRemovedBackendIsReadNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := library("a", "q:/{name}", "x:/1"), library("b", "q:/{name}", "x:/1")
		a.handle(mcp.MethodReadResource, after(time.Second, library("a", "q:/{name}", "x:/1")))
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": a, "b": b})
		first := make(chan mcp.Result)
		go func() { first <- do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`) }()
		synctest.Wait()
		g.Remove("a")
		for _, want := range []string{"a", "b"} {
			result := <-first
			if from, _ := result.LookupString("from"); from != want {
				t.Errorf("it is read from %q, want %q", from, want)
			}
			go func() { first <- do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`) }()
		}
		<-first
	})
}

// TestBestTemplateComesFirst: what stands behind its values counts as well.
func TestBestTemplateComesFirst(t *testing.T) {
	a, b := library("a", "x:/{name}", "x:/1/end"), library("b", "x:/{name}/end", "x:/1/end")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	result := do(t, g, mcp.MethodReadResource, `{"uri":"x:/1/end"}`)
	if from, _ := result.LookupString("from"); from != "b" {
		t.Errorf("it is read from %q", from)
	}
}

// TestWhereResourcesWereFoundIsForgotten when it is of too many.
func TestWhereResourcesWereFoundIsForgotten(t *testing.T) {
	a, b := library("a", "q:/{name}"), library("b", "q:/{name}")
	b.answer(mcp.MethodReadResource, `{"contents":[]}`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	read := func(uri string) (asked int) {
		before := a.times(mcp.MethodReadResource)
		do(t, g, mcp.MethodReadResource, `{"uri":"`+uri+`"}`)
		return a.times(mcp.MethodReadResource) - before
	}
	if first, again := read("x:1"), read("x:1"); first != 1 || again != 0 {
		t.Errorf("another one is asked %d times, and again %d", first, again)
	}
	for i := range 3000 { // which one is forgotten is left to chance
		read(fmt.Sprint("x:other", i))
	}
	if n := read("x:1"); n != 1 {
		t.Errorf("after many others another one is asked %d times", n)
	}
	long := "x:" + strings.Repeat("x", 10_000)
	if first, again := read(long), read(long); first+again != 2 {
		t.Error("where a resource with an endless URI was found is remembered")
	}
}
