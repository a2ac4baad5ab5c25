package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/cli"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// put puts a question to somebody who types lines, and returns the answer and what
// was shown.
func put(t *testing.T, params *mcp.ElicitParams, lines ...string) (*mcp.ElicitResult, string) {
	t.Helper()
	var shown bytes.Buffer
	typed := strings.NewReader(strings.Join(lines, "\n"))
	result, err := cli.Ask(t.Context(), typed, &shown, params)
	if err != nil {
		t.Fatalf("%v\n%s", err, shown.String())
	}
	return result, shown.String()
}

func TestFieldsOfForms(t *testing.T) {
	for _, tt := range []struct {
		name, field string
		typed       []string // after which yes is typed
		want        string   // content
		shown       string
	}{
		{"text", `{"type":"string","title":"Your name","description":"What to call you"}`, []string{" Ada "}, `{"f":"Ada"}`, "Your name (optional)\nWhat to call you\n> "},
		{"text left out", `{"type":"string"}`, []string{""}, `{}`, "f (optional)"},
		{"default", `{"type":"string","default":"\u00e9"}`, []string{""}, `{"f":"\u00e9"}`, "[é] > "},
		{"length", `{"type":"string","minLength":2,"maxLength":3}`, []string{"a", "abcd", "éüö"}, `{"f":"éüö"}`, "it must be at least 2 characters\n> " + "  it must be at most 3 characters"},
		{"email", `{"type":"string","format":"email"}`, []string{"ada", "Ada <a@b.ch>", "a@b.ch"}, `{"f":"a@b.ch"}`, "f (email, optional)\n>   this is no e-mail address, as in ada@example.com"},
		{"uri", `{"type":"string","format":"uri"}`, []string{"/x", "https://x.ch/"}, `{"f":"https://x.ch/"}`, "this is no URI"},
		{"date", `{"type":"string","format":"date"}`, []string{"1.2.2026", "2026-02-30", "2026-02-28"}, `{"f":"2026-02-28"}`, "this is no date, as in 2026-12-24"},
		{"date-time", `{"type":"string","format":"date-time"}`, []string{"now", "2026-02-28T12:00:00Z"}, `{"f":"2026-02-28T12:00:00Z"}`, "this is no time"},
		{"integer", `{"type":"integer","minimum":1,"maximum":9007199254740993}`, []string{"x", "1.5", "0", "9007199254740994", "9007199254740993"},
			`{"f":9007199254740993}`, `"x" is no integer`},
		{"number", `{"type":"number","maximum":2.5}`, []string{"1e999999999", "2.6", "-1e3"}, `{"f":-1e3}`, "is out of range"},
		{"yes or no", `{"type":"boolean","default":false}`, []string{"maybe", "Y"}, `{"f":true}`, "f (yes or no, optional)\n[no] > "},
		{"no", `{"type":"boolean","default":true}`, []string{""}, `{"f":true}`, "[yes] > "},
		{"enum", `{"type":"string","enum":["red","blue"]}`, []string{"3", "pink", "2"}, `{"f":"blue"}`, "  1  red\n  2  blue\n> "},
		{"enum by value", `{"type":"string","enum":["red","blue"]}`, []string{"Red"}, `{"f":"red"}`, ""},
		{"enum with names", `{"type":"string","enum":["r","b"],"enumNames":["Red","Blue"],"default":"b"}`, []string{""}, `{"f":"b"}`, "  1  Red\n  2  Blue\n[Blue] > "},
		{"titled", `{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"b","title":"Blue"}]}`, []string{"red"}, `{"f":"r"}`, "  1  Red\n"},
		{"numbers as values", `{"type":"string","enum":["2","1"]}`, []string{"1"}, `{"f":"1"}`, ""},
		{"several", `{"type":"array","items":{"type":"string","enum":["a","b","c"]},"minItems":2,"default":["a","c"]}`, []string{"b", "1, c,,1"}, `{"f":["a","c"]}`, "[a, c] >   it must be at least 2 choices"},
		{"several titled", `{"type":"array","items":{"anyOf":[{"const":"a","title":"Ay"},{"const":"b","title":"Bee"}]},"maxItems":1}`, []string{"1,2", "bee"}, `{"f":["b"]}`, "it must be at most 1 choices"},
		{"several of anything", `{"type":"array","items":{"type":"string"}}`, []string{"x, y"}, `{"f":["x","y"]}`, ""},
		{"unknown type", `{"type":"object"}`, []string{"{", `{"a":1.0}`}, `{"f":{"a":1.0}}`, "this must be JSON"},
		{"hostile", `{"type":"string","title":"\u001b[2J\nx","description":"\u001b]52;c;x\u0007","default":"\u001b[1m"}`, []string{"x"}, `{"f":"x"}`, "\ufffd[2J x (optional)\n\ufffd]52;c;x\ufffd\n[\ufffd[1m] > "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schema := mcp.JSON(`{"type":"object","properties":{"f":` + tt.field + `}}`)
			result, shown := put(t, &mcp.ElicitParams{Message: "Well?", RequestedSchema: schema}, append(tt.typed, "yes", "")...)
			if result.Action != mcp.Accept || string(result.Content) != tt.want {
				t.Errorf("got  %s %s\nwant %s\n%s", result.Action, result.Content, tt.want, shown)
			}
			if !strings.Contains(shown, tt.shown) {
				t.Errorf("it shows\n%s\nwithout\n%s", shown, tt.shown)
			}
			if strings.ContainsRune(shown, '\x1b') {
				t.Errorf("it shows %q", shown)
			}
		})
	}
}

// TestFormsOfManyFieldsAreDeclined: a form is put whole or not at all.
func TestFormsOfManyFieldsAreDeclined(t *testing.T) {
	for _, n := range []int{200, 201} {
		var properties []string
		for i := range n {
			properties = append(properties, fmt.Sprintf(`"f%d":{"type":"integer","default":%d}`, i, i))
		}
		schema := mcp.JSON(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)
		lines := append(make([]string, n), "yes", "")
		result, shown := put(t, &mcp.ElicitParams{Message: "Well?", RequestedSchema: schema}, lines...)
		switch {
		case n == 200 && (result.Action != mcp.Accept || !strings.HasSuffix(string(result.Content), `"f199":199}`)):
			t.Errorf("%d fields: %s %s", n, result.Action, result.Content)
		case n == 201 && (result.Action != mcp.Decline || !strings.Contains(shown, "asks for 201 things, and the limit MaxFields is 200")):
			t.Errorf("%d fields: %s\n%s", n, result.Action, shown)
		}
	}
}

func TestFormsCanBeEditedDeclinedAndLeft(t *testing.T) {
	schema := mcp.JSON(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]}`)
	for _, tt := range []struct {
		name    string
		lines   []string
		action  mcp.ElicitAction
		content string
	}{
		{"required first", []string{"", "7", "x", ""}, mcp.Accept, `{"b":7,"a":"x"}`},
		{"edited", []string{"7", "x", "e", "8", "", "y"}, mcp.Accept, `{"b":8,"a":"x"}`},
		{"no word of these", []string{"7", "x", "perhaps", "n"}, mcp.Decline, ``},
		{"left", []string{"7"}, mcp.Cancel, ``},
		{"left at once", nil, mcp.Cancel, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result, shown := put(t, &mcp.ElicitParams{Message: "Well?", RequestedSchema: schema}, append(tt.lines, "")...)
			if result.Action != tt.action || string(result.Content) != tt.content {
				t.Errorf("got %s %s\n%s", result.Action, result.Content, shown)
			}
		})
	}
}

// A page is shown, and nothing is done about it.
func TestPagesAreShownOnly_B130(t *testing.T) {
	for _, tt := range []struct {
		url, typed string
		want       mcp.ElicitAction
		shown      string
	}{
		{"https://example.com/pay?x=1", "y", mcp.Accept, "which was not opened:\n\n  https://example.com/pay?x=1\n\nLook whether you trust example.com."},
		{"https://example.com/pay", "", mcp.Decline, ""},
		{"https://example.com/pay", "n", mcp.Decline, ""},
		{"file:///bin/x", "y", mcp.Decline, "This is no address of a web page. It is declined."},
		{"javascript:alert(1)", "y", mcp.Decline, "It is declined."},
		{"https://example.com/\x1b[2J", "y", mcp.Decline, "https://example.com/\ufffd[2J"},
		{"https://user@evil.example/", "y", mcp.Accept, "trust evil.example."},
	} {
		t.Run(tt.url+tt.typed, func(t *testing.T) {
			result, shown := put(t, &mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "Pay", URL: tt.url}, tt.typed, "")
			if result.Action != tt.want || result.Content != nil || !strings.Contains(shown, tt.shown) {
				t.Errorf("got %s %s\n%s", result.Action, result.Content, shown)
			}
		})
	}
}

func TestQuestionsEndWithTheirCall(t *testing.T) {
	typed, typing := io.Pipe()
	defer func() { _ = typing.Close() }()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := cli.Ask(ctx, typed, io.Discard, &mcp.ElicitParams{Message: "Well?"}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
