package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/cli"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// search is a tool that takes one of everything.
var search = &mcp.Tool{Name: "search", InputSchema: mcp.JSON(`{
	"type":"object",
	"required":["query"],
	"properties":{
		"query":{"type":"string"},
		"id":{"type":"integer"},
		"ratio":{"type":"number"},
		"deep":{"type":"boolean"},
		"mode":{"enum":["fast","slow",3]},
		"tags":{"type":"array","items":{"type":"string"}},
		"ids":{"type":"array","items":{"type":"integer"}},
		"options":{"$ref":"#/$defs/options"},
		"limit":{"type":["integer","null"]},
		"note":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"port":{"anyOf":[{"type":"integer"},{"type":"null"}]},
		"any":{}
	},
	"$defs":{"options":{"type":"object"}}}`)}

func TestArguments_B017(t *testing.T) {
	for _, tt := range []struct{ words, want string }{
		{"query=42", `{"query":"42"}`},
		{"query=", `{"query":""}`},
		{"query=a=b", `{"query":"a=b"}`},
		{"query=ü id=9007199254740993", `{"query":"ü","id":9007199254740993}`},
		{"query=x id=-9223372036854775808", `{"query":"x","id":-9223372036854775808}`},
		{"query=x id=123456789012345678901234567890", `{"query":"x","id":123456789012345678901234567890}`},
		{"query=x id=3.0", `{"query":"x","id":3.0}`},
		{"query=x ratio=1e400", `{"query":"x","ratio":1e400}`},
		{"query=x ratio=0.10", `{"query":"x","ratio":0.10}`},
		{"query=x deep=true", `{"query":"x","deep":true}`},
		{"query=x mode=slow", `{"query":"x","mode":"slow"}`},
		{"query=x mode=3", `{"query":"x","mode":3}`},
		{"query=x tags=a", `{"query":"x","tags":["a"]}`},
		{"query=x tags=a deep=false tags=b", `{"query":"x","tags":["a","b"],"deep":false}`},
		{`query=x tags=["a","b"]`, `{"query":"x","tags":["a","b"]}`},
		{"query=x ids=1 ids=9007199254740993", `{"query":"x","ids":[1,9007199254740993]}`},
		{`query=x options={"a":1.50}`, `{"query":"x","options":{"a":1.50}}`},
		{"query=x limit=null", `{"query":"x","limit":null}`},
		{"query=x limit=7", `{"query":"x","limit":7}`},
		{"query=x note=null", `{"query":"x","note":"null"}`},
		{"query=x port=null", `{"query":"x","port":null}`},
		{"query=x any=5", `{"query":"x","any":"5"}`},
		{"query=x any:=5", `{"query":"x","any":5}`},
		{`query:="\u00e9"`, `{"query":"\u00e9"}`},
		{"query:=7", `{"query":7}`}, // the server decides
	} {
		t.Run(tt.words, func(t *testing.T) {
			got, err := cli.Arguments(search, "", strings.Fields(tt.words)...)
			if err != nil || got != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestArgumentsAddToAnObject(t *testing.T) {
	got, err := cli.Arguments(search, `{"z":1.0,"id":1,"query":"\u0061"}`, "id=2", "deep=true")
	if err == nil || !strings.Contains(err.Error(), `no argument "z"`) {
		t.Errorf("%v", err)
	}
	if want := `{"z":1.0,"id":2,"query":"\u0061","deep":true}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestArgumentsThatCannotBe(t *testing.T) {
	for _, tt := range []struct{ object, words, want, hint string }{
		{"", "", "search needs query", "the tool is search(query: string,"},
		{"", "query=x qeury=y", `search takes no argument "qeury"`, "did you mean query? the tool is search("},
		{"", "query=x id=many", `id must be an integer, not "many"`, ""},
		{"", "query=x id=1.5", `id must be an integer, not "1.5"`, ""},
		{"", "query=x id=1e3", `id must be an integer, not "1e3"`, ""},
		{"", "query=x id=0x10", `id must be an integer, not "0x10"`, ""},
		{"", "query=x ratio=NaN", `ratio must be a number, not "NaN"`, ""},
		{"", "query=x deep=yes", `deep must be a boolean, not "yes"`, ""},
		{"", "query=x mode=fats", `mode must be fast, slow or 3, not "fats"`, "did you mean fast?"},
		{"", "query=x ids=a", `ids must be an integer, not "a"`, ""},
		{"", "query=x options=1", `options must be an object, not "1"`, ""},
		{"", "query=x query=y", "query is given twice", ""},
		{"", "query=x tags=a tags:=[]", "tags is given twice", ""},
		{"", "query", `"query" is no argument`, "the forms are NAME=TEXT"},
		{"", "=x", `"=x" is no argument`, ""},
		{"", ":=x", `":=x" is no argument`, ""},
		{"", "any:=x", "any: invalid JSON", "quotes of both kinds"},
		{"", "any:=1,", "any: invalid JSON", ""},
		{"", "query=\xff", "query: the value is not UTF-8", ""},
		{"", "query=@nowhere", "query: open nowhere: no such file", ""},
		{"[]", "", "--args must be a JSON object", `as in --args '{"name": "value"}'`},
		{`{"query":"x","query":"y"}`, "", `--args: duplicate object member name: "query" at byte 13`, ""},
		{"", `query=x any:=[{"a":1,"\u0061":2}]`, `any: duplicate object member name: "a" at byte 8`, ""},
		{"{", "", "--args: invalid JSON", ""},
	} {
		t.Run(tt.object+tt.words, func(t *testing.T) {
			got, err := cli.Arguments(search, tt.object, strings.Fields(tt.words)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || cli.CodeOf(err) != cli.ExitUsage {
				t.Fatalf("got %s, %v, want %s", got, err, tt.want)
			}
			if hint := cli.HintOf(err); !strings.Contains(hint, tt.hint) {
				t.Errorf("hint %q, want %q", hint, tt.hint)
			}
		})
	}
}

func TestArgumentsOfFiles(t *testing.T) {
	dir := t.TempDir()
	text, number, bytes := filepath.Join(dir, "text"), filepath.Join(dir, "number"), filepath.Join(dir, "bytes")
	for name, content := range map[string]string{text: "two\nlines\n", number: " 9007199254740993\n", bytes: "\xff\xfe"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := cli.Arguments(search, "", "query=@"+text, "id=@"+number, "any:=@"+number)
	if want := `{"query":"two\nlines\n","id":9007199254740993,"any":9007199254740993}`; err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if _, err := cli.Arguments(search, "", "query=@"+bytes); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("got %v", err)
	}
}

// Only what a schema is likely to mean is refused.
func TestOpenObjectsTakeAnything(t *testing.T) {
	for _, tt := range []struct {
		schema string
		open   bool
	}{
		{`{"type":"object"}`, true},
		{`{}`, true},
		{`true`, true},
		{`{"type":"object","properties":{}}`, true},
		{`{"type":"object","properties":{},"additionalProperties":false}`, false},
		{`{"type":"object","properties":{"b":{}}}`, false},
		{`{"type":"object","properties":{"b":{}},"additionalProperties":true}`, true},
		{`{"type":"object","properties":{"b":{}},"additionalProperties":{"type":"string"}}`, true},
		{`{"type":"object","properties":{"b":{}},"patternProperties":{".":{}}}`, true},
		{`{"type":"object","properties":{"b":{}},"allOf":[{}]}`, true},
		{`{"$ref":"#/nowhere"}`, true},
		{`{"$ref":"https://example.com/schema"}`, true},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, true},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"b":{}}}}}`, false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"properties":{"b":{}}}}}`, false},
	} {
		t.Run(tt.schema, func(t *testing.T) {
			_, err := cli.Arguments(&mcp.Tool{InputSchema: mcp.JSON(tt.schema)}, "", "a=1")
			if (err == nil) != tt.open {
				t.Errorf("got %v", err)
			}
		})
	}
}
