package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// checkDiscover: the start of a connection tells both ends of each other.
func checkDiscover(ctx context.Context, c *cell) error {
	if verdict := c.Verdict(); verdict.Era != c.clientSide.era || verdict.Revision != c.clientSide.revision {
		return fmt.Errorf("the bridge is spoken to in %s (%s)", verdict.Revision, verdict.Era)
	}
	discover, err := c.Server(ctx)
	if err != nil {
		return err
	}
	var info mcp.Implementation
	if err := discover.Meta[mcp.MetaServerInfo].Decode(&info); err != nil {
		return err
	}
	has := discover.Capabilities
	complete := has.Tools != nil && has.Tools.ListChanged && has.Resources != nil && has.Resources.Subscribe &&
		has.Prompts != nil && has.Logging != nil && has.Completions != nil
	switch {
	case info.Name != fixtureName || info.Title != fixtureTitle || info.Version != "1.2.3":
		return fmt.Errorf("the server calls itself %s", info.JSON())
	case discover.Instructions != instructions:
		return fmt.Errorf("the instructions are %q", discover.Instructions)
	case !complete:
		return fmt.Errorf("capabilities are missing: %+v", has)
	}
	return c.checkKnown(ctx)
}

// checkKnown asserts what the server knows of the client. It can be asked, so that
// the connection to a legacy server is its own.
func (c *cell) checkKnown(ctx context.Context) error {
	text, err := c.call(ctx, "whoami", nil)
	if err != nil {
		return err
	}
	var known struct {
		Client       mcp.Implementation `json:"client"`
		Capabilities mcp.JSON           `json:"capabilities"`
		Revision     mcp.Revision       `json:"revision"`
	}
	if err := mcp.JSON(text).Decode(&known); err != nil {
		return err
	}
	want := c.serverSide.revision
	if c.serverSide.direct {
		want = known.Revision // that of the client, if it has one: there is no wire
	}
	if known.Revision != want {
		return fmt.Errorf("the server speaks %s, want %s", known.Revision, want)
	}
	return errors.Join(
		differ("the client at the server", string(known.Client.JSON()), string(clientInfo.JSON())),
		differ("the capabilities at the server", sorted(known.Capabilities), c.declared()),
	)
}

// declared are the capabilities that the server is to see: exactly the client's, and
// tasks, which the bridge itself awaits at a modern server for legacy clients.
func (c *cell) declared() string {
	declared := c.user.capabilities()
	if c.clientSide.era == mcp.Modern || c.serverSide.era == mcp.Legacy || c.serverSide.direct {
		return declared
	}
	return strings.Replace(declared, `"roots"`, `"extensions":{"`+mcp.ExtensionTasks+`":{}},"roots"`, 1)
}

// sorted returns JSON with the members of objects in the order of their names.
func sorted(j mcp.JSON) string {
	var v any
	if err := j.Decode(&v); err != nil {
		return string(j)
	}
	text, err := mcp.NewJSON(v)
	if err != nil {
		return string(j)
	}
	return string(text)
}

// toolNames are the fixture's tools, as they are listed.
var toolNames = []string{
	"asides", "ask", "await", "big", "bold", "both", "both-sealed", "chatter", "consent", "count", "count-asking", "echo", "exact",
	"fail", "grow", "hold", "log", "meet", "open", "refuse", "regional", "roots", "sample", "say", "touch", "twice",
	"twice-sealed", "weather", "whoami", "work",
}

// checkList: all pages are followed, and lists pass as they are.
func checkList(ctx context.Context, c *cell) error {
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		result, err := c.Call(ctx, mcp.MethodListTools, mcp.PageParams{Cursor: cursor}, nil)
		if err != nil {
			return err
		}
		cursor, _ = result.LookupString("nextCursor")
	}
	if want := (len(toolNames) + pageSize - 1) / pageSize; pages != want {
		return fmt.Errorf("%d pages, want %d", pages, want)
	}
	var names []string
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
		if tool.Name == "weather" && !strings.Contains(string(tool.OutputSchema), `"celsius"`) {
			return fmt.Errorf("the output schema of weather is %s", tool.OutputSchema)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(names)), toolNames) {
		return fmt.Errorf("the tools are %q", names)
	}
	return nil
}

// A trickyText holds what has been mangled on the way before.
const trickyText = "\"q\" \\ \x01 \t\r\n \u2028 é \U0001F600 </script> \u007f"

func checkCall(ctx context.Context, c *cell) error {
	got, err := c.call(ctx, "echo", map[string]any{"text": trickyText})
	if err != nil {
		return err
	}
	return differ("the text", fmt.Sprintf("%q", got), fmt.Sprintf("%q", trickyText))
}

// zurichWeather is what the tool weather says of Zürich.
const zurichWeather = `{"city":"Zürich","celsius":21.5,"words":["sunny","windy"]}`

func checkStructured(ctx context.Context, c *cell) error {
	result, err := c.CallTool(ctx, "weather", map[string]any{"city": "Zürich"}, nil)
	if err != nil {
		return err
	}
	if err := differ("the structured content", string(result.StructuredContent), zurichWeather); err != nil {
		return err
	}
	return checkStructuredAsText(ctx, c)
}

// checkStructuredAsText: who knows no structured content is given the same as text.
func checkStructuredAsText(ctx context.Context, c *cell) error {
	text, err := c.call(ctx, "weather", map[string]any{"city": "Zürich"})
	if err != nil {
		return err
	}
	return differ("the text", text, zurichWeather)
}

func checkToolError(ctx context.Context, c *cell) error {
	result, err := c.CallTool(ctx, "fail", nil, nil)
	if err != nil {
		return err
	}
	text, err := onlyText(result.Content)
	if err != nil {
		return err
	}
	if !result.Failed() {
		return errors.New("isError is not set")
	}
	return differ("the text", text, "no luck")
}

func checkProtocolErrors(ctx context.Context, c *cell) error {
	_, err := c.call(ctx, "refuse", nil)
	wire, isWire := errors.AsType[*jsonrpc.Error](err)
	if !isWire {
		return fmt.Errorf("the server's error became %v", err)
	}
	_, unknownTool := c.call(ctx, "no-such-tool", nil)
	_, unknownMethod := c.Call(ctx, "example.com/unknown", nil, nil)
	_, noArguments := c.call(ctx, "echo", nil)
	return errors.Join(
		differ("the server's error", fmt.Sprintf("%d %s %s", wire.Code, wire.Message, wire.Data.Raw()), "12345 no "+errorData),
		wantCode("an unknown tool", unknownTool, jsonrpc.CodeInvalidParams),
		wantCode("an unknown method", unknownMethod, jsonrpc.CodeMethodNotFound),
		toldModel("missing arguments", noArguments),
	)
}

func wantCode(what string, err error, code int) error {
	if errors.Is(err, &jsonrpc.Error{Code: code}) {
		return nil
	}
	return fmt.Errorf("%s is answered with %v, want code %d", what, err, code)
}

func toldModel(what string, err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "the tool failed: ") {
		return nil
	}
	return fmt.Errorf("%s are answered with %v", what, err)
}

// region is an argument that no header can hold as it is.
const region = "Zürich \U0001F600"

func checkAnnotated(ctx context.Context, c *cell) error {
	listed := ""
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return err
		}
		if tool.Name == "regional" {
			listed = string(tool.InputSchema)
		}
	}
	if err := differ("the schema", listed, regionalSchema); err != nil {
		return err
	}
	for _, want := range []string{region, "plain", ""} {
		got, err := c.call(ctx, "regional", map[string]any{"region": want})
		if err != nil {
			return err
		}
		if err := differ("the argument", got, want); err != nil {
			return err
		}
	}
	return nil
}

// withoutHeaders says that a cell has no wire on which parameters are mirrored.
func withoutHeaders(c *cell) string {
	if mirrors(c.clientSide) || mirrors(c.serverSide) {
		return ""
	}
	return "neither side is Streamable HTTP of 2026-07-28, which alone mirrors parameters" +
		" (2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters)"
}

func mirrors(s side) bool { return s.http && s.era == mcp.Modern }

// checkMirrored asserts the header where there is one, and none elsewhere.
func checkMirrored(ctx context.Context, c *cell) error { return c.checkHeaders(ctx) }

// checkNotMirrored asserts that no other wire has the header.
func checkNotMirrored(ctx context.Context, c *cell) error { return c.checkHeaders(ctx) }

func (c *cell) checkHeaders(ctx context.Context) error {
	c.client.params()
	c.server.params()
	if got, err := c.call(ctx, "regional", map[string]any{"region": region}); err != nil || got != region {
		return fmt.Errorf("the call gives %q, %w", got, err)
	}
	for _, w := range []struct {
		name string
		side side
		wire *wire
	}{{"client's", c.clientSide, c.client}, {"server's", c.serverSide, c.server}} {
		want := "map[]"
		if mirrors(w.side) {
			want = fmt.Sprint(map[string][]string{mcp.HeaderPrefix + "Region": {mcp.EncodeHeader(region)}})
		}
		if err := differ("the headers on the "+w.name+" wire", fmt.Sprint(w.wire.params()), want); err != nil {
			return err
		}
	}
	return nil
}
