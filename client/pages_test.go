package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// wantsPages is the answer of a server whose user is to open pages first, in the way of
// an era.
func wantsPages(era mcp.Era, urls ...string) (mcp.Result, error) {
	var legacy, modern []string
	for i, url := range urls {
		legacy = append(legacy, fmt.Sprintf(`{"mode":"url","elicitationId":"%d","message":"?","url":%q}`, i, url))
		modern = append(modern, fmt.Sprintf(`"%d":{"method":"elicitation/create","params":{"mode":"url","message":"?","url":%q}}`, i, url))
	}
	if era == mcp.Legacy {
		return mcp.Result{}, peerError(`{"code":-32042,"message":"first","data":{"elicitations":[` + strings.Join(legacy, ",") + `]}}`)
	}
	return needs(`"inputRequests":{` + strings.Join(modern, ",") + `}`), nil
}

// visitor is a user who opens pages, several at once if a result asks so, and remembers
// which.
type visitor struct {
	mu     sync.Mutex
	opened []string
}

func (v *visitor) options() *client.Options {
	return &client.Options{ElicitURL: true, Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.opened = append(v.opened, p.URL)
		return &mcp.ElicitResult{Action: mcp.Accept}, nil
	}}
}

func (v *visitor) urls() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.opened
}

// inBothEras runs a test in a bubble against servers of either era.
func inBothEras(t *testing.T, test func(t *testing.T, era mcp.Era)) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, era) })
		})
	}
}

// TestPagesThatALegacyServerRequires_B148 are opened once each, and then waited for.
func TestPagesThatALegacyServerRequires_B148(t *testing.T) {
	const pages = `{"code":-32042,"message":"first","data":{"elicitations":[` +
		`{"mode":"url","elicitationId":"1","message":"?","url":"https://a.example/"},{"mode":"url","elicitationId":"2","message":"?","url":"https://b.example/"}]}}`
	for _, tt := range []struct {
		name   string
		urls   bool // the user takes URLs
		answer mcp.ElicitAction
		data   string
		done   int // attempts after which the user is done
		asked  int
		ok     bool
	}{
		{"opened", true, mcp.Accept, pages, 1, 2, true},
		{"opened, and it takes a while", true, mcp.Accept, pages, 6, 2, true},
		{"declined", true, mcp.Decline, pages, 1000, 1, false},
		{"not declared", false, mcp.Accept, pages, 1000, 0, false},
		{"no pages", true, mcp.Accept, `{"code":-32042,"message":"first"}`, 1000, 0, false},
		{"no address", true, mcp.Accept, strings.ReplaceAll(pages, `"url":`, `"uri":`), 1000, 0, false},
		{"another error", true, mcp.Accept, strings.Replace(pages, "-32042", "-32043", 1), 1000, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStation(mcp.Legacy)
				attempts, asked := 0, 0
				s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
					if attempts++; attempts > tt.done {
						return text("done"), nil
					}
					return mcp.Result{}, peerError(tt.data)
				})
				c := connect(t, s, &client.Options{ElicitURL: tt.urls, Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					asked++
					return &mcp.ElicitResult{Action: tt.answer}, nil
				}})
				got, err := told(t, c)
				if (got == "done") != tt.ok || !tt.ok && !jsonrpc.FromPeer(err) || asked != tt.asked || attempts > tt.done+1 {
					t.Errorf("%q, %v; asked %d times in %d attempts", got, err, asked, attempts)
				}
			})
		})
	}
}

// TestWaitingForAPageIsNoRound_B148: the server is asked again with growing waits, for as
// many times as it takes, and no other limit runs meanwhile.
func TestWaitingForAPageIsNoRound_B148(t *testing.T) {
	inBothEras(t, func(t *testing.T, era mcp.Era) {
		var v visitor
		var waits []time.Duration
		last := time.Now()
		s := newStation(era)
		s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			waits = append(waits, time.Since(last))
			last = time.Now()
			if len(waits) > 2*client.MaxRounds {
				return text("done"), nil
			}
			return wantsPages(era, "https://a.example/", "https://b.example/")
		})
		opts := v.options()
		opts.Timeout, opts.MaxTimeout = 2*time.Second, 3*time.Second
		got, err := told(t, connect(t, s, opts))
		if got != "done" || len(v.urls()) != 2 {
			t.Errorf("%q, %v; asked for %q", got, err, v.urls())
		}
		for i, wait := range waits[1:] {
			if want := min(time.Second<<max(i-1, 0), 15*time.Second); i == 0 && wait != 0 || i > 0 && wait != want {
				t.Errorf("attempt %d came after %v, want %v", i+2, wait, want)
			}
		}
	})
}

// TestPageThatIsNeverDone_B148: the call ends, and its error names the limit.
func TestPageThatIsNeverDone_B148(t *testing.T) {
	inBothEras(t, func(t *testing.T, era mcp.Era) {
		var v visitor
		s := newStation(era)
		s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return wantsPages(era, "https://a.example/")
		})
		began := time.Now()
		err := call(t, connect(t, s, v.options()))
		failed, ok := errors.AsType[*mcp.CallError](err)
		if !ok || failed.Limit != "MaxPageWait" || failed.Outcome != mcp.Answered || !strings.Contains(err.Error(), "for 10m0s") {
			t.Errorf("got %v", err)
		}
		if jsonrpc.FromPeer(err) != (era == mcp.Legacy) {
			t.Errorf("what the server has answered is not in %v", err)
		}
		if took := time.Since(began); took > client.MaxPageWait || took < client.MaxPageWait-15*time.Second || len(v.urls()) != 1 {
			t.Errorf("the call ended after %v; asked for %q", took, v.urls())
		}
	})
}

// TestContextEndsTheWaitForAPage: at once.
func TestContextEndsTheWaitForAPage_B148(t *testing.T) {
	inBothEras(t, func(t *testing.T, era mcp.Era) {
		var v visitor
		s := newStation(era)
		s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return wantsPages(era, "https://a.example/")
		})
		c := connect(t, s, v.options())
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		_, err := c.CallTool(ctx, "work", nil, nil)
		if kind, outcome := outcome(err); !errors.Is(err, context.DeadlineExceeded) || kind != mcp.TimedOut || outcome != mcp.Answered {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 100*time.Second {
			t.Errorf("the call ended after %v", took)
		}
	})
}

// TestPagesAreAskedForOncePerURL_B148: another one is a round more, and so is one that
// the server wanted no more meanwhile.
func TestPagesAreAskedForOncePerURL_B148(t *testing.T) {
	const a, b = "https://a.example/", "https://b.example/"
	inBothEras(t, func(t *testing.T, era mcp.Era) {
		var v visitor
		steps := [][]string{{a, a}, {a}, {a, b}, {a, b}, {b}, {a}, {a}}
		s := newStation(era)
		s.ask(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if era == mcp.Modern && len(steps) == 6 {
				if got, _ := req.Params.Lookup("inputResponses"); string(got) != `{"0":{"action":"accept"},"1":{"action":"accept"}}` {
					t.Errorf("the answers are %s", got)
				}
			}
			if len(steps) == 0 {
				return text("done"), nil
			}
			urls := steps[0]
			steps = steps[1:]
			return wantsPages(era, urls...)
		})
		got, err := told(t, connect(t, s, v.options()))
		if want := strings.Join([]string{a, b, a}, " "); got != "done" || strings.Join(v.urls(), " ") != want {
			t.Errorf("%q, %v; asked for %q", got, err, v.urls())
		}
	})
}

// TestEverNewPagesAreRounds_B148: of a server whose URL is another one each time.
func TestEverNewPagesAreRounds_B148(t *testing.T) {
	inBothEras(t, func(t *testing.T, era mcp.Era) {
		var v visitor
		attempts := 0
		s := newStation(era)
		s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			attempts++
			return wantsPages(era, fmt.Sprintf("https://a.example/%d", attempts))
		})
		err := call(t, connect(t, s, v.options()))
		failed, ok := errors.AsType[*mcp.CallError](err)
		if !ok || failed.Limit != "MaxRounds" || jsonrpc.FromPeer(err) != (era == mcp.Legacy) {
			t.Errorf("got %v", err)
		}
		if attempts != client.MaxRounds+1 || len(v.urls()) != client.MaxRounds {
			t.Errorf("asked for %d pages in %d attempts", len(v.urls()), attempts)
		}
	})
}
