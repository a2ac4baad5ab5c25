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

// asking is a server of which each tool call asks one thing, in the way of its
// era, and returns the answer as text.
func asking(era mcp.Era, method, params string) *station {
	s := newStation(era)
	s.ask(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if era == mcp.Legacy {
			answer, err := caller.Ask(ctx, &mcp.Request{Method: method, Params: jsonrpc.Trusted([]byte(params))})
			if err != nil {
				return mcp.Result{}, err
			}
			return text(string(answer.Raw())), nil
		}
		responses := req.Params.Get("inputResponses")
		if answer, ok := responses.Lookup("q"); ok {
			return text(string(answer)), nil
		}
		return needs(fmt.Sprintf(`"inputRequests":{"q":{"method":%q,"params":%s}}`, method, params)), nil
	})
	return s
}

// ask has tool calls answered by f.
func (s *station) ask(f mcp.HandlerFunc) {
	s.tools = f
}

func text(s string) mcp.Result {
	result, err := mcp.NewResult(mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: s}}})
	if err != nil {
		panic(err)
	}
	return result
}

// needs is a result that needs input.
func needs(members string) mcp.Result {
	return mcp.RawResult([]byte(`{"resultType":"input_required",` + members + `}`))
}

// told calls the tool and returns the text of its result.
func told(t *testing.T, c *client.Client) (string, error) {
	result, err := c.CallTool(t.Context(), "work", nil, nil)
	if err != nil {
		return "", err
	}
	return result.Content[0].(*mcp.Text).Text, nil
}

// TestElicitation has users answer in all ways.
func TestElicitation(t *testing.T) {
	const form = `{"message":"?","requestedSchema":{"type":"object","properties":{` +
		`"name":{"type":"string","default":"Ada"},"n":{"type":"integer","default":3},"ok":{"type":"boolean","default":false},` +
		`"many":{"type":"array","default":["a","b"]},"none":{"type":"string"},"null":{"type":"string","default":null}}}}`
	accept := func(content string) *mcp.ElicitResult {
		r := &mcp.ElicitResult{Action: mcp.Accept}
		if content != "" {
			r.Content = mcp.JSON(content)
		}
		return r
	}
	for _, tt := range []struct {
		name   string
		params string
		answer *mcp.ElicitResult
		err    error
		want   string // "" for a failure
	}{
		{"an empty form gets the defaults", form, accept(`{}`), nil, `{"action":"accept","content":{"many":["a","b"],"n":3,"name":"Ada","ok":false}}`},
		{"no content gets them too", form, accept(""), nil, `{"action":"accept","content":{"many":["a","b"],"n":3,"name":"Ada","ok":false}}`},
		{"null is no content", form, accept("null"), nil, `{"action":"accept","content":{"many":["a","b"],"n":3,"name":"Ada","ok":false}}`},
		{"what was filled in stays", form, accept(`{"name":"","n":0,"ok":true,"many":[],"none":"x"}`), nil,
			`{"action":"accept","content":{"many":[],"n":0,"name":"","none":"x","ok":true}}`},
		{"a form without fields", `{"message":"?"}`, accept(`{"x":1}`), nil, `{"action":"accept","content":{"x":1}}`},
		{"declined", form, &mcp.ElicitResult{Action: mcp.Decline}, nil, `{"action":"decline"}`},
		{"dismissed", form, &mcp.ElicitResult{Action: mcp.Cancel}, nil, `{"action":"cancel"}`},
		{"a page", `{"mode":"url","message":"?","url":"https://a.example/","elicitationId":"1"}`, accept(""), nil, `{"action":"accept"}`},
		{"content that is no object", form, accept(`[1]`), nil, ""},
		{"no answer", form, nil, nil, ""},
		{"an error", form, nil, errCrash, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eras(t, func(t *testing.T, era mcp.Era) {
				synctest.Test(t, func(t *testing.T) {
					c := connect(t, asking(era, mcp.MethodElicit, tt.params), &client.Options{
						ElicitURL: true,
						Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
							if p.Message != "?" {
								t.Errorf("it was asked %+v", p)
							}
							return tt.answer, tt.err
						},
					})
					got, err := told(t, c)
					if got != tt.want || (err == nil) != (tt.want != "") || tt.err != nil && !errors.Is(err, tt.err) {
						t.Errorf("%s, %v", got, err)
					}
				})
			})
		})
	}
}

// TestOtherQuestions are answered by their functions, or not at all.
func TestOtherQuestions_B044(t *testing.T) {
	sampled := &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: mcp.Contents{&mcp.Text{Text: "hello"}}}
	sample := func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return sampled, nil }
	roots := func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///a"}}, nil }
	const message = `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":1}`
	const offer = `{"messages":[],"maxTokens":1,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	const answer = `{"role":"assistant","content":{"type":"text","text":"hello"},"model":"m"}`
	for _, tt := range []struct {
		name, method, params string
		opts                 client.Options
		want                 string // "" for who cannot be asked
	}{
		{"sampling", mcp.MethodCreateMessage, message, client.Options{Sample: sample}, answer},
		{"sampling with tools", mcp.MethodCreateMessage, offer, client.Options{Sample: sample, SampleTools: true}, answer},
		{"sampling with tools that were not declared", mcp.MethodCreateMessage, offer, client.Options{Sample: sample}, ""},
		{"sampling that was not declared", mcp.MethodCreateMessage, message, client.Options{}, ""},
		{"roots", mcp.MethodListRoots, `{}`, client.Options{Roots: roots}, `{"roots":[{"uri":"file:///a"}]}`},
		{"roots that were not declared", mcp.MethodListRoots, `{}`, client.Options{Sample: sample}, ""},
		{"no roots", mcp.MethodListRoots, `{}`, client.Options{Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }}, `{"roots":[]}`},
		{"a page for who takes forms", mcp.MethodElicit, `{"mode":"url","url":"https://a.example/","message":""}`, client.Options{
			Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, errCrash },
		}, ""},
		{"declared for others", mcp.MethodListRoots, `{}`, client.Options{Capabilities: mcp.JSON(`{"roots":{}}`)}, ""},
		{"something unknown", "vendor/x", `{}`, client.Options{Sample: sample}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eras(t, func(t *testing.T, era mcp.Era) {
				synctest.Test(t, func(t *testing.T) {
					c := connect(t, asking(era, tt.method, tt.params), &tt.opts)
					got, err := told(t, c)
					if got != tt.want || (err == nil) != (tt.want != "") || err != nil && !errors.Is(err, mcp.ErrCannotAsk) {
						t.Errorf("%s, %v", got, err)
					}
					if kind, _ := outcome(err); err != nil && era == mcp.Modern && kind != mcp.Unsupported {
						t.Errorf("the call failed as %v", kind)
					}
				})
			})
		})
	}
}

func TestSamplingWithoutAnAnswerFails(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, asking(era, mcp.MethodCreateMessage, `{"messages":[],"maxTokens":1}`), &client.Options{
				Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil },
			})
			if got, err := told(t, c); err == nil {
				t.Errorf("got %s", got)
			}
		})
	})
}

// TestErrorOfAFunctionIsNoAnswer: not even if it is another server's.
func TestErrorOfAFunctionIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := peerError(`{"code":-32000,"message":"another server's"}`)
		c := connect(t, asking(mcp.Modern, mcp.MethodListRoots, `{}`), &client.Options{
			Roots: func(context.Context) ([]mcp.Root, error) { return nil, other },
		})
		_, err := told(t, c)
		if kind, _ := outcome(err); kind != mcp.Cancelled || jsonrpc.FromPeer(err) || !errors.Is(err, other) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestQuestionThatFailsEndsTheOthers: their answers would be of no use to anybody.
func TestQuestionThatFailsEndsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(mcp.Modern)
		s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return needs(`"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}},"b":{"method":"roots/list"}}`), nil
		})
		broken := errors.New("no directory is known")
		ended := false
		c := connect(t, s, &client.Options{
			Elicit: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				select {
				case <-ctx.Done():
					ended = true
				case <-time.After(time.Hour): // a user who is away
				}
				return nil, errCrash
			},
			Roots: func(context.Context) ([]mcp.Root, error) {
				<-time.After(time.Second)
				return nil, broken
			},
		})
		_, err := told(t, c)
		if kind, sent := outcome(err); kind != mcp.Cancelled || sent != mcp.Answered || !errors.Is(err, broken) || !ended {
			t.Errorf("the form was ended: %v; the error is %v", ended, err)
		}
	})
}

// TestRoundsAreBounded: also those that ask nothing.
func TestRoundsAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name, members string
		rounds        int
		err           string
		after         time.Duration // at most
	}{
		{"questions", `"requestState":"s","inputRequests":{"a":{"method":"roots/list"}}`, client.MaxRounds + 1, "MaxRounds", 0},
		{"only a state", `"requestState":"s"`, client.MaxRounds + 1, "MaxRounds", 5 * time.Minute},
		{"an empty state", `"requestState":""`, client.MaxRounds + 1, "MaxRounds", 5 * time.Minute},
		{"only a state, and null", `"requestState":"s","inputRequests":null`, client.MaxRounds + 1, "MaxRounds", 5 * time.Minute},
		{"questions, and null for a state", `"requestState":null,"inputRequests":{"a":{"method":"roots/list","params":null}}`, client.MaxRounds + 1, "MaxRounds", 0},
		{"nothing but null", `"requestState":null,"inputRequests":null`, 1, "does not say which", 0},
		{"nothing", `"inputRequests":{}`, 1, "does not say which", 0},
		{"too many questions", `"inputRequests":{` + manyQuestions(client.MaxInputRequests+1) + `}`, 1, "MaxInputRequests", 0},
		{"no object", `"inputRequests":[1]`, 1, "bad reply", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStation(mcp.Modern)
				rounds := 0
				s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
					rounds++
					return needs(tt.members), nil
				})
				c := connect(t, s, &client.Options{Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }})
				began := time.Now()
				_, err := told(t, c)
				if rounds != tt.rounds || err == nil || !strings.Contains(err.Error(), tt.err) || time.Since(began) > tt.after {
					t.Errorf("%d rounds in %v, %v", rounds, time.Since(began), err)
				}
				if took := time.Since(began); tt.after > 0 && took < tt.after/10 {
					t.Errorf("a server that is not ready was asked %d times in %v", rounds, took)
				}
				if _, sent := outcome(err); sent != mcp.Answered {
					t.Errorf("the outcome is %v", sent)
				}
			})
		})
	}
}

func manyQuestions(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"%d":{"method":"roots/list"}`, i))
	}
	return strings.Join(all, ",")
}

// TestRoundsKeepThemselvesApart_P1: what concurrent calls are asked and answered
// stays theirs, and no round repeats another one's answers.
func TestRoundsKeepThemselvesApart_P1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(mcp.Modern)
		s.ask(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			args := req.Params.Get("arguments")
			n, _ := args.LookupString("n")
			state, _ := req.Params.LookupString("requestState")
			responses := req.Params.Get("inputResponses")
			switch state {
			case "":
				return needs(`"requestState":"1` + n + `","inputRequests":{"first":{"method":"elicitation/create","params":{"message":"` + n + `"}}}`), nil
			case "1" + n:
				first := responses.Get("first")
				content := first.Get("content")
				if said, _ := content.LookupString("said"); said != n || responses.Len() != 1 {
					t.Errorf("%s got %s", n, responses.Raw())
				}
				return needs(`"inputRequests":{"second":{"method":"elicitation/create","params":{"message":"` + n + `"}}}`), nil
			}
			t.Errorf("%s came with the state %q", n, state)
			return mcp.Result{}, nil
		})
		done := s.tools
		s.ask(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			responses := req.Params.Get("inputResponses")
			if _, ok := responses.Lookup("second"); !ok {
				return done(ctx, req, caller)
			}
			if _, old := responses.Lookup("first"); old {
				t.Errorf("answers of the first round came again: %s", responses.Raw())
			}
			if _, old := req.Params.Lookup("requestState"); old {
				t.Error("the state of the first round came again")
			}
			return text("done"), nil
		})
		c := connect(t, s, &client.Options{Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			time.Sleep(time.Millisecond)
			return &mcp.ElicitResult{Action: mcp.Accept, Content: mcp.JSON(`{"said":"` + p.Message + `"}`)}, nil
		}})
		var calls sync.WaitGroup
		for n := range 50 {
			calls.Go(func() {
				if _, err := c.CallTool(t.Context(), "work", map[string]string{"n": fmt.Sprint(n)}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	})
}

// TestRawResultsThatNeedInputPass: who makes calls with Handle answers himself.
func TestRawResultsThatNeedInputPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, asking(mcp.Modern, mcp.MethodListRoots, `{}`), nil)
		req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(`{"name":"work"}`))}
		result, err := c.Handle(t.Context(), req, mcp.NoCaller{})
		if result.Value = result.Indexed(); err != nil || result.Type() != mcp.InputRequired {
			t.Errorf("%s, %v", result.Raw(), err)
		}
		if req.Meta.Capabilities != nil {
			t.Error("the request was changed")
		}
	})
}

// TestRoundIsMadeAgainLikeACall: one that provably was not taken, although the call
// has asked before.
func TestRoundIsMadeAgainLikeACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(mcp.Modern)
		attempts := 0
		s.ask(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			switch attempts++; attempts {
			case 1:
				return needs(`"requestState":"s","inputRequests":{"a":{"method":"roots/list"}}`), nil
			case 2:
				s.last().end(errCrash)
				return mcp.Result{}, lost(req, mcp.NotSent, errCrash)
			}
			return text("done"), nil
		})
		c := connect(t, s, &client.Options{Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }})
		if got, err := told(t, c); got != "done" || err != nil || attempts != 3 {
			t.Errorf("%q, %v after %d attempts", got, err, attempts)
		}
	})
}

// TestLaterRoundThatIsNotSent_P2: what is known of it is not known of the call, which
// the server has had.
func TestLaterRoundThatIsNotSent_P2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(mcp.Modern)
		attempts := 0
		s.ask(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if attempts++; attempts == 1 {
				return needs(`"requestState":"s","inputRequests":{"a":{"method":"roots/list"}}`), nil
			}
			return mcp.Result{}, lost(req, mcp.NotSent, errCrash)
		})
		c := connect(t, s, &client.Options{Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil }})
		if _, err := told(t, c); mcp.OutcomeOf(err) != mcp.MaybeExecuted || !errors.Is(err, errCrash) {
			t.Errorf("%v after %d attempts", err, attempts)
		}
	})
}

// TestWaitsOfOursEndNoCall: a server that answers at once, and wants to be asked again,
// is not left alone for longer than the call may be silent.
func TestWaitsOfOursEndNoCall(t *testing.T) {
	const page = `{"mode":"url","elicitationId":"1","message":"?","url":"https://a.example/"}`
	for _, tt := range []struct {
		name   string
		era    mcp.Era
		result mcp.Result
		err    error
	}{
		{"only a state", mcp.Modern, needs(`"requestState":"s"`), nil},
		{"pages", mcp.Legacy, mcp.Result{}, peerError(`{"code":-32042,"message":"first","data":{"elicitations":[` + page + `]}}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStation(tt.era)
				attempts := 0
				s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
					if attempts++; attempts > 12 {
						return text("done"), nil
					}
					return tt.result, tt.err
				})
				c := connect(t, s, &client.Options{ElicitURL: true, Timeout: 5 * time.Second,
					Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: mcp.Accept}, nil
					}})
				if got, err := told(t, c); got != "done" {
					t.Errorf("%q, %v after %d attempts", got, err, attempts)
				}
			})
		})
	}
}

// TestCloseEndsCallsWhoseUserIsAsked: in whatever way the server asks, and while nothing
// but the user's doing is waited for.
func TestCloseEndsCallsWhoseUserIsAsked_P1(t *testing.T) {
	const page = `{"mode":"url","elicitationId":"1","message":"?","url":"https://a.example/"}`
	asks := func(era mcp.Era) func() *station {
		return func() *station { return asking(era, mcp.MethodElicit, page) }
	}
	required := func() *station {
		s := newStation(mcp.Legacy)
		s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.Result{}, peerError(`{"code":-32042,"message":"first","data":{"elicitations":[` + page + `]}}`)
		})
		return s
	}
	idle := func() *station {
		s := newStation(mcp.Modern)
		s.ask(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return needs(`"requestState":"s"`), nil
		})
		return s
	}
	for _, tt := range []struct {
		name    string
		server  func() *station
		answers bool
		closed  bool // the error tells that the client was closed, when its server had answered
	}{
		{"in a round", asks(mcp.Modern), false, true},
		{"between rounds", idle, false, true},
		{"in the call", asks(mcp.Legacy), false, false},
		{"before it", required, false, true},
		{"at the page", required, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, tt.server(), &client.Options{ElicitURL: true,
					Elicit: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						if !tt.answers {
							<-ctx.Done()
						}
						return &mcp.ElicitResult{Action: mcp.Accept}, ctx.Err()
					}})
				ended := make(chan error, 1)
				go func() { ended <- call(t, c) }()
				synctest.Wait()
				began := time.Now()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				select {
				case err := <-ended:
					answered := mcp.OutcomeOf(err) == mcp.Answered
					if took := time.Since(began); took > 0 || errors.Is(err, mcp.ErrClosed) != tt.closed || answered != tt.closed || err == nil {
						t.Errorf("after %v: %v", took, err)
					}
				case <-ctx.Done():
					t.Fatal("the call goes on")
				}
			})
		})
	}
}
