package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// promising is a server whose tool has an output schema, and gives a result.
func promising(schema, result func() string) *client.HandlerTarget {
	return client.Handler(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodListTools:
			return mcp.RawResult(fmt.Appendf(nil, `{"resultType":"complete","ttlMs":0,"tools":[{"name":"work","inputSchema":{"type":"object"}%s}]}`, schema())), nil
		case mcp.MethodCallTool:
			return mcp.RawResult([]byte(result())), nil
		}
		return mcp.RawResult([]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
	}))
}

func always(text string) func() string { return func() string { return text } }

// list has a client learn of tools.
func list(t *testing.T, c *client.Client) {
	t.Helper()
	for _, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestOutputIsChecked_B163 gives results that are as the schema has them, and not.
func TestOutputIsChecked_B163(t *testing.T) {
	const weather = `,"outputSchema":{"type":"object","properties":{"degrees":{"type":"number"},"days":{"type":"array","items":{"type":"string"}}},"required":["degrees"]}`
	const place = "/days/1 must be of type string"
	content := func(structured string) string { return `{"content":[],"structuredContent":` + structured + `}` }
	for _, tt := range []struct {
		name   string
		schema string
		result string
		wrong  string // the end of the error, or of the warning; empty if it fits
	}{
		{"as it should be", weather, content(`{"degrees":3,"days":["Mo"],"other":null}`), ""},
		{"a wrong type inside", weather, content(`{"degrees":3,"days":["Mo",2]}`), place},
		{"a member that lacks", weather, content(`{"days":[]}`), `lacks the member "degrees"`},
		{"no object", weather, content(`[1]`), "the value must be of type object"},
		{"null", weather, content(`null`), "the value must be of type object"},
		{"any value, if the schema has it so", `,"outputSchema":{"type":"array"}`, content(`[1]`), ""},
		{"no structured content", weather, `{"content":[{"type":"text","text":"3"}]}`, ""},
		{"a failure of the tool", weather, `{"content":[],"isError":true,"structuredContent":{"why":1}}`, ""},
		{"no schema", "", content(`{"degrees":"x"}`), ""},
		{"a member twice, right and wrong", weather, content(`{"degrees":3,"degrees":"x"}`), "/degrees must be of type number"},
		{"a member twice, wrong and right", weather, content(`{"degrees":"x","degrees":3}`), "/degrees must be of type number"},
		{"a member twice, as escapes", weather, content(`{"degrees":3,"\u0064egrees":"x"}`), "/degrees must be of type number"},
		{"what the library must check", `,"outputSchema":{"anyOf":[{"type":"array"},{"required":["a"]}]}`, content(`{}`), ""}, // some text
		{"a schema with references elsewhere", `,"outputSchema":{"$ref":"http://169.254.169.254/x"}`, content(`1`), ""},
		{"a schema of another dialect", `,"outputSchema":{"$schema":"http://json-schema.org/draft-04/schema#","type":"array"}`, content(`1`), ""},
		{"a schema that is none", `,"outputSchema":{"type":7}`, content(`1`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrong := tt.wrong != "" || tt.name == "what the library must check"
			for _, check := range []client.OutputCheck{client.RefuseOutput, client.WarnOfOutput, client.IgnoreOutput} {
				var log bytes.Buffer
				c := connect(t, promising(always(tt.schema), always(tt.result)), &client.Options{
					Output: check, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				list(t, c)
				result, err := c.CallTool(t.Context(), "work", nil, nil)
				if refuse := wrong && check == client.RefuseOutput; !refuse {
					if err != nil || result == nil {
						t.Errorf("check %d: got %v", check, err)
					}
					warned := strings.Contains(log.String(), "not as it should be")
					if warned != (wrong && check == client.WarnOfOutput) {
						t.Errorf("check %d: the log is %s", check, log.String())
					}
					continue
				}
				kind, known := outcome(err)
				failed, ok := errors.AsType[*client.OutputError](err)
				if !ok || kind != mcp.BadReply || known != mcp.Answered || !strings.HasSuffix(err.Error(), tt.wrong) {
					t.Errorf("got %v, want %s", err, tt.wrong)
				}
				if ok && (failed.Tool != "work" || !strings.Contains(tt.result, string(failed.Result.StructuredContent))) {
					t.Errorf("the result of %s is %s", failed.Tool, failed.Result.StructuredContent)
				}
			}
		})
	}
}

// TestNullIsNoOutputSchema_B163: languages write it that have no absent members.
func TestNullIsNoOutputSchema_B163(t *testing.T) {
	var log bytes.Buffer
	c := connect(t, promising(always(`,"outputSchema":null`), always(`{"content":[]}`)), &client.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	list(t, c)
	if _, err := c.CallTool(t.Context(), "work", nil, nil); err != nil || strings.Contains(log.String(), "output schema") {
		t.Errorf("got %v; the log is %s", err, log.String())
	}
}

// TestDuplicatesInStructuredContent: they are handed over as they came, and whoever
// decodes them is told.
func TestDuplicatesInStructuredContent_TA1(t *testing.T) {
	const structured = `{"a":1,"a":2}`
	c := connect(t, promising(always(""), always(`{"content":[],"structuredContent":`+structured+`}`)), nil)
	result, err := c.CallTool(t.Context(), "work", nil, nil)
	if err != nil || string(result.StructuredContent) != structured {
		t.Fatalf("got %v, %v", result, err)
	}
	var v any
	if err := result.StructuredContent.Decode(&v); err == nil {
		t.Errorf("it was decoded as %v", v)
	}
}

// TestOutputSchemasAreForgotten: a server that has changed is not held to what it
// said before.
func TestOutputSchemasAreForgotten(t *testing.T) {
	const old = `,"outputSchema":{"type":"object"}`
	now := old
	target := promising(func() string { return now }, always(`{"content":[],"structuredContent":[1]}`))
	wrong := func(t *testing.T, c *client.Client) bool {
		_, err := c.CallTool(t.Context(), "work", nil, nil)
		failed, ok := errors.AsType[*client.OutputError](err)
		if err != nil && !ok {
			t.Fatal(err)
		}
		return failed != nil
	}
	t.Run("by a list", func(t *testing.T) {
		c := connect(t, target, nil)
		for _, schema := range []string{old, `,"outputSchema":{"type":"array"}`, old, ""} {
			now = schema
			list(t, c)
			if got := wrong(t, c); got != (schema == old) {
				t.Errorf("with %q: wrong is %t", schema, got)
			}
		}
	})
	t.Run("by a new connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &puppet{handle: func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				if req.Method == mcp.MethodListTools || req.Method == mcp.MethodCallTool {
					return target.Handler.Handle(ctx, req, caller)
				}
				return mcp.Result{}, errUsual
			}}
			now = old
			c := connect(t, p, nil)
			list(t, c)
			if !wrong(t, c) {
				t.Error("the output was not checked")
			}
			p.last().end(errCrash)
			if wrong(t, c) {
				t.Error("the server is held to what it said before it crashed")
			}
			synctest.Wait() // a client that listens again forgets what it knows once more
			list(t, c)
			if !wrong(t, c) {
				t.Error("the output was not checked any more")
			}
		})
	})
}
