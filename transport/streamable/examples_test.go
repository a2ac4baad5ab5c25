package streamable_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A way carries an example message of the specification through a cell, and asserts
// what arrives.
type way func(c *cell, t *testing.T, text string)

// ways are those of the folders of examples. Nil stands for messages that an edge
// reads and writes itself; the comment says which test shows that.
var ways = map[string]way{
	"AudioContent":                          part(mcp.MethodCallTool, `{"content":[%]}`),
	"BlobResourceContents":                  part(mcp.MethodReadResource, `{"contents":[%]}`),
	"BooleanSchema":                         ask(mcp.MethodElicit, aForm),
	"CallToolRequest":                       wholeRequest,
	"CallToolRequestParams":                 params(mcp.MethodCallTool),
	"CallToolResult":                        part(mcp.MethodCallTool, `%`),
	"CallToolResultResponse":                response(mcp.MethodCallTool),
	"CancelledNotification":                 nil, // TestBridgeCarriesEverythingInAllCombinations/cancellation
	"CancelledNotificationParams":           nil,
	"ClientCapabilities":                    nil, // TestExamplesOfWhatIsDeclared
	"CompleteRequest":                       wholeRequest,
	"CompleteRequestParams":                 params(mcp.MethodComplete),
	"CompleteResult":                        part(mcp.MethodComplete, `%`),
	"CompleteResultResponse":                response(mcp.MethodComplete),
	"CreateMessageRequest":                  askWhole,
	"CreateMessageRequestParams":            ask(mcp.MethodCreateMessage, `%`),
	"CreateMessageResult":                   answerTo(mcp.MethodCreateMessage, `%`),
	"DiscoverRequest":                       nil, // TestExamplesOfWhatIsDeclared
	"DiscoverResult":                        nil,
	"DiscoverResultResponse":                nil,
	"ElicitRequest":                         askWhole,
	"ElicitRequestFormParams":               ask(mcp.MethodElicit, `%`),
	"ElicitRequestURLParams":                ask(mcp.MethodElicit, `%`),
	"ElicitResult":                          answerTo(mcp.MethodElicit, `%`),
	"EmbeddedResource":                      part(mcp.MethodGetPrompt, `{"messages":[{"role":"user","content":%}]}`),
	"GetPromptRequest":                      wholeRequest,
	"GetPromptRequestParams":                params(mcp.MethodGetPrompt),
	"GetPromptResult":                       part(mcp.MethodGetPrompt, `%`),
	"GetPromptResultResponse":               response(mcp.MethodGetPrompt),
	"HeaderMismatchError":                   failure,
	"ImageContent":                          part(mcp.MethodCallTool, `{"content":[%]}`),
	"InputRequests":                         input(`{"resultType":"input_required","inputRequests":%}`),
	"InputRequiredResult":                   input(`%`),
	"InputResponses":                        nil, // of InputRequests
	"InternalError":                         failure,
	"InvalidParamsError":                    failure,
	"ListPromptsRequest":                    wholeRequest,
	"ListPromptsResult":                     part(mcp.MethodListPrompts, `%`),
	"ListPromptsResultResponse":             response(mcp.MethodListPrompts),
	"ListResourceTemplatesRequest":          wholeRequest,
	"ListResourceTemplatesResult":           part(mcp.MethodListResourceTemplates, `%`),
	"ListResourceTemplatesResultResponse":   response(mcp.MethodListResourceTemplates),
	"ListResourcesRequest":                  wholeRequest,
	"ListResourcesResult":                   part(mcp.MethodListResources, `%`),
	"ListResourcesResultResponse":           response(mcp.MethodListResources),
	"ListRootsRequest":                      askWhole,
	"ListRootsResult":                       answerTo(mcp.MethodListRoots, `%`),
	"ListToolsRequest":                      wholeRequest,
	"ListToolsResult":                       part(mcp.MethodListTools, `%`),
	"ListToolsResultResponse":               response(mcp.MethodListTools),
	"LoggingMessageNotification":            tellWhole,
	"LoggingMessageNotificationParams":      tell(mcp.NotificationMessage),
	"MethodNotFoundError":                   failure,
	"MissingRequiredClientCapabilityError":  failure,
	"ModelPreferences":                      ask(mcp.MethodCreateMessage, `{"messages":[],"maxTokens":1,"modelPreferences":%}`),
	"NumberSchema":                          ask(mcp.MethodElicit, aForm),
	"PaginatedRequestParams":                params(mcp.MethodListTools),
	"ParseError":                            failure,
	"ProgressNotification":                  tellWhole,
	"ProgressNotificationParams":            tell(mcp.NotificationProgress),
	"PromptListChangedNotification":         tellWhole,
	"ReadResourceRequest":                   wholeRequest,
	"ReadResourceResult":                    part(mcp.MethodReadResource, `%`),
	"ReadResourceResultResponse":            response(mcp.MethodReadResource),
	"Resource":                              part(mcp.MethodListResources, `{"resources":[%]}`),
	"ResourceLink":                          part(mcp.MethodCallTool, `{"content":[%]}`),
	"ResourceListChangedNotification":       tellWhole,
	"ResourceUpdatedNotification":           tellWhole,
	"ResourceUpdatedNotificationParams":     tell(mcp.NotificationResourceUpdated),
	"Root":                                  answerTo(mcp.MethodListRoots, `{"roots":[%]}`),
	"SamplingMessage":                       ask(mcp.MethodCreateMessage, `{"messages":[%],"maxTokens":1}`),
	"ServerCapabilities":                    nil, // TestExamplesOfWhatIsDeclared
	"StringSchema":                          ask(mcp.MethodElicit, aForm),
	"SubscriptionsAcknowledgedNotification": nil, // TestExamplesOfListening
	"SubscriptionsListenRequest":            nil,
	"SubscriptionsListenResult":             nil,
	"SubscriptionsListenResultResponse":     nil,
	"TextContent":                           part(mcp.MethodCallTool, `{"content":[%]}`),
	"TextResourceContents":                  part(mcp.MethodReadResource, `{"contents":[%]}`),
	"TitledMultiSelectEnumSchema":           ask(mcp.MethodElicit, aForm),
	"TitledSingleSelectEnumSchema":          ask(mcp.MethodElicit, aForm),
	"Tool":                                  part(mcp.MethodListTools, `{"tools":[%]}`),
	"ToolListChangedNotification":           tellWhole,
	"ToolResultContent":                     ask(mcp.MethodCreateMessage, `{"messages":[{"role":"user","content":%}],"maxTokens":1}`),
	"ToolUseContent":                        answerTo(mcp.MethodCreateMessage, `{"role":"assistant","model":"m","content":%}`),
	"UnsupportedProtocolVersionError":       failure,
	"UntitledMultiSelectEnumSchema":         ask(mcp.MethodElicit, aForm),
	"UntitledSingleSelectEnumSchema":        ask(mcp.MethodElicit, aForm),
}

const (
	aForm       = `{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"x":%}}}`
	examplesDir = "../../mcp/testdata/2026-07-28/examples"
	// everything is what a client declares that can be asked all that there is.
	everything = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true}}`
)

// examplesIn returns the examples of some folders by their names.
func examplesIn(t *testing.T, folders string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(examplesDir + "/" + folders + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples in %s (%v)", folders, err)
	}
	texts := make(map[string]string)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		folder, name := filepath.Split(strings.TrimSuffix(file, ".json"))
		texts[filepath.Base(folder)+"/"+name] = strings.TrimSpace(string(data))
	}
	return texts
}

// TestExamplesOfTheSpecification: each example message of 2026-07-28 arrives as it was
// sent, but for what docs/eras.md has changed on the way.
func TestExamplesOfTheSpecification(t *testing.T) {
	all := examplesIn(t, "*")
	for name := range all {
		if _, ok := ways[strings.Split(name, "/")[0]]; !ok {
			t.Errorf("no row of ways says how %s is carried", name)
		}
	}
	inAllCombinations(t, func(t *testing.T, client, server side) {
		c := newCell(t, client, server, everything)
		c.listen(t)
		for name, text := range all {
			if carry := ways[strings.Split(name, "/")[0]]; carry != nil {
				t.Run(name, func(t *testing.T) {
					c.forget()
					carry(c, t, text)
				})
			}
		}
	})
}

// member returns the text of a member of an object.
func memberOf(t *testing.T, text, name string) string {
	t.Helper()
	got := objectOf(text).get(name)
	if got == "" {
		t.Fatalf("the example has no %s: %s", name, text)
	}
	return got
}

func unquoted(text string) string {
	s, _ := jsonrpc.Unquote([]byte(text))
	return s
}

func wholeRequest(c *cell, t *testing.T, text string) {
	params(unquoted(memberOf(t, text, "method")))(c, t, memberOf(t, text, "params"))
}

// params sends the example as the params of a request. The reserved members are not of
// a legacy client's, and may be missing in a fragment of the example.
func params(method string) way {
	return func(c *cell, t *testing.T, text string) {
		o := objectOf(text)
		if c.client.era == mcp.Legacy {
			meta := objectOf(o.get("_meta")).without(reserved...)
			if o = o.set("_meta", meta.String()); len(meta) == 0 {
				o = o.without("_meta")
			}
		} else if o.get("_meta") == "" {
			t.Fatalf("the example has no _meta: %s", text)
		}
		c.must(t, letter{method, o, o.String()}, nil, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			c.courier.take(req)
			c.courier.got <- string(req.Meta.ProgressToken.Raw())
			return raw("{}")
		})
		got, token := receive(t, "the request", c.courier.got), receive(t, "its token", c.courier.got)
		same(t, "params", c.atServer(o, token).String(), c.withoutTasks(got))
	}
}

// part gives the example as a result, or as a part of one.
func part(method, frame string) way {
	return func(c *cell, t *testing.T, text string) {
		result := strings.Replace(frame, "%", text, 1)
		got := c.must(t, c.plain(method), nil, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) { return raw(result) })
		same(t, "the result", c.atClient(method, objectOf(result)).String(), got)
	}
}

func response(method string) way {
	return func(c *cell, t *testing.T, text string) { part(method, `%`)(c, t, memberOf(t, text, "result")) }
}

// failure gives the example as the error of a call: the error of a response, or a
// whole one.
func failure(c *cell, t *testing.T, text string) {
	if whole := objectOf(text).get("error"); whole != "" {
		text = whole
	}
	result, err := c.make(t, c.plain(mcp.MethodCallTool), nil, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		v := jsonrpc.Trusted([]byte(text))
		return mcp.Result{}, jsonrpc.ReadError(&v)
	})
	if !jsonrpc.FromPeer(err) {
		t.Fatalf("the server's error became %s, %v", result, err)
	}
	same(t, "the error", text, errorText(err))
}

func tellWhole(c *cell, t *testing.T, text string) {
	tell(unquoted(memberOf(t, text, "method")))(c, t, memberOf(t, text, "params"))
}

// tell gives the example as the params of a notification: of a call, or of a change.
func tell(method string) way {
	return func(c *cell, t *testing.T, text string) {
		n := note{method, objectOf(text), text}
		switch method {
		case mcp.NotificationMessage:
			c.tellInCall(t, []note{n})
		case mcp.NotificationProgress:
			n.params = n.params.set("progressToken", `"é"`) // that of our request
			n.text = n.params.String()
			c.tellInCall(t, []note{n})
		default:
			n.params = n.params.without("_meta") // a subscription id, which edges give
			n.text = n.params.String()
			c.tellOfChange(t, n)
		}
	}
}

func askWhole(c *cell, t *testing.T, text string) {
	params := objectOf(text).get("params")
	if params == "" {
		params = "{}" // what a modern client gets, see forModernClient
	}
	ask(unquoted(memberOf(t, text, "method")), `%`)(c, t, params)
}

var anAnswer = map[string]string{
	mcp.MethodElicit:        `{"action":"decline"}`,
	mcp.MethodCreateMessage: `{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`,
	mcp.MethodListRoots:     `{"roots":[]}`,
}

// ask has the server ask what the example is, or is a part of.
func ask(method, frame string) way {
	return func(c *cell, t *testing.T, text string) {
		text = strings.Replace(frame, "%", text, 1)
		c.discuss(t, c.plain(mcp.MethodCallTool), dialogue{question: note{method, objectOf(text), text}, answer: textOf(anAnswer[method])})
	}
}

// answerTo has the client answer by what the example is, or is a part of.
func answerTo(method, frame string) way {
	questions := map[string]string{
		mcp.MethodElicit:        `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`,
		mcp.MethodCreateMessage: `{"messages":[],"maxTokens":1}`,
		mcp.MethodListRoots:     `{}`,
	}
	return func(c *cell, t *testing.T, example string) {
		text := questions[method]
		c.discuss(t, c.plain(mcp.MethodCallTool), dialogue{
			question: note{method, objectOf(text), text}, answer: textOf(strings.Replace(frame, "%", example, 1)),
		})
	}
}

func textOf(s string) text { return text{objectOf(s), s} }

// input has a modern server need what the example says. A legacy one asks it.
func input(frame string) way {
	return func(c *cell, t *testing.T, text string) {
		text = strings.Replace(frame, "%", text, 1)
		result := objectOf(text)
		in := inputs{result: textOf(text), questions: map[string]string{}, state: result.get("requestState")}
		answers := objectOf(examplesIn(t, "InputResponses")["InputResponses/elicitation-and-sampling-input-responses"])
		for _, m := range objectOf(result.get("inputRequests")) {
			q := objectOf(m.value)
			method, answer := unquoted(q.get("method")), answers.get(unquoted(m.name))
			in.questions[tokens(method+" "+q.get("params"))] = answer
			in.answers = append(in.answers, member{m.name, answer})
			if c.server.era == mcp.Legacy {
				ask(method, `%`)(c, t, q.get("params"))
			}
		}
		if c.server.era == mcp.Modern {
			c.require(t, c.plain(mcp.MethodCallTool), in)
		}
	}
}

// TestExamplesOfWhatIsDeclared: a server is told of its client, and a client of the
// server, in whichever way they learn that.
func TestExamplesOfWhatIsDeclared(t *testing.T) {
	discovered := examplesIn(t, "DiscoverResult")["DiscoverResult/server-capabilities-discovery"]
	inAllCombinations(t, func(t *testing.T, client, server side) {
		for name, declared := range examplesIn(t, "ClientCapabilities") {
			c := newCell(t, client, server, declared)
			c.must(t, c.plain(mcp.MethodGetPrompt), nil, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				c.courier.got <- string(req.Meta.Capabilities)
				return raw("{}")
			})
			if got := receive(t, "the call", c.courier.got); tokens(got) != tokens(declared) {
				t.Errorf("%s: the server is told of %s", name, got)
			}
		}
		for name, declared := range examplesIn(t, "ServerCapabilities") {
			if strings.HasSuffix(name, "/extensions-tasks") {
				continue // the bridge awaits tasks for legacy clients
			}
			says := objectOf(discovered).set("capabilities", declared)
			c := &cell{client: client, server: server, courier: newCourier()}
			c.courier.discover = says.String()
			c.edge = bridge(t, c.courier, client, server, everything)
			c.checkDiscovered(t, says)
		}
	})
}

// checkDiscovered asserts what a client is told of a server that says what it is.
func (c *cell) checkDiscovered(t *testing.T, says object) {
	t.Helper()
	want := says
	if c.server.era == mcp.Legacy {
		want = want.without("ttlMs", "cacheScope") // of no meaning to a session
	}
	if c.client.era == mcp.Modern {
		want = c.atClient(mcp.MethodDiscover, want).set("supportedVersions", `["2026-07-28"]`)
	} else {
		// What a session knows of its server, as discovery has it.
		want = want.without("ttlMs", "cacheScope").set("supportedVersions", `["`+string(c.edge.Server().Revision)+`"]`)
	}
	info := c.edge.Server()
	got := objectOf(string(info.Discover.Raw()))
	for _, m := range want {
		name := unquoted(m.name)
		if tokens(got.get(name)) != tokens(m.value) {
			t.Errorf("%s is %s, want %s", name, got.get(name), tokens(m.value))
		}
	}
	if len(got) != len(want) {
		t.Errorf("the client is told %v, want %v", got, want)
	}
}

// TestExamplesOfListening: a subscription is acknowledged under the client's own id,
// and ended under it where servers end one.
func TestExamplesOfListening(t *testing.T) {
	request := examplesIn(t, "SubscriptionsListenRequest")["SubscriptionsListenRequest/listen-for-list-changes"]
	acknowledged := examplesIn(t, "SubscriptionsAcknowledgedNotification")["SubscriptionsAcknowledgedNotification/listen-acknowledged"]
	closed := examplesIn(t, "SubscriptionsListenResult")["SubscriptionsListenResult/listen-closed"]
	filter := objectOf(memberOf(t, acknowledged, "params")).without("_meta")
	inAllCombinations(t, func(t *testing.T, client, server side) {
		c := newCell(t, client, server, "{}")
		if client.era == mcp.Modern && server.era == mcp.Modern {
			c.courier.expect(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				c.courier.take(req)
				n := note{method: mcp.NotificationAcknowledged, text: filter.String()}
				return mcp.RawResult([]byte(closed)), caller.Notify(ctx, n.notification())
			})
		}
		params := objectOf(memberOf(t, request, "params"))
		v := jsonrpc.Trusted([]byte(params.String()))
		meta := v.Get("_meta")
		req := &mcp.Request{Method: mcp.MethodListen, Params: v}
		if client.era == mcp.Modern {
			req.Meta, _ = mcp.ReadMetadata(&meta)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r := newRecorder()
		ended := make(chan mcp.Result, 1)
		go func() {
			result, _ := c.edge.Handle(ctx, req, r)
			ended <- result
		}()
		want, got := filter, receive(t, "the acknowledgement", r.signal)
		got = strings.TrimPrefix(got, mcp.NotificationAcknowledged+" ")
		id := objectOf(objectOf(got).get("_meta")).get(mcp.MetaSubscriptionID)
		if client.era == mcp.Modern {
			want = want.set("_meta", `{"`+mcp.MetaSubscriptionID+`":`+id+`}`)
		}
		same(t, "the acknowledgement", want.String(), got)
		if client.era == mcp.Legacy || server.era == mcp.Legacy {
			cancel() // a session ends no subscription
			receive(t, "the end", ended)
			return
		}
		same(t, "the request", params.String(), receive(t, "the request", c.courier.got))
		result := receive(t, "the end", ended)
		same(t, "the result", strings.Replace(closed, `"listen-1"`, id, 1), string(result.Raw()))
	})
}
