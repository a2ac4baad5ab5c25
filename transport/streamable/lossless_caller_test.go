package streamable_test

import (
	"context"
	"errors"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"pgregory.net/rapid"
)

// What goes the other way: notifications, questions and their answers.

// A note is a notification as its server writes it.
type note struct {
	method string
	params object
	text   string
}

func notes(method string, always ...member) *rapid.Generator[note] {
	return rapid.Custom(func(t *rapid.T) note {
		o := objects(3).Draw(t, "members").among(t, always...)
		if meta := objects(2).Draw(t, "meta"); len(meta) > 0 {
			o = o.among(t, member{`"_meta"`, meta.text(t)})
		}
		return note{method, o, o.text(t)}
	})
}

func (n note) notification() *mcp.Notification {
	return &mcp.Notification{Method: n.method, Params: jsonrpc.Trusted([]byte(n.text))}
}

func (c *cell) checkNotes(t *rapid.T) {
	var kind *rapid.Generator[note]
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		kind = rapid.Custom(func(t *rapid.T) note {
			return notes(mcp.NotificationProgress, member{`"progressToken"`, `"é"`}, member{`"progress"`, oddNumbers.Draw(t, "progress")}).Draw(t, "params")
		})
	case 1:
		kind = rapid.Custom(func(t *rapid.T) note {
			return notes(mcp.NotificationMessage, member{`"level"`, `"inf\u006f"`}, member{`"data"`, values(4).Draw(t, "data")}).Draw(t, "params")
		})
	default:
		kind = notes("notifications/vendor/é")
	}
	c.tellInCall(t, rapid.SliceOfN(kind, 1, 3).Draw(t, "notes"))
}

// tellInCall has a server tell something in the middle of a call.
func (c *cell) tellInCall(t rapid.TB, list []note) {
	t.Helper()
	c.must(t, c.plain(mcp.MethodCallTool), nil, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		for _, n := range list {
			message := n.notification()
			if n.method == mcp.NotificationProgress {
				message.Params = mcp.WithProgressToken(&message.Params, req.Meta.ProgressToken)
			}
			if err := caller.Notify(ctx, message); err != nil {
				return mcp.Result{}, err
			}
		}
		return raw("{}")
	})
	for _, n := range list {
		same(t, "a notification", n.method+" "+n.text, receive(t, "a notification", c.pen.told))
	}
}

func (c *cell) checkChange(t *rapid.T) {
	n := rapid.Custom(func(t *rapid.T) note {
		if rapid.Bool().Draw(t, "of a list") {
			return notes(mcp.NotificationToolsListChanged).Draw(t, "params")
		}
		return notes(mcp.NotificationResourceUpdated, member{`"uri"`, `"test:\/\/a"`}).Draw(t, "params")
	}).Draw(t, "change")
	c.tellOfChange(t, n)
}

// tellOfChange has a server tell those who listen.
func (c *cell) tellOfChange(t rapid.TB, n note) {
	t.Helper()
	c.courier.tell(t, n.notification())
	got := receive(t, "the change", c.pen.told)
	want := n.params
	if c.client.era == mcp.Modern {
		_, params, _ := strings.Cut(got, " ")
		id := objectOf(objectOf(params).get("_meta")).get(mcp.MetaSubscriptionID)
		want = subscribed(want, id)
	}
	same(t, "the change", n.method+" "+want.String(), got)
}

// checkListen: a subscription's filter, its acknowledgement and its end may say more
// than is known here.
func (c *cell) checkListen(t *rapid.T) {
	filter := objects(3).Draw(t, "filter").among(t, member{`"toolsListChanged"`, "true"}, member{`"resourceSubscriptions"`, `["test:\/\/a"]`})
	call := c.letters(mcp.MethodListen, member{`"notifications"`, filter.String()}).Draw(t, "call")
	granted := notes(mcp.NotificationAcknowledged, member{`"notifications"`, filter.String()}).Draw(t, "granted")
	result := objects(2).Draw(t, "result")
	c.courier.expect(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		c.courier.take(req)
		c.courier.got <- string(req.Meta.ProgressToken.Raw())
		return mcp.RawResult([]byte(result.String())), caller.Notify(ctx, granted.notification())
	})
	defer c.courier.expect("", nil)
	r := newRecorder()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := c.edge.Handle(ctx, c.read(t, call), r)
	if err != nil {
		t.Fatalf("the call failed: %v", err)
	}
	seen, token := receive(t, "the request", c.courier.got), receive(t, "its token", c.courier.got)
	same(t, "the request", c.atServer(call.params, token).String(), seen)
	_, acknowledged, _ := strings.Cut(receive(t, "the acknowledgement", r.signal), " ")
	id := objectOf(objectOf(acknowledged).get("_meta")).get(mcp.MetaSubscriptionID)
	same(t, "the acknowledgement", subscribed(granted.params, id).String(), acknowledged)
	same(t, "the result", c.atClient(mcp.MethodListen, subscribed(result, id)).String(), string(got.Raw()))
}

// subscribed is what belongs to a subscription.
func subscribed(o object, id string) object {
	return o.set("_meta", objectOf(o.get("_meta")).set(mcp.MetaSubscriptionID, id).String())
}

func (c *cell) checkNotification(t *rapid.T) {
	// Progress is that of an answer to the server, under the server's own token.
	method := anyOf("notifications/vendor/é", mcp.NotificationProgress, mcp.NotificationRootsListChanged).Draw(t, "method")
	n := notes(method).Draw(t, "notification")
	c.courier.expect(n.method, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		c.courier.take(req)
		return mcp.Result{}, nil
	})
	defer c.courier.expect("", nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := c.edge.Handle(ctx, &mcp.Request{
		Method: n.method, Notification: true, Params: jsonrpc.Trusted([]byte(n.text)), Meta: mcp.Metadata{Revision: mcp.NewestLegacy},
	}, mcp.NoCaller{})
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, "the notification", n.text, receive(t, "the notification", c.courier.got))
}

// A dialogue is a question as its server writes it, and what the client answers.
type dialogue struct {
	question note
	answer   text
	refused  bool // the answer is an error
}

func (c *cell) dialogues() *rapid.Generator[dialogue] {
	kinds := []string{mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots}
	legacy := c.client.era == mcp.Legacy && c.server.era == mcp.Legacy
	if legacy {
		kinds = append(kinds, "vendor/ask")
	}
	return rapid.Custom(func(t *rapid.T) dialogue {
		var always []member
		method := rapid.SampledFrom(kinds).Draw(t, "method")
		switch method {
		case mcp.MethodElicit:
			always = []member{{`"message"`, oddStrings.Draw(t, "message")}, {`"requestedSchema"`, objects(4).Draw(t, "schema").text(t)}}
			if rapid.Bool().Draw(t, "by URL") {
				always = []member{{`"mode"`, `"url"`}, {`"url"`, `"https:\/\/` + oddStrings.Draw(t, "url")[1:]}, {`"elicitationId"`, oddStrings.Draw(t, "id")}}
			}
		case mcp.MethodCreateMessage:
			always = []member{{`"messages"`, values(4).Draw(t, "messages")}}
			if rapid.Bool().Draw(t, "with tools") {
				always = append(always, member{`"tools"`, values(3).Draw(t, "tools")})
			}
		}
		d := dialogue{question: notes(method, always...).Draw(t, "params")}
		answer := objects(4).Draw(t, "answer")
		if d.refused = legacy && rapid.IntRange(0, 3).Draw(t, "refused") == 3; d.refused {
			answer = answer.among(t, member{`"code"`, "-1"}, member{`"message"`, oddStrings.Draw(t, "error")}, member{`"data"`, values(3).Draw(t, "data")})
		}
		d.answer = text{answer, answer.text(t)}
		return d
	})
}

func (d *dialogue) reply(*mcp.Request) (mcp.Result, error) {
	v := jsonrpc.Trusted([]byte(d.answer.text))
	if d.refused {
		return mcp.Result{}, jsonrpc.ReadError(&v)
	}
	return mcp.Result{Value: v}, nil
}

// checkQuestion: a server asks in the middle of a call.
func (c *cell) checkQuestion(t *rapid.T) {
	d := c.dialogues().Draw(t, "dialogue")
	c.discuss(t, c.plain(anyOf(mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource).Draw(t, "method")), d)
}

// discuss has a dialogue in the middle of a call.
func (c *cell) discuss(t rapid.TB, call letter, d dialogue) {
	t.Helper()
	serve := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		answer, err := caller.Ask(ctx, &mcp.Request{Method: d.question.method, Params: jsonrpc.Trusted([]byte(d.question.text))})
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && d.refused {
			c.courier.got <- errorText(wire)
		} else if err == nil {
			c.courier.got <- string(answer.Raw())
		}
		return mcp.RawResult([]byte("{}")), err
	}
	if d.refused {
		serve = regardless(serve)
	}
	result := c.must(t, call, d.reply, serve)
	question := d.question.method + " " + c.withID(d.question)
	if c.client.era == mcp.Modern {
		state, questions := inputIn(t, result)
		if len(questions) != 1 {
			t.Fatalf("the client is asked %v", questions)
		}
		asked := objectOf(questions[0].value)
		method, _ := jsonrpc.Unquote([]byte(asked.get("method")))
		same(t, "the question", question, method+" "+asked.get("params"))
		c.must(t, retry(call, state, `{`+questions[0].name+`:`+d.answer.text+`}`), nil, serve)
	} else {
		same(t, "the question", question, c.unnamed(t, receive(t, "the question", c.pen.asked)))
	}
	same(t, "the answer", d.answer.text, receive(t, "the answer", c.courier.got))
}

// withID is the params of a question as the client gets them: the id of an elicitation
// is of no meaning to modern clients, and modern servers give none.
func (c *cell) withID(question note) string {
	if question.method != mcp.MethodElicit || c.client.era == mcp.Legacy && c.server.era == mcp.Legacy {
		return question.text
	}
	return question.params.without("elicitationId").String()
}

// unnamed is a question without the id that a legacy client needs to be told of the
// end of what its user does at a URL; modern servers give none.
func (c *cell) unnamed(t rapid.TB, question string) string {
	method, params, _ := strings.Cut(question, " ")
	o := objectOf(params)
	if method != mcp.MethodElicit || o.get("mode") != `"url"` || c.server.era == mcp.Legacy {
		return question
	}
	if len(o.get("elicitationId")) < len(`"128 bits"`) {
		t.Errorf("the elicitation has no id: %s", question)
	}
	return method + " " + o.without("elicitationId").String()
}

// regardless is serve with a result even if the client refused to answer.
func regardless(serve mcp.HandlerFunc) mcp.HandlerFunc {
	return func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		_, _ = serve(ctx, req, caller)
		return raw("{}")
	}
}

// inputIn returns the state and the questions of a result that needs input.
func inputIn(t rapid.TB, result string) (state string, questions object) {
	t.Helper()
	o := objectOf(result)
	if o.get("resultType") != `"input_required"` {
		t.Fatalf("no input is required: %.300s", result)
	}
	return o.get("requestState"), objectOf(o.get("inputRequests"))
}

// retry is a call made again with answers.
func retry(first letter, state, answers string) letter {
	params := first.params
	if answers != "" {
		params = params.set("inputResponses", answers)
	}
	if state != "" {
		params = params.set("requestState", state)
	}
	return letter{first.method, params, params.String()}
}

// inputs are what a modern server's result requires, and what the client answers.
type inputs struct {
	result    text
	questions map[string]string // answers by question, by their tokens
	answers   object
	state     string
}

func (c *cell) needs() *rapid.Generator[inputs] {
	return rapid.Custom(func(t *rapid.T) inputs {
		in := inputs{questions: map[string]string{}, state: oddStrings.Draw(t, "state")}
		keys := rapid.SliceOfNDistinct(stringsOf(2), 1, 3, func(key string) string {
			key, _ = jsonrpc.Unquote([]byte(key))
			return key
		}).Draw(t, "keys")
		var requests object
		pages := map[string]bool{}
		for _, key := range keys {
			d := c.dialogues().Draw(t, "dialogue")
			if page, ok := jsonrpc.Unquote([]byte(d.question.params.get("url"))); ok && pages[page] {
				continue // its user is asked to open it once
			} else if ok {
				pages[page] = true
			}
			asked := tokens(d.question.method + " " + d.question.params.without("elicitationId").String())
			if in.questions[asked] == "" {
				in.questions[asked] = d.answer.text
			}
			requests = append(requests, member{key, `{"params":` + d.question.text + `,"method":"` + d.question.method + `"}`})
			in.answers = append(in.answers, member{key, in.questions[asked]})
		}
		in.result.object = objects(2).Draw(t, "members").among(t, member{`"resultType"`, `"input_required"`},
			member{`"inputRequests"`, requests.text(t)}, member{`"requestState"`, in.state})
		in.result.text = in.result.object.text(t)
		return in
	})
}

// checkInput: the server says what it needs by its result.
func (c *cell) checkInput(t *rapid.T) {
	in := c.needs().Draw(t, "input")
	c.require(t, c.plain(anyOf(mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource).Draw(t, "method")), in)
}

// require has a call end with a result that needs input, and then another one with it.
func (c *cell) require(t rapid.TB, first letter, in inputs) {
	t.Helper()
	serve := func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		responses, answered := req.Params.Lookup("inputResponses")
		state, again := req.Params.Lookup("requestState")
		if !answered && !again {
			return raw(in.result.text)
		}
		c.courier.got <- string(state)
		c.courier.got <- string(responses)
		return raw("{}")
	}
	result := c.must(t, first, func(q *mcp.Request) (mcp.Result, error) {
		asked := objectOf(string(q.Params.Raw())).without("elicitationId")
		answer, ok := in.questions[tokens(q.Method+" "+asked.String())]
		if !ok {
			return mcp.Result{}, errors.New("the server has not asked this")
		}
		return raw(answer)
	}, serve)
	answers := ""
	if len(in.answers) > 0 {
		answers = in.answers.String()
	}
	if c.client.era == mcp.Modern {
		sameBytes(t, "the result", in.result.text, result)
		c.must(t, retry(first, in.state, answers), nil, serve)
	} else {
		for range len(in.answers) {
			receive(t, "a question", c.pen.asked)
		}
	}
	same(t, "the state", in.state, receive(t, "the state", c.courier.got))
	same(t, "the answers", answers, receive(t, "the answers", c.courier.got))
}
