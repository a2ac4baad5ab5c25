package client_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A book is a server with a list of prompts.
type book struct {
	*station
	page  func(cursor string) string // further members of a page; cursor as it came
	same  bool                       // all pages have the same prompt
	pages int                        // that were asked for
	asked []string                   // cursors of pages
}

func newBook(era mcp.Era, page func(cursor string) string) *book {
	b := &book{station: newStation(era), page: page}
	b.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
		return newEdge(era, b.handle), nil
	})
	return b
}

func (b *book) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Method != mcp.MethodListPrompts {
		return b.station.handle(ctx, req, caller)
	}
	cursor, paged := req.Params.Lookup("cursor")
	if paged {
		b.asked = append(b.asked, string(cursor))
	}
	b.pages++
	name := b.pages
	if b.same {
		name = 0
	}
	return mcp.RawResult(fmt.Appendf(nil, `{"prompts":[{"name":"%d"}]%s}`, name, b.page(string(cursor)))), nil
}

// prompts lists the names of a server's prompts.
func prompts(t *testing.T, c *client.Client) (names []string, err error) {
	t.Helper()
	for p, err := range c.Prompts(t.Context()) {
		if err != nil {
			return names, err
		}
		names = append(names, p.Name)
	}
	return names, nil
}

// TestCursors_B142 follows lists of all kinds.
func TestCursors_B142(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pages map[string]string // next cursor by cursor, both as JSON
		asked string            // cursors
		err   string
	}{
		{"one page", map[string]string{"": ""}, "[]", ""},
		{"null", map[string]string{"": "null"}, "[]", ""},
		{"two pages", map[string]string{"": `"a"`, `"a"`: ""}, `["a"]`, ""},
		{"the empty string is a cursor", map[string]string{"": `""`, `""`: `"b"`, `"b"`: ""}, `["" "b"]`, ""},
		{"the empty string again and again", map[string]string{"": `"a"`, `"a"`: `""`, `""`: `""`}, `["a" ""]`, ""},
		{"the same cursor", map[string]string{"": `"a"`, `"a"`: `"a"`}, `["a"]`, "has no end"},
		{"a cycle", map[string]string{"": `"a"`, `"a"`: `"b"`, `"b"`: `"a"`}, `["a" "b"]`, "has no end"},
		{"a cursor in its own form", map[string]string{"": `"\u0061\/\n\""`, `"\u0061\/\n\""`: ""}, `["\u0061\/\n\""]`, ""},
		{"no string", map[string]string{"": `7`}, `[]`, "bad reply"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook(mcp.Modern, func(cursor string) string {
					next, ok := tt.pages[cursor]
					if !ok {
						t.Errorf("there is no page %s", cursor)
					}
					if next != "" {
						next = `,"nextCursor":` + next
					}
					return next
				})
				c := connect(t, b, nil)
				names, err := prompts(t, c)
				if fmt.Sprint(b.asked) != tt.asked {
					t.Errorf("pages %s were asked for, want %s", b.asked, tt.asked)
				}
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("the error is %v", err)
				}
				if want := len(tt.asked); err == nil && len(names) != len(b.asked)+1 && want > 0 {
					t.Errorf("the list is %q", names)
				}
			})
		})
	}
}

// TestLargeCursor_B142 comes back as it was.
func TestLargeCursor_B142(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := `"` + strings.Repeat("x", 1<<20) + `"`
		b := newBook(mcp.Modern, func(cursor string) string {
			if cursor == "" {
				return `,"nextCursor":` + large
			}
			return ""
		})
		c := connect(t, b, nil)
		if _, err := prompts(t, c); err != nil || len(b.asked) != 1 || b.asked[0] != large {
			t.Errorf("%d pages, %v", len(b.asked), err)
		}
	})
}

// TestServerThatRepeatsItsOnlyPage_B142: an old server whose cursor is always empty,
// as a bridge shows it, has its features listed once.
func TestServerThatRepeatsItsOnlyPage_B142(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(mcp.Modern, func(string) string { return `,"nextCursor":""` })
		b.same = true
		c := connect(t, b, nil)
		if names, err := prompts(t, c); err != nil || len(names) != 1 {
			t.Errorf("%q, %v", names, err)
		}
		b.page = func(string) string { return `,"nextCursor":"a"` }
		if names, err := prompts(t, c); err == nil || len(names) != 2 {
			t.Errorf("with a cursor that means something: %q, %v", names, err)
		}
	})
}

// TestEmptyCursorOfALegacyServer_B142 is the end of a list. Some of these servers
// refuse it when it comes back, and not all give the same page with the same bytes.
func TestEmptyCursorOfALegacyServer_B142(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(mcp.Legacy, func(string) string { return `,"nextCursor":""` })
		c := connect(t, b, nil)
		if names, err := prompts(t, c); err != nil || len(names) != 1 || b.pages != 1 {
			t.Errorf("%q of %d pages, %v", names, b.pages, err)
		}
	})
}

// TestPagesAreAsTheyCame: with what the client does not know, and to the same end.
func TestPagesAreAsTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(mcp.Modern, func(cursor string) string {
			return map[string]string{"": `,"nextCursor":"","x": 1.0`, `""`: `,"nextCursor":"a"`, `"a"`: `,"nextCursor":"a"`}[cursor]
		})
		c := connect(t, b, nil)
		var got []string
		for page, err := range c.Pages(t.Context(), mcp.MethodListPrompts) {
			if err != nil {
				got = append(got, err.Error())
				break
			}
			got = append(got, string(page.Raw()))
		}
		want := []string{
			`{"prompts":[{"name":"1"}],"nextCursor":"","x": 1.0}`, `{"prompts":[{"name":"2"}],"nextCursor":"a"}`,
			`{"prompts":[{"name":"3"}],"nextCursor":"a"}`,
			`prompts/list: bad reply, answered: the cursor "a" comes again: the list has no end`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}

// TestItemsThatCannotBeRead_B119 are left out of a list, and not all of it with them.
func TestItemsThatCannotBeRead_B119(t *testing.T) {
	const valid = `{"name":"a","uri":"a:b","uriTemplate":"a:{b}"}`
	for _, tt := range []struct {
		name, items string
		want        int // items; -1 for an error
		warnings    int
	}{
		{"all can be", valid + "," + valid, 2, 0},
		{"a description that is no text", valid + `,{"name":"bad","description":5},` + valid, 2, 1},
		{"no object", `7,` + valid + `,null,"x"`, 2, 2},
		{"none can be", `7`, -1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log strings.Builder
			c := connect(t, &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				return mcp.RawResult(fmt.Appendf(nil, `{"%[1]s":[%[2]s],"x":1}`, map[string]string{
					mcp.MethodListTools: "tools", mcp.MethodListPrompts: "prompts",
					mcp.MethodListResources: "resources", mcp.MethodListResourceTemplates: "resourceTemplates",
				}[req.Method], tt.items)), nil
			}}, &client.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			for name, n := range map[string]int{
				"tools": count(c.Tools(t.Context())), "prompts": count(c.Prompts(t.Context())),
				"resources": count(c.Resources(t.Context())), "templates": count(c.ResourceTemplates(t.Context())),
			} {
				if n != tt.want {
					t.Errorf("%d %s, want %d", n, name, tt.want)
				}
			}
			if n := strings.Count(log.String(), "left out of the list"); n != 4*tt.warnings {
				t.Errorf("the log is %s", log.String())
			}
		})
	}
}

// count counts the items of a list, -1 if there is an error.
func count[Item any](items iter.Seq2[Item, error]) (n int) {
	for _, err := range items {
		if err != nil {
			return -1
		}
		n++
	}
	return n
}

func TestEndlessListIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBook(mcp.Modern, func(string) string {
			n++
			return fmt.Sprintf(`,"nextCursor":"%d"`, n)
		})
		c := connect(t, b, nil)
		names, err := prompts(t, c)
		failed, ok := errors.AsType[*mcp.CallError](err)
		if !ok || failed.Limit != "MaxPages" || len(names) != client.MaxPages {
			t.Errorf("%d pages, %v", len(names), err)
		}
	})
}

// TestIteratingStopsWhenAsked: no page is asked for that nobody wants.
func TestIteratingStopsWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(mcp.Modern, func(string) string { return `,"nextCursor":"a"` })
		c := connect(t, b, nil)
		for range c.Prompts(t.Context()) {
			break
		}
		if len(b.asked) != 0 {
			t.Errorf("pages %q were asked for", b.asked)
		}
	})
}

// TestCache_B155 counts how often the server is asked for a list that has been
// listed before.
func TestCache_B155(t *testing.T) {
	fresh := func(*book, *client.Client) {}
	for _, tt := range []struct {
		name  string
		hints string
		then  func(*book, *client.Client)
		again bool // it is asked again
	}{
		{"fresh", `,"ttlMs":60000,"cacheScope":"private"`, fresh, false},
		{"public", `,"ttlMs":60000,"cacheScope":"public"`, fresh, false},
		{"expired", `,"ttlMs":60000`, func(*book, *client.Client) { pass(time.Minute) }, true},
		{"longer than anything", `,"ttlMs":9007199254740991`, func(*book, *client.Client) { pass(client.MaxTTL) }, true},
		{"no hint", ``, fresh, true},
		{"0", `,"ttlMs":0`, fresh, true},
		{"negative", `,"ttlMs":-5`, fresh, true},
		{"changed", `,"ttlMs":60000`, func(b *book, _ *client.Client) { b.tell(mcp.NotificationPromptsListChanged, `{}`) }, true},
		{"another list has changed", `,"ttlMs":60000`, func(b *book, _ *client.Client) { b.tell(mcp.NotificationToolsListChanged, `{}`) }, false},
		{"restarted", `,"ttlMs":6000000`, func(b *book, _ *client.Client) {
			b.last().end(errCrash)
			pass(time.Minute)
		}, true},
		{"listening was interrupted", `,"ttlMs":6000000`, func(b *book, _ *client.Client) {
			b.set(func() { b.lasts = time.Second })
			b.last().end(errCrash)
			pass(time.Minute)
			b.set(func() { b.lasts = 0 })
			pass(time.Hour)
		}, true},
		{"not listened to", `,"ttlMs":60000`, fresh, false},
		{"not listened to, and restarted", `,"ttlMs":6000000`, func(b *book, _ *client.Client) {
			b.last().end(errCrash)
			pass(time.Minute)
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook(mcp.Modern, func(cursor string) string {
					if cursor == "" {
						return tt.hints + `,"nextCursor":"2"`
					}
					return tt.hints
				})
				if strings.HasPrefix(tt.name, "not listened to") {
					b.refuse = peerError(`{"code":-32601,"message":"no"}`)
				}
				c := connect(t, b, nil)
				list := func() []string {
					names, err := prompts(t, c)
					if err != nil {
						t.Fatal(err)
					}
					return names
				}
				list() // has the client listen
				synctest.Wait()
				before := list()
				asked := len(b.asked)
				tt.then(b, c)
				if got := list(); (len(b.asked) > asked) != tt.again || len(got) != len(before) {
					t.Errorf("%d pages, of which %d were asked for", len(got), len(b.asked)-asked)
				}
			})
		})
	}
}

// TestServerThatCannotBeListenedTo_B155 is asked for that once, until there is another
// server.
func TestServerThatCannotBeListenedTo_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(mcp.Modern, func(string) string { return `,"ttlMs":60000` })
		b.refuse = peerError(`{"code":-32601,"message":"no"}`)
		c := connect(t, b, nil)
		for want := 1; want < 4; want++ {
			if _, err := prompts(t, c); err != nil {
				t.Fatal(err)
			}
			pass(time.Hour)
			if n := len(b.requests()); n != want {
				t.Errorf("it was asked %d times, want %d", n, want)
			}
			b.last().end(errCrash)
			pass(time.Minute)
		}
	})
}

// TestCursorThatIsRefusedEndsWhatIsKept: the pages before it are of a list that the server
// does not know any more (2026-07-28, server/utilities/caching, Interaction with Pagination).
func TestCursorThatIsRefusedEndsWhatIsKept_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edition, b := 1, (*book)(nil)
		b = newBook(mcp.Modern, func(cursor string) string {
			if cursor == "" {
				return fmt.Sprintf(`,"ttlMs":6000000,"nextCursor":"of %d"`, edition)
			}
			return `,"ttlMs":1000`
		})
		b.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
			return newEdge(mcp.Modern, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				cursor, paged := req.Params.LookupString("cursor")
				if paged && cursor != fmt.Sprintf("of %d", edition) {
					return mcp.Result{}, peerError(`{"code":-32602,"message":"no such cursor"}`)
				}
				return b.handle(ctx, req, caller)
			}), nil
		})
		c := connect(t, b, nil)
		for range 2 { // the first time it begins to listen
			if names, err := prompts(t, c); err != nil || len(names) != 2 {
				t.Fatalf("%q, %v", names, err)
			}
			synctest.Wait()
		}
		edition = 2 // as after a restart that nobody tells of
		pass(time.Minute)
		if _, err := prompts(t, c); err == nil {
			t.Error("the cursor is taken")
		}
		if names, err := prompts(t, c); err != nil || len(names) != 2 {
			t.Errorf("from the beginning: %q, %v", names, err)
		}
	})
}

// TestStalePagesMakeRoom_B155: a server whose cursors are never the same leaves pages
// behind that nobody asks for again.
func TestStalePagesMakeRoom_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		b := newBook(mcp.Modern, func(cursor string) string {
			if cursor != "" {
				return `,"ttlMs":60000`
			}
			lists++
			return fmt.Sprintf(`,"ttlMs":60000,"nextCursor":"%d"`, lists)
		})
		c := connect(t, b, nil)
		list := func() {
			if names, err := prompts(t, c); err != nil || len(names) != 2 {
				t.Fatal(names, err)
			}
		}
		list() // has the client listen
		synctest.Wait()
		for range client.MaxCached + 1 {
			list()
			pass(time.Minute)
		}
		list()
		asked := b.pages
		list()
		if b.pages != asked {
			t.Errorf("%d pages were asked for again", b.pages-asked)
		}
	})
}

// TestChangeWhileListing_B155: a page that was asked for before is not kept.
func TestChangeWhileListing_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *book
		b = newBook(mcp.Modern, func(string) string {
			b.tell(mcp.NotificationPromptsListChanged, `{}`)
			return `,"ttlMs":60000`
		})
		c := connect(t, b, nil)
		for range 3 {
			if _, err := prompts(t, c); err != nil {
				t.Error(err)
			}
			synctest.Wait() // the first has the client listen
		}
		if b.pages != 3 {
			t.Errorf("3 lists took %d pages", b.pages)
		}
	})
}

// TestArguments_B031: a tool without arguments gets an empty object.
func TestArguments_B031(t *testing.T) {
	for _, tt := range []struct {
		name string
		args any
		want string // "" for an error
	}{
		{"none", nil, `{}`},
		{"a nil map", map[string]int(nil), `{}`},
		{"an empty map", map[string]int{}, `{}`},
		{"an object as it is", mcp.JSON(`{"b":1.0,"a":"\u0061"}`), `{"b":1.0,"a":"\u0061"}`},
		{"a struct", struct{ City string }{"Bern"}, `{"City":"Bern"}`},
		{"an array", []int{1}, ""},
		{"a string", "x", ""},
		{"a channel", make(chan int), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got string
				p := &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
					raw, _ := req.Params.Lookup("arguments")
					got = string(raw)
					return mcp.Result{}, errUsual
				}}
				c := connect(t, p, &client.Options{Healing: client.Healing{Off: true}})
				synctest.Wait()
				got = ""
				_, err := c.CallTool(t.Context(), "work", tt.args, nil)
				if got != tt.want || (err == nil) != (tt.want != "") {
					t.Errorf("it was sent %s, %v", got, err)
				}
			})
		})
	}
}

// TestPagesOfAnExtension_B142: a list that the client has no method for is followed as
// the others are, and asked for each time.
func TestPagesOfAnExtension_B142(t *testing.T) {
	for _, tt := range []struct {
		name  string
		next  func(n int, cursor string) string // cursor by that of the page, as JSON
		pages int
		err   string
	}{
		{"one page", func(int, string) string { return "" }, 1, ""},
		{"two pages", func(_ int, cursor string) string {
			if cursor == "" {
				return `,"nextCursor":"a"`
			}
			return ""
		}, 2, ""},
		{"the same cursor", func(int, string) string { return `,"nextCursor":"a"` }, 2, "has no end"},
		{"no end", func(n int, _ string) string { return fmt.Sprintf(`,"nextCursor":"%d"`, n) }, client.MaxPages, "MaxPages"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				p := &puppet{handle: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
					if req.Method != "things/list" {
						return mcp.Result{}, errUsual
					}
					asked++
					cursor, _ := req.Params.Lookup("cursor")
					return mcp.RawResult(fmt.Appendf(nil, `{"thing":%d,"ttlMs":60000%s}`, asked, tt.next(asked, string(cursor)))), nil
				}}
				c := connect(t, p, nil)
				for range 2 {
					got, asked0 := 0, asked
					var failure error
					for page, err := range c.Pages(t.Context(), "things/list") {
						if failure = err; err != nil {
							continue
						}
						got++
						if thing, _ := page.Lookup("thing"); string(thing) != fmt.Sprint(asked) {
							t.Errorf("page %d is %s", asked, page.Raw())
						}
					}
					if got != tt.pages || asked-asked0 != got {
						t.Errorf("%d pages, of which %d were asked for; want %d", got, asked-asked0, tt.pages)
					}
					if (failure == nil) != (tt.err == "") || failure != nil && !strings.Contains(failure.Error(), tt.err) {
						t.Errorf("the error is %v", failure)
					}
				}
				before := asked
				for range c.Pages(t.Context(), "things/list") {
					break
				}
				if asked != before+1 {
					t.Errorf("%d pages were asked for that nobody wants", asked-before-1)
				}
			})
		})
	}
}

// TestServerWhoseListsDoNotLastIsNotListenedTo: there is nothing that could change.
func TestServerWhoseListsDoNotLastIsNotListenedTo_B155(t *testing.T) {
	for _, hints := range []string{``, `,"ttlMs":0`, `,"ttlMs":-1`, `,"ttlMs":"60000"`} {
		synctest.Test(t, func(t *testing.T) {
			b := newBook(mcp.Modern, func(string) string { return hints })
			c := connect(t, b, nil)
			for range 2 {
				if _, err := prompts(t, c); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
			}
			if n := len(b.requests()); n != 0 {
				t.Errorf("with %s it was asked to be listened to %d times", hints, n)
			}
		})
	}
}

// TestKeptPagesAreBounded: by how many there are, and how large they are.
func TestKeptPagesAreBounded_B155(t *testing.T) {
	for _, tt := range []struct {
		name string
		fill int // second pages that are kept before
		size int // bytes of each
		kept bool
	}{
		{"few", client.MaxCached - 1, 1, true},
		{"many", client.MaxCached, 1, false},
		{"small", 2, client.MaxCachedBytes / 4, true},
		{"large", 3, client.MaxCachedBytes/3 - 1000, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second := 0
				b := newBook(mcp.Modern, func(cursor string) string {
					if cursor != "" {
						return `,"ttlMs":6000000,"x":"` + strings.Repeat("x", tt.size) + `"`
					}
					return fmt.Sprintf(`,"nextCursor":"%d"`, second)
				})
				c := connect(t, b, nil)
				list := func() (asked int) {
					before := b.pages
					if _, err := prompts(t, c); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					return b.pages - before
				}
				list() // has the client listen
				for range tt.fill {
					second++
					list()
				}
				second++
				list()
				if asked := list(); asked == 1 != tt.kept {
					t.Errorf("of two pages %d are asked for again", asked)
				}
			})
		})
	}
}

// TestPageThatIsLostEndsNothingThatIsKept: the server has not refused its cursor.
func TestPageThatIsLostEndsNothingThatIsKept_B155(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(mcp.Modern, func(cursor string) string {
			if cursor == "" {
				return `,"ttlMs":6000000,"nextCursor":"2"`
			}
			return `,"ttlMs":1000`
		})
		lost := false
		b.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
			return newEdge(mcp.Modern, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				if _, paged := req.Params.Lookup("cursor"); paged && lost {
					return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.BadReply, Outcome: mcp.Answered}
				}
				return b.handle(ctx, req, caller)
			}), nil
		})
		c := connect(t, b, nil)
		for range 2 { // the first time it begins to listen
			if _, err := prompts(t, c); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		pass(time.Minute)
		lost = true
		if _, err := prompts(t, c); err == nil {
			t.Error("nothing is lost")
		}
		lost = false
		before := b.pages
		if _, err := prompts(t, c); err != nil || b.pages != before+1 {
			t.Errorf("%d pages are asked for: %v", b.pages-before, err)
		}
	})
}
