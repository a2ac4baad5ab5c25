package mcp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// tool returns a tool whose input schema has these members.
func tool(name, schema string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object",%s},"x":1.0}`, name, schema)
}

func toolList(tools ...string) string { return `{"tools":[` + strings.Join(tools, ",") + `]}` }

// region is the schema of a parameter that is mirrored.
const region = `{"type":"string","x-mcp-header":"Region"}`

func TestValidAnnotationsAreLearnt(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		want         []mcp.ParamHeader
	}{
		{"B119 Region", `"properties":{"region":` + region + `}`, []mcp.ParamHeader{{Name: "Region", Path: []string{"region"}, Type: "string"}}},
		{
			"B119 all types", `"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"x-mcp-header":"B","type":"integer"},"c":{"type":"boolean","x-mcp-header":"C"}}`,
			[]mcp.ParamHeader{{Name: "A", Path: []string{"a"}, Type: "string"}, {Name: "B", Path: []string{"b"}, Type: "integer"}, {Name: "C", Path: []string{"c"}, Type: "boolean"}},
		},
		{
			"B119 nested properties", `"properties":{"a":{"type":"object","properties":{"b":{"properties":{"c":{"type":"integer","x-mcp-header":"C"}}},"d":{"type":"string","x-mcp-header":"D"}}},"e":` + region + `}`,
			[]mcp.ParamHeader{
				{Name: "C", Path: []string{"a", "b", "c"}, Type: "integer"},
				{Name: "D", Path: []string{"a", "d"}, Type: "string"},
				{Name: "Region", Path: []string{"e"}, Type: "string"},
			},
		},
		{
			"B119 every character of a token", `"properties":{"a":{"type":"string","x-mcp-header":"aZ09!#$%&'*+-.^_` + "`" + `|~"}}`,
			[]mcp.ParamHeader{{Name: "aZ09!#$%&'*+-.^_`|~", Path: []string{"a"}, Type: "string"}},
		},
		{
			"B119 parameters named like keywords", `"properties":{"properties":{"type":"string","x-mcp-header":"P"},"items":{"type":"string","x-mcp-header":"I"},"const":{"type":"string","x-mcp-header":"C"}}`,
			[]mcp.ParamHeader{{Name: "P", Path: []string{"properties"}, Type: "string"}, {Name: "I", Path: []string{"items"}, Type: "string"}, {Name: "C", Path: []string{"const"}, Type: "string"}},
		},
		{"B119 written with escapes", `"properties":{"region":{"type":"string","x\u002dmcp-header":"Region"}}`, []mcp.ParamHeader{{Name: "Region", Path: []string{"region"}, Type: "string"}}},
		{"B119 beside other keywords", `"properties":{"region":` + region + `,"b":{"type":"array","items":{"type":"string"},"anyOf":[{},true]}},"required":["region"]`, []mcp.ParamHeader{{Name: "Region", Path: []string{"region"}, Type: "string"}}},
		{"none", `"properties":{"a":{"type":"string"}}`, nil},
		{"B119 a parameter of the annotation's name", `"properties":{"x-mcp-header":{"type":"string"}}`, nil},
		{"B119 in const", `"properties":{"a":{"const":{"x-mcp-header":""}}}`, nil},
		{"B119 in enum", `"properties":{"a":{"enum":[{"x-mcp-header":"A"},"x-mcp-header"]}}`, nil},
		{"B119 in default", `"properties":{"a":{"type":"object","default":{"x-mcp-header":1}}}`, nil},
		{"B119 in examples", `"properties":{"a":{"examples":[{"x-mcp-header":1}]}}`, nil},
		{"B119 in a description", `"properties":{"a":{"type":"string","description":"no x-mcp-header here"}},"required":["x-mcp-header"]`, nil},
		{"B119 as a name in dependentRequired", `"dependentRequired":{"x-mcp-header":["a"]}`, nil},
		{"B119 as a name in $defs", `"$defs":{"x-mcp-header":{"type":"string"}}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h mcp.ToolHeaders
			in := toolList(tool("t", c.schema))
			out, bad := h.Learn(*result(t, in))
			if bad != nil || string(out.Raw()) != in {
				t.Fatalf("%v: got %s", bad, out.Raw())
			}
			got, ok := h.Lookup("t")
			if diff := cmp.Diff(c.want, got); !ok || diff != "" {
				t.Errorf("known: %t\n%s", ok, diff)
			}
		})
	}
}

func TestToolWithAnInvalidAnnotationIsLeftOut(t *testing.T) {
	const bad = `{"type":"string","x-mcp-header":"Bad"}`
	for _, c := range []struct{ name, schema string }{
		{"B119 duplicates in another case", `"properties":{"a":` + region + `,"b":{"type":"string","x-mcp-header":"region"}}`},
		{"B119 duplicates at two depths", `"properties":{"a":` + region + `,"b":{"properties":{"c":` + region + `}}}`},
		{"B119 empty", `"properties":{"a":{"type":"string","x-mcp-header":""}}`},
		{"B119 line break", `"properties":{"a":{"type":"string","x-mcp-header":"X\r\nY"}}`},
		{"B119 space", `"properties":{"a":{"type":"string","x-mcp-header":"X Y"}}`},
		{"B119 colon", `"properties":{"a":{"type":"string","x-mcp-header":"X:Y"}}`},
		{"B119 not ASCII", `"properties":{"a":{"type":"string","x-mcp-header":"Région"}}`},
		{"B119 NUL", `"properties":{"a":{"type":"string","x-mcp-header":"\u0000"}}`},
		{"B119 no string", `"properties":{"a":{"type":"string","x-mcp-header":true}}`},
		{"B119 null", `"properties":{"a":{"type":"string","x-mcp-header":null}}`},
		{"B119 on a number", `"properties":{"a":{"type":"number","x-mcp-header":"A"}}`},
		{"B119 on an object", `"properties":{"a":{"type":"object","x-mcp-header":"A"}}`},
		{"B119 on an array", `"properties":{"a":{"type":"array","x-mcp-header":"A"}}`},
		{"B119 on null", `"properties":{"a":{"type":"null","x-mcp-header":"A"}}`},
		{"B119 on no type", `"properties":{"a":{"x-mcp-header":"A"}}`},
		{"B119 at the root", `"x-mcp-header":"A"`},
		{"B119 at a root that is no object", `"type":"string","x-mcp-header":"A"`},
		{"B119 under items", `"properties":{"a":{"type":"array","items":` + bad + `}}`},
		{"B119 under properties of items", `"properties":{"a":{"items":{"properties":{"b":` + bad + `}}}}`},
		{"B119 under prefixItems", `"properties":{"a":{"prefixItems":[{},` + bad + `]}}`},
		{"B119 under contains", `"properties":{"a":{"contains":` + bad + `}}`},
		{"B119 under oneOf", `"properties":{"a":{"oneOf":[` + bad + `]}}`},
		{"B119 under anyOf", `"anyOf":[{"properties":{"a":` + bad + `}}]`},
		{"B119 under allOf", `"allOf":[{"properties":{"a":` + bad + `}}]`},
		{"B119 under not", `"not":{"properties":{"a":` + bad + `}}`},
		{"B119 under if", `"if":{"properties":{"a":` + bad + `}}`},
		{"B119 under then", `"then":{"properties":{"a":` + bad + `}}`},
		{"B119 under else", `"else":{"properties":{"a":` + bad + `}}`},
		{"B119 under $ref", `"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":` + bad + `}`},
		{"B119 under $ref to a name like a keyword", `"properties":{"a":{"$ref":"#/$defs/const"}},"$defs":{"const":` + bad + `}`},
		{"B119 under $ref to a name like properties", `"$defs":{"properties":` + bad + `}`},
		{"B119 under definitions", `"definitions":{"a":{"properties":{"b":` + bad + `}}}`},
		{"B119 under additionalProperties", `"additionalProperties":` + bad},
		{"B119 under patternProperties", `"patternProperties":{"enum":` + bad + `}`},
		{"B119 under an unknown keyword", `"x-vendor":{"a":[` + bad + `]}`},
		{"B119 written with escapes", `"properties":{"a":{"type":"number","\u0078-mcp-header":"A"}}`},
		{"B119 names without end", `"properties":{"` + strings.Repeat("a", 64<<10) + `":` + region + `}`},
		{"B119 valid and invalid", `"properties":{"a":` + region + `,"b":{"type":"number","x-mcp-header":"B"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h mcp.ToolHeaders
			before := `{ "name" : "before", "inputSchema":{"properties":{"r":` + region + `}}, "n":1E2 }`
			const after = `{"name":"after","inputSchema":{"type":"object"},"n":9007199254740993}`
			in := `{"ttlMs":0,"tools":[` + before + "\n,\n" + tool("t", c.schema) + " , " + after + `],"nextCursor":"c"}`
			out, bad := h.Learn(*result(t, in))
			if len(bad) != 1 || bad["t"] == nil {
				t.Fatalf("bad tools: %v", bad)
			}
			if reason := bad["t"].Error(); strings.ContainsAny(reason, "\r\n\x00") || !strings.Contains(reason, "x-mcp-header") {
				t.Errorf("reason %q", reason)
			}
			if want := `{"ttlMs":0,"tools":[` + before + "," + after + `],"nextCursor":"c"}`; string(out.Raw()) != want {
				t.Errorf("got  %s\nwant %s", out.Raw(), want)
			}
			if _, ok := h.Lookup("t"); ok {
				t.Error("it is known all the same")
			}
			if got, _ := h.Lookup("before"); len(got) != 1 {
				t.Errorf("the tool before it has the headers %v", got)
			}
			if got, ok := h.Lookup("after"); len(got) != 0 || !ok {
				t.Errorf("the tool after it is known: %t, with %v", ok, got)
			}
		})
	}
}

func TestListWithNothingToLeaveOutComesBackAsItIs(t *testing.T) {
	for _, c := range []struct{ name, in string }{
		{"B119 without annotations", "{ \"tools\" : [\n{\"name\":\"a\",\"inputSchema\":{}} , {\"name\":\"b\"}\r\n] }"},
		{"B119 valid ones", "{ \"tools\" : [\n" + tool("a", `"properties":{"r":`+region+`}`) + " ] }"},
		{"empty", `{"tools":[]}`},
		{"no array", `{"tools":{"name":"x-mcp-header"}}`},
		{"no tools", `{"x-mcp-header":""}`},
		{"absent", ``},
		{"things that are no tools", `{"tools":[1,null,"x-mcp-header",{"name":1,"x-mcp-header":""},[]]}`},
		{"annotation outside the input schema", `{"tools":[{"name":"a","outputSchema":{"properties":{"r":{"type":"number","x-mcp-header":""}}}}]}`},
		{"schema that is none", `{"tools":[{"name":"x-mcp-header","inputSchema":null},{"name":"b","inputSchema":{"properties":[1],"x":"x-mcp-header"}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h mcp.ToolHeaders
			in := result(t, c.in)
			out, bad := h.Learn(*in)
			if bad != nil || string(out.Raw()) != c.in {
				t.Errorf("%v: got %s", bad, out.Raw())
			}
		})
	}
}

func TestWhatHasNoNameStaysOnce(t *testing.T) {
	var h mcp.ToolHeaders
	const nameless = `{"name":1,"inputSchema":{}}`
	out, bad := h.Learn(*result(t, toolList(nameless, tool("t", `"properties":{"a":{"type":"number","x-mcp-header":"A"}}`))))
	if string(out.Raw()) != `{"tools":[`+nameless+`]}` || len(bad) != 1 {
		t.Errorf("B119: %v: got %s", bad, out.Raw())
	}
	if _, known := h.Lookup(""); known {
		t.Error("a tool without a name is known")
	}
}

func TestListOfInvalidToolsAloneBecomesEmpty(t *testing.T) {
	var h mcp.ToolHeaders
	invalid := `"properties":{"a":{"type":"number","x-mcp-header":"A"}}`
	out, bad := h.Learn(*result(t, toolList(tool("a", invalid), tool("b", invalid))))
	if string(out.Raw()) != `{"tools":[]}` || len(bad) != 2 {
		t.Errorf("B119: %v: got %s", bad, out.Raw())
	}
}

func TestAnnotationsOfAToolAreReplacedWhenItChanges(t *testing.T) {
	var h mcp.ToolHeaders
	for _, step := range []struct {
		name, schema string
		want         []string
		known        bool
	}{
		{"B119 annotated", `"properties":{"a":` + region + `}`, []string{"Region"}, true},
		{"B119 annotated otherwise", `"properties":{"a":{"type":"string","x-mcp-header":"Zone"}}`, []string{"Zone"}, true},
		{"B119 no longer annotated", `"properties":{"a":{"type":"string"}}`, nil, true},
		{"B119 annotated again", `"properties":{"a":` + region + `}`, []string{"Region"}, true},
		{"B119 annotated wrongly", `"properties":{"a":{"type":"string","x-mcp-header":""}}`, nil, false},
	} {
		h.Learn(*result(t, toolList(tool("other", `"properties":{}`), tool("t", step.schema))))
		headers, known := h.Lookup("t")
		var got []string
		for _, header := range headers {
			got = append(got, header.Name)
		}
		if !slices.Equal(got, step.want) || known != step.known {
			t.Errorf("%s: known: %t, with %q", step.name, known, got)
		}
	}
	if _, ok := h.Lookup("unseen"); ok {
		t.Error("a tool that was never seen is known")
	}
}

// manyTools returns a list of n tools with names that begin with prefix.
func manyTools(prefix, schema string, n int) string {
	tools := make([]string, n)
	for i := range tools {
		tools[i] = tool(fmt.Sprint(prefix, i), schema)
	}
	return toolList(tools...)
}

func TestOnlySoManyToolsAreRemembered(t *testing.T) {
	const annotated = `"properties":{"a":` + region + `}`
	var h mcp.ToolHeaders
	h.Learn(*result(t, manyTools("plain", `"properties":{}`, mcp.MaxAnnotatedTools+1)))
	_, bad := h.Learn(*result(t, manyTools("tool", annotated, mcp.MaxAnnotatedTools+1)))
	if bad != nil {
		t.Fatalf("%d tools are left out", len(bad))
	}
	last := mcp.MaxAnnotatedTools - 1
	for name, want := range map[string]bool{
		"tool0": true, fmt.Sprint("tool", last): true, fmt.Sprint("tool", last+1): false,
		"plain0": true, fmt.Sprint("plain", last): true, fmt.Sprint("plain", last+1): false,
	} {
		if _, ok := h.Lookup(name); ok != want {
			t.Errorf("%s is known: %t", name, ok)
		}
	}
	// One that is annotated meanwhile is not known for one that is not.
	h.Learn(*result(t, toolList(tool("plain0", annotated))))
	if _, known := h.Lookup("plain0"); known {
		t.Error("plain0 is known, although its headers are not")
	}
	// What is remembered still follows its tool, and what is forgotten makes room.
	h.Learn(*result(t, toolList(tool("tool0", `"properties":{"a":{"type":"string","x-mcp-header":"Zone"}}`))))
	if got, _ := h.Lookup("tool0"); len(got) != 1 || got[0].Name != "Zone" {
		t.Errorf("tool0 has the headers %v", got)
	}
	h.Learn(*result(t, toolList(tool("tool0", `"properties":{"a":{"type":"string","x-mcp-header":""}}`), tool("new", annotated))))
	if got, _ := h.Lookup("new"); len(got) != 1 {
		t.Errorf("the new tool has the headers %v", got)
	}
}

func TestToolsThatAreForgottenMakeRoom(t *testing.T) {
	var h mcp.ToolHeaders
	const annotated = `"properties":{"a":` + region + `}`
	h.Learn(*result(t, manyTools("tool", annotated, mcp.MaxAnnotatedTools)))
	h.Learn(*result(t, toolList(tool("plain", `"properties":{}`))))
	h.Forget("tool1", "plain", "none")
	h.Learn(*result(t, toolList(tool("new", annotated))))
	for name, want := range map[string]bool{"tool0": true, "tool1": false, "plain": false, "new": true} {
		if _, known := h.Lookup(name); known != want {
			t.Errorf("%s is known: %t", name, known)
		}
	}
}

func TestToolsWithLongNamesAreNotRemembered(t *testing.T) {
	var h mcp.ToolHeaders
	longest := strings.Repeat("n", 1<<10)
	for _, schema := range []string{`"properties":{}`, `"properties":{"a":` + region + `}`} {
		out, bad := h.Learn(*result(t, toolList(tool(longest, schema), tool(longest+"n", schema))))
		if tools := out.Get("tools"); bad != nil || !strings.Contains(string(tools.Raw()), longest+"n") {
			t.Errorf("left out: %d", len(bad))
		}
		if _, known := h.Lookup(longest); !known {
			t.Error("the longest is not remembered")
		}
		if _, known := h.Lookup(longest + "n"); known {
			t.Error("a longer one is remembered")
		}
	}
}

func TestHeadersAreLearntAndLookedUpAtOnce(t *testing.T) {
	var h mcp.ToolHeaders
	list := result(t, manyTools("tool", `"properties":{"a":`+region+`}`, 20))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { h.Learn(*list) })
		wg.Go(func() {
			for i := range 20 {
				if got, ok := h.Lookup(fmt.Sprint("tool", i)); ok && len(got) != 1 {
					t.Errorf("tool%d has the headers %v", i, got)
				}
			}
		})
	}
	wg.Wait()
}

func TestLearntHeadersOutliveTheirList(t *testing.T) {
	var h mcp.ToolHeaders
	raw := []byte(toolList(tool("t", `"properties":{"a":`+region+`}`)))
	h.Learn(mcp.RawResult(raw))
	clear(raw)
	got, _ := h.Lookup("t")
	if diff := cmp.Diff([]mcp.ParamHeader{{Name: "Region", Path: []string{"a"}, Type: "string"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestValueOfAParameterHeader(t *testing.T) {
	str := mcp.ParamHeader{Name: "S", Path: []string{"a"}, Type: "string"}
	integer := mcp.ParamHeader{Name: "I", Path: []string{"a"}, Type: "integer"}
	boolean := mcp.ParamHeader{Name: "B", Path: []string{"a"}, Type: "boolean"}
	nested := mcp.ParamHeader{Name: "N", Path: []string{"a", "b"}, Type: "string"}
	for _, c := range []struct {
		name      string
		header    mcp.ParamHeader
		arguments string
		want      string
		there     bool
		refused   bool
	}{
		{"B119 null", str, `{"a":null}`, "", false, false},
		{"B119 absent", str, `{"b":"x"}`, "", false, false},
		{"B031 arguments absent", str, ``, "", false, false},
		{"B031 arguments null", str, `null`, "", false, false},
		{"B031 arguments empty", str, `{}`, "", false, false},
		{"B031 arguments an array", str, `["a"]`, "", false, false},
		{"B031 arguments a string", str, `"a"`, "", false, false},
		{"B119 string", str, `{"a":"us-west1"}`, "us-west1", true, false},
		{"B119 string empty", str, `{"a":""}`, "", true, false},
		{"B119 string escaped", str, `{"\u0061":"\u4e16\n"}`, "世\n", true, false},
		{"B119 string that looks like a number", str, `{"a":"42"}`, "42", true, false},
		{"B119 number for a string", str, `{"a":42}`, "", true, true},
		{"B119 42", integer, `{"a":42}`, "42", true, false},
		{"B119 -7", integer, `{"a":-7}`, "-7", true, false},
		{"B119 0", integer, `{"a":0}`, "0", true, false},
		{"B119 -0", integer, `{"a":-0}`, "0", true, false},
		{"B119 1e2", integer, `{"a":1e2}`, "100", true, false},
		{"B119 42.0", integer, `{"a":42.0}`, "42", true, false},
		{"B119 largest", integer, `{"a":9007199254740991}`, "9007199254740991", true, false},
		{"B119 smallest", integer, `{"a":-9007199254740991}`, "-9007199254740991", true, false},
		{"B119 2^53", integer, `{"a":9007199254740992}`, "", true, true},
		{"B119 9007199254740993", integer, `{"a":9007199254740993}`, "", true, true},
		{"B119 -9007199254740993", integer, `{"a":-9007199254740993}`, "", true, true},
		{"B119 2^63", integer, `{"a":9223372036854775808}`, "", true, true},
		{"B119 1e300", integer, `{"a":1e300}`, "", true, true},
		{"B119 1e999", integer, `{"a":1e999}`, "", true, true},
		{"B119 a fraction that floats do not hold", integer, `{"a":4503599627370497.3}`, "", true, true},
		{"B119 a fraction at the largest", integer, `{"a":9007199254740991.4}`, "", true, true},
		{"B119 a fraction too small for floats", integer, `{"a":1e-400}`, "", true, true},
		{"B119 10e-1", integer, `{"a":10e-1}`, "1", true, false},
		{"B119 of two values none", str, `{"a":"x","\u0061":"y"}`, "", true, true},
		{"B119 of two values on the way none", nested, `{"a":{"b":"x"},"a":{"b":"y"}}`, "", true, true},
		{"B119 two values of another parameter", str, `{"b":1,"a":"x","b":2}`, "x", true, false},
		{"B119 1.5", integer, `{"a":1.5}`, "", true, true},
		{"B119 string for an integer", integer, `{"a":"42"}`, "", true, true},
		{"B119 true", boolean, `{"a":true}`, "true", true, false},
		{"B119 false", boolean, `{"a":false}`, "false", true, false},
		{"B119 string for a boolean", boolean, `{"a":"true"}`, "", true, true},
		{"B119 number for a boolean", boolean, `{"a":1}`, "", true, true},
		{"B119 nested", nested, `{"a":{"b":"x"},"b":"y"}`, "x", true, false},
		{"B119 nested absent", nested, `{"a":{},"b":"y"}`, "", false, false},
		{"B119 nested in null", nested, `{"a":null}`, "", false, false},
		{"B119 nested in a string", nested, `{"a":"b"}`, "", false, false},
		{"B119 nested in an array", nested, `{"a":[{"b":"x"}]}`, "", false, false},
		{"B119 object for a string", str, `{"a":{"b":"x"}}`, "", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, there, err := c.header.Value(value(t, c.arguments))
			if got != c.want || there != c.there || (err != nil) != c.refused {
				t.Errorf("got %q, %t, %v", got, there, err)
			}
			if err != nil && !strings.Contains(err.Error(), mcp.HeaderPrefix+c.header.Name) {
				t.Errorf("the error does not name the header: %v", err)
			}
		})
	}
}

func TestHeaderIsComparedWithTheBody(t *testing.T) {
	for _, c := range []struct {
		name, kind, header, body string
		want                     bool
	}{
		{"B119 same string", "string", "a", "a", true},
		{"B119 another case", "string", "A", "a", false},
		{"B119 strings are no numbers", "string", "42.0", "42", false},
		{"B119 same integer", "integer", "42", "42", true},
		{"B119 42.0", "integer", "42.0", "42", true},
		{"B119 4.2e1", "integer", "4.2e1", "42", true},
		{"B119 -7.00", "integer", "-7.00", "-7", true},
		{"B119 -0", "integer", "-0", "0", true},
		{"B119 largest", "integer", "9007199254740991.0", "9007199254740991", true},
		{"B119 another integer", "integer", "43", "42", false},
		{"B119 fraction", "integer", "42.5", "42", false},
		{"B119 rounds to the body", "integer", "9007199254740993", "9007199254740992", false},
		{"B119 empty", "integer", "", "42", false},
		{"B119 no number", "integer", "forty-two", "42", false},
		{"B119 hexadecimal", "integer", "0x2ap0", "42", false},
		{"B119 plus sign", "integer", "+42", "42", false},
		{"B119 leading zero", "integer", "042", "42", false},
		{"B119 two numbers", "integer", "42 42", "42", false},
		{"B119 infinite", "integer", "Inf", "42", false},
		{"B119 boolean", "boolean", "true", "true", true},
		{"B119 boolean in another case", "boolean", "True", "true", false},
		{"B119 boolean as number", "boolean", "1", "true", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := mcp.ParamHeader{Name: "A", Path: []string{"a"}, Type: c.kind}
			if got := h.Matches(c.header, c.body); got != c.want {
				t.Errorf("%q matches %q: %t", c.header, c.body, got)
			}
		})
	}
}

func TestCallMirrorsItsParameters(t *testing.T) {
	var h mcp.ToolHeaders
	h.Learn(*result(t, toolList(tool("t", `"properties":{"r":`+region+`,"n":{"type":"integer","x-mcp-header":"Count"},"o":{"properties":{"b":{"type":"boolean","x-mcp-header":"Dry-Run"}}}}`))))
	headers, _ := h.Lookup("t")
	for _, c := range []struct {
		name, params string
		want         map[string]string
	}{
		{
			"B119 all", `{"name":"t","arguments":{"r":"us-west1","n":42,"o":{"b":true}}}`,
			map[string]string{"Mcp-Param-Region": "us-west1", "Mcp-Param-Count": "42", "Mcp-Param-Dry-Run": "true"},
		},
		{"B119 encoded", `{"arguments":{"r":"Hello, 世界"}}`, map[string]string{"Mcp-Param-Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}},
		{"B119 line break", `{"arguments":{"r":"a\r\nX: y"}}`, map[string]string{"Mcp-Param-Region": "=?base64?YQ0KWDogeQ==?="}},
		{"B119 null and absent", `{"arguments":{"r":null}}`, map[string]string{}},
		{"B119 empty string", `{"arguments":{"r":""}}`, map[string]string{"Mcp-Param-Region": ""}},
		{"B031 no arguments", `{"name":"t"}`, map[string]string{}},
		{"B031 no params", ``, map[string]string{}},
		{"B119 beyond 2^53-1", `{"arguments":{"r":"x","n":9007199254740993}}`, nil},
		{"B119 another type", `{"arguments":{"r":true}}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := value(t, c.params)
			got, err := mcp.Mirror(headers, &params)
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for i := range headers { // what is mirrored is also accepted
				if header, ok := got[mcp.HeaderPrefix+headers[i].Name]; ok {
					text, decoded := mcp.DecodeHeader(header)
					body, _, err := headers[i].Value(params.Get("arguments"))
					if !decoded || err != nil || !headers[i].Matches(text, body) {
						t.Errorf("%s is refused: %v", header, err)
					}
				}
			}
		})
	}
	keys := mcp.Sorted(map[string]string{"b": "", "a": "", "c": ""})
	if !slices.Equal(keys, []string{"a", "b", "c"}) {
		t.Errorf("sorted: %q", keys)
	}
}

func TestRefusedValueDoesNotSayWhatItIs(t *testing.T) {
	h := mcp.ParamHeader{Name: "Key", Path: []string{"k"}, Type: "integer"}
	_, _, err := h.Value(value(t, `{"k":"secret"}`))
	if err == nil || strings.Contains(err.Error(), "secret") || errors.Unwrap(err) == nil {
		t.Errorf("got %v", err)
	}
}
