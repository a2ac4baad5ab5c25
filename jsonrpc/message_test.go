package jsonrpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// describe tells all of a message in one line.
func describe(m *jsonrpc.Message) string {
	kind := [...]string{"invalid", "request", "notification", "response"}[m.Kind]
	if m.Failed {
		kind = "failed " + kind
	}
	return fmt.Sprintf("%s id=%s method=%s body=%s meta=%s", kind, m.ID, m.Method, m.Body.Raw(), m.Meta.Raw())
}

func TestScanFindsTheMembersOfAMessage(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `request id=1 method=ping body= meta=`},
		{"request with params", `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","_meta":{"k":1}}}`, `request id="a" method=tools/call body={"name":"x","_meta":{"k":1}} meta={"k":1}`},
		{"B025 members in any order", `{"method":"tools/call","params":{"name":"del","arguments":{"id":7}},"jsonrpc":"2.0","id":42}`, `request id=42 method=tools/call body={"name":"del","arguments":{"id":7}} meta=`},
		{"params by position", `{"jsonrpc":"2.0","id":1,"method":"m","params":[1,2]}`, `request id=1 method=m body=[1,2] meta=`},
		{"params null are none", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, `request id=1 method=m body= meta=`},
		{"_meta that is no object", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[]}}`, `request id=1 method=m body={"_meta":[]} meta=`},
		{"_meta elsewhere", `{"jsonrpc":"2.0","id":1,"method":"m","_meta":{"k":1},"params":{"arguments":{"_meta":{"k":2}}}}`, `request id=1 method=m body={"arguments":{"_meta":{"k":2}}} meta=`},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, `notification id=none method=notifications/x body={} meta=`},
		{"escaped names and method", `{"\u006asonrpc":"\u0032.0","\u0069d":1,"m\u0065thod":"pin\u0067","\u0070arams":{"_m\u0065ta":{}}}`, `request id=1 method=ping body={"_m\u0065ta":{}} meta={}`},
		{"unknown members", `{"jsonrpc":"2.0","x":{"id":2},"id":1,"method":"m","method\u0000":"evil","":0}`, `request id=1 method=m body= meta=`},
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, `response id=1 method= body={"content":[]} meta=`},
		{"result that is no object", `{"jsonrpc":"2.0","id":1,"result":null}`, `response id=1 method= body=null meta=`},
		{"error", `{"id":1,"error":{"code":-32601,"message":"no"},"jsonrpc":"2.0"}`, `failed response id=1 method= body={"code":-32601,"message":"no"} meta=`},
		{"error without an id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}`, `failed response id=none method= body={"code":-32700,"message":"no"} meta=`},
		{"error with the id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, `failed response id=none method= body={"code":-32700,"message":"no"} meta=`},
		{"B007 byte order mark", "\ufeff" + `{"jsonrpc":"2.0","id":1,"result":{}}`, `response id=1 method= body={} meta=`},
		{"white space everywhere", "\r\n\t { \"jsonrpc\" : \"2.0\" ,\n\"id\" : 1 , \"method\" : \"m\" , \"params\" : { \"a\" : 1 } } \r\n", `request id=1 method=m body={ "a" : 1 } meta=`},
		{"B016 numbers as they came", `{"jsonrpc":"2.0","id":1,"result":{"id":9007199254740993,"big":12345678901234567890123,"f":1.0,"e":1E2,"z":-0,"d":0.1000}}`, `response id=1 method= body={"id":9007199254740993,"big":12345678901234567890123,"f":1.0,"e":1E2,"z":-0,"d":0.1000} meta=`},
		{"T-A4 lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"s":"\ud800"}}`, `request id=1 method=m body={"s":"\ud800"} meta=`},
		{"duplicates in arguments", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":1,"a":2},"_meta":{"k":{"a":1,"a":2}}}}`, `request id=1 method=m body={"arguments":{"a":1,"a":2},"_meta":{"k":{"a":1,"a":2}}} meta={"k":{"a":1,"a":2}}`},
		{"duplicates in a result", `{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, `response id=1 method= body={"a":1,"a":2} meta=`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := jsonrpc.Message{Kind: jsonrpc.Response, Failed: true, Method: []byte("left over")}
			if err := jsonrpc.Scan([]byte(c.in), &m); err != nil {
				t.Fatal(err)
			}
			if got := describe(&m); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestScanSaysWhatIsWrongWithTheID(t *testing.T) {
	const (
		parse   = jsonrpc.CodeParseError
		invalid = jsonrpc.CodeInvalidRequest
	)
	long := `"` + strings.Repeat("x", jsonrpc.MaxIDBytes-1) + `"`
	for _, c := range []struct {
		name, in string
		code     int
		id       string
		reason   string
	}{
		{"B004 noise", `Server v1.2 ready`, parse, "none", "a value was expected"},
		{"B004 noise that begins like a batch", `[1] warn: {not json`, parse, "none", "after the end"},
		{"B004 colours", "\x1b[32mok\x1b[0m", parse, "none", "a value was expected"},
		{"B005 log line", `{"level":"info","msg":"up"}`, invalid, "none", "jsonrpc must be"},
		{"B005 number", `42`, invalid, "none", "must be an object"},
		{"B005 null", `null`, invalid, "none", "must be an object"},
		{"B005 string", `"hi"`, invalid, "none", "must be an object"},
		{"B005 empty array", `[]`, invalid, "none", "batches"},
		{"B005 version 1.0", `{"jsonrpc":"1.0","id":4,"method":"ping"}`, invalid, "4", "jsonrpc must be"},
		{"B005 version as a number", `{"jsonrpc":2.0,"id":4,"method":"ping"}`, invalid, "4", "jsonrpc must be"},
		{"B005 no version", `{"id":5,"method":"ping"}`, invalid, "5", "jsonrpc must be"},
		{"B005 nothing else", `{"jsonrpc":"2.0"}`, invalid, "none", "needs a method"},
		{"B082 another API's answer", `{"Output":null,"Version":"1"}`, invalid, "none", "jsonrpc must be"},
		{"B082 nothing", ``, parse, "none", "unexpected end"},
		{"B082 truncated", `{"jsonrpc":"2.0","id":5,"resu`, parse, "5", "unexpected end"},
		{"B010 truncated after the id", `{"id":"a","jsonrpc":"2.0","result":{"x":`, parse, `"a"`, "unexpected end"},
		{"B010 truncated in or after the id", `{"jsonrpc":"2.0","method":"m","id":1`, parse, "none", "unexpected end"},
		{"B010 truncated after an id that is a string", `{"jsonrpc":"2.0","method":"m","id":"1"`, parse, `"1"`, "unexpected end"},
		{"B010 truncated in white space", `{"jsonrpc":"2.0","method":"m","id":1 `, parse, "1", "unexpected end"},
		{"an id that goes on", `{"jsonrpc":"2.0","result":{},"id":1x2}`, parse, "none", "a comma or the end"},
		{"an id with a bad exponent", `{"jsonrpc":"2.0","result":{},"id":1e}`, parse, "none", "malformed number"},
		{"B013 not UTF-8", "\xff\xfe", parse, "none", "a value was expected"},
		{"B014 Latin-1 in a result", "{\"result\":{\"text\":\"caf\xe9\"},\"id\":1,\"jsonrpc\":\"2.0\"}", parse, "1", "invalid UTF-8"},
		{"B014 Latin-1 in a name", "{\"\xe9\":0,\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"m\"}", parse, "1", "invalid UTF-8"},
		{"broken value of an unknown member", `{"id":1,"x":tru,"jsonrpc":"2.0"}`, parse, "1", "unknown literal"},
		{"B014 not UTF-8 in an array", "[\"\xe9\"]", parse, "none", "invalid UTF-8"},
		{"B022 id null", `{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{}}`, invalid, "none", "id must be"},
		{"B023 id fractional", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, invalid, "none", "id must be"},
		{"B023 id with a point", `{"jsonrpc":"2.0","id":1.0,"method":"m"}`, invalid, "none", "id must be"},
		{"B023 id with an exponent", `{"jsonrpc":"2.0","id":1e400,"method":"m"}`, invalid, "none", "id must be"},
		{"B023 id boolean", `{"jsonrpc":"2.0","id":true,"method":"m"}`, invalid, "none", "id must be"},
		{"B023 id object", `{"jsonrpc":"2.0","id":{},"method":"m"}`, invalid, "none", "id must be"},
		{"B023 id array", `{"jsonrpc":"2.0","id":[1],"method":"m"}`, invalid, "none", "id must be"},
		{"B023 id of 1 MiB", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","method":"m"}`, invalid, "none", "id of 1048578 bytes is longer than the limit MaxIDBytes of 1024"},
		{"B023 id one byte too long", `{"jsonrpc":"2.0","id":` + long + `,"method":"m"}`, invalid, "none", "id of 1025 bytes"},
		{"B023 number too long", `{"jsonrpc":"2.0","id":` + strings.Repeat("1", 1025) + `,"method":"m"}`, invalid, "none", "id of 1025 bytes"},
		{"B023 id of a response boolean", `{"jsonrpc":"2.0","id":true,"result":{}}`, invalid, "none", "id must be"},
		{"B023 id of a response object", `{"jsonrpc":"2.0","id":{},"error":{"code":1,"message":""}}`, invalid, "none", "id must be"},
		{"B023 id of a response too long", `{"jsonrpc":"2.0","id":` + long + `,"result":{}}`, invalid, "none", "id of 1025 bytes"},
		{"result without an id", `{"jsonrpc":"2.0","result":{}}`, invalid, "none", "needs an id"},
		{"result with the id null", `{"jsonrpc":"2.0","id":null,"result":{}}`, invalid, "none", "needs an id"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, invalid, "1", "not both"},
		{"result and params", `{"jsonrpc":"2.0","id":1,"result":{"a":1},"params":{"a":2}}`, invalid, "1", "no params"},
		{"error and params", `{"jsonrpc":"2.0","id":1,"params":{"code":2},"error":{"code":1,"message":""}}`, invalid, "1", "no params"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, invalid, "1", "not several"},
		{"method and error", `{"jsonrpc":"2.0","id":1,"method":"m","error":{}}`, invalid, "1", "not several"},
		{"error that is no object", `{"jsonrpc":"2.0","id":1,"error":"boom"}`, invalid, "1", "error must be an object"},
		{"method empty", `{"jsonrpc":"2.0","id":1,"method":""}`, invalid, "1", "method must be"},
		{"method number", `{"jsonrpc":"2.0","id":1,"method":123}`, invalid, "1", "method must be"},
		{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, invalid, "1", "method must be"},
		{"params string", `{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, invalid, "1", "params must be"},
		{"params number", `{"jsonrpc":"2.0","id":1,"method":"m","params":1}`, invalid, "1", "params must be"},
		{"B028 method twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, invalid, "1", `duplicate member "method" in message`},
		{"B028 method twice, once escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`, invalid, "1", `duplicate member "method" in message`},
		{"B028 params twice", `{"jsonrpc":"2.0","method":"m","params":{"name":"a","x":1},"params":{"name":"b"},"id":1}`, invalid, "1", `duplicate member "params" in message`},
		{"B028 result twice", `{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":1}`, invalid, "1", `duplicate member "result" in message`},
		{"B028 unknown member twice", `{"x":1,"x":2,"jsonrpc":"2.0","id":1,"method":"m"}`, invalid, "1", `duplicate member "x" in message`},
		{"B028 id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, invalid, "2", `duplicate member "id" in message`},
		{"B028 name twice", `{"jsonrpc":"2.0","method":"m","params":{"name":"a","name":"b"},"id":1}`, invalid, "1", `duplicate member "name" in params`},
		{"B028 name twice, once escaped", `{"jsonrpc":"2.0","method":"m","params":{"n\u0061me":"a","name":"b"},"id":1}`, invalid, "1", `duplicate member "name" in params`},
		{"B028 in _meta", `{"jsonrpc":"2.0","method":"m","params":{"_meta":{"k":1,"\u006b":2}},"id":1}`, invalid, "1", `duplicate member "k" in params._meta`},
		{"B028 _meta twice", `{"jsonrpc":"2.0","method":"m","params":{"_meta":{"a":1},"_meta":{"b":1}},"id":1}`, invalid, "1", `duplicate member "_meta" in params`},
		{"B028 in a notification", `{"jsonrpc":"2.0","method":"m","params":{"name":"a","name":"b"}}`, invalid, "none", `duplicate member "name" in params`},
		{"T-A1 Method beside method", `{"jsonrpc":"2.0","id":1,"method":"m","Method":"x"}`, invalid, "1", `"Method" differs`},
		{"T-A1 Method alone", `{"jsonrpc":"2.0","id":1,"Method":"x"}`, invalid, "1", `"Method" differs`},
		{"T-A1 escaped", `{"jsonrpc":"2.0","id":1,"method":"m","\u004dethod":"x"}`, invalid, "1", `"Method" differs`},
		{"T-A1 U+017F", `{"jsonrpc":"2.0","id":1,"method":"m","param\u017f":{}}`, invalid, "1", "differs"},
		{"T-A1 U+017F in a response", `{"jsonrpc":"2.0","id":1,"result":{},"reſult":{}}`, invalid, "1", "differs"},
		{"T-A1 ID", `{"jsonrpc":"2.0","id":1,"method":"m","ID":2}`, invalid, "1", "differs"},
		{"T-A1 Error", `{"jsonrpc":"2.0","id":1,"result":{},"Error":{}}`, invalid, "1", "differs"},
		{"T-A1 JsonRPC", `{"JsonRPC":"2.0","id":1,"result":{}}`, invalid, "1", "differs"},
		{"T-A4 data after the message", `{"jsonrpc":"2.0","id":1,"method":"m"}x`, parse, "1", "after the end"},
		{"T-A4 two messages", `{"jsonrpc":"2.0","id":1,"method":"m"}{"jsonrpc":"2.0","id":2,"method":"m"}`, parse, "1", "after the end"},
		{"T-A4 data after a number", `42 x`, parse, "none", "after the end"},
		{"T-A4 two byte order marks", "\ufeff\ufeff{}", parse, "none", "a value was expected"},
		{"B037 batch", `[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, invalid, "none", "batches"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := jsonrpc.Message{Method: []byte("left over")}
			err := jsonrpc.Scan([]byte(c.in), &m)
			if code := codeOf(err); code != c.code {
				t.Fatalf("code %d (%v), want %d", code, err, c.code)
			}
			if m.ID.String() != c.id {
				t.Errorf("the id is %s, want %s", m.ID, c.id)
			}
			if !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %q does not say %q", err, c.reason)
			}
			if m.Method != nil || !m.Body.IsZero() || !m.Meta.IsZero() {
				t.Errorf("a refused message has content: %s", describe(&m))
			}
			wire := jsonrpc.ToWire(err)
			if wire.Code != c.code || !strings.Contains(wire.Message, c.reason) || jsonrpc.FromPeer(err) {
				t.Errorf("on the wire the error is %v", wire)
			}
		})
	}
}

// T-A1: a name that only looks like one that matters is another name.
func TestNamesAreMatchedExactly(t *testing.T) {
	for _, key := range []string{"name", "uri", "arguments", "_meta", "taskId"} {
		variants := []string{
			strings.ToUpper(key), strings.ToUpper(key[:1]) + key[1:], key + `\u0000`, key + " ", " " + key,
			strings.NewReplacer("s", "ſ", "i", "ı", "k", "\u212a").Replace(key) + "\u0301",
			strings.ReplaceAll(key, "s", "ſ"), strings.ReplaceAll(key, "k", "\u212a"), strings.ReplaceAll(key, "i", "ı"),
		}
		for _, variant := range variants {
			if variant == key {
				continue
			}
			var m jsonrpc.Message
			in := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"%s":{"evil":1}}}`, variant)
			if err := jsonrpc.Scan([]byte(in), &m); err != nil {
				t.Errorf("%s: %v", in, err)
			}
			if got, ok := m.Body.Lookup(key); ok || !m.Meta.IsZero() {
				t.Errorf("%s: %s is %s, _meta is %s", in, key, got, m.Meta.Raw())
			}
		}
	}
}

// TestSpellingsOfOneName has another spelling of a member that says what a request is
// for, with which readers that ignore case overwrite it, before and after it.
func TestSpellingsOfOneName_TA1(t *testing.T) {
	for _, key := range []string{"name", "uri", "arguments", "_meta", "taskId"} {
		variants := []string{strings.ToUpper(key), strings.ToUpper(key[:2]) + key[2:], key[:2] + strings.ToUpper(key[2:]), strings.ToLower(key)}
		variants = append(variants, strings.ReplaceAll(key, "s", "ſ"), strings.ReplaceAll(key, "s", `\u017f`), strings.ReplaceAll(key, "k", "\u212a"))
		for _, variant := range variants {
			if variant == key {
				continue
			}
			for _, params := range []string{`{"%s":{},"x":1,"%s":{}}`, `{"%[2]s":{},"%[1]s":{}}`, `{"%[2]s":{},"%[2]s2":1,"%[1]s":{}}`} {
				var m jsonrpc.Message
				in := `{"jsonrpc":"2.0","id":1,"method":"m","params":` + fmt.Sprintf(params, key, variant) + `}`
				if err := jsonrpc.Scan([]byte(in), &m); codeOf(err) != jsonrpc.CodeInvalidRequest || m.ID.String() != "1" || !strings.Contains(err.Error(), "in case only") {
					t.Errorf("%s: %v", in, err)
				}
			}
		}
	}
	for _, params := range []string{`{"Name":1,"name":2,`, `{"name":1,"Name"`, `{"Name":1,"name":x}`, `{"name":1,"Name":2,"a":1,"a":2}`} {
		var m jsonrpc.Message
		if err := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":`+params+`}`), &m); err == nil {
			t.Errorf("%s: no error", params)
		}
	}
	for _, params := range []string{
		`{"Name":1,"URI":2,"NAME":3}`, `{"name":1,"Names":2,"nam":3,"names":4}`, `{"arguments":{"name":1,"Name":2},"name":3}`,
		`{"name":1,"namé":2,"n":3,"":4}`, `{"_meta":{"a":1,"A":2}}`, `[{"name":1,"Name":2}]`,
	} {
		var m jsonrpc.Message
		if err := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":`+params+`}`), &m); err != nil {
			t.Errorf("%s: %v", params, err)
		}
	}
}

func TestMembersHaveALimit(t *testing.T) {
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	var m jsonrpc.Message
	in := `{"jsonrpc":"2.0","method":"m","params":{` + members(jsonrpc.MaxMembers) + `},"id":1}`
	if err := jsonrpc.Scan([]byte(in), &m); err != nil || m.Body.Len() != jsonrpc.MaxMembers {
		t.Errorf("at the limit: %v, %d members", err, m.Body.Len())
	}
	in = `{"jsonrpc":"2.0","method":"m","params":{` + members(jsonrpc.MaxMembers+1) + `},"id":1}`
	err := jsonrpc.Scan([]byte(in), &m)
	want := fmt.Sprintf("params of %d members is over the limit MaxMembers of %d", jsonrpc.MaxMembers+1, jsonrpc.MaxMembers)
	if codeOf(err) != jsonrpc.CodeInvalidRequest || err.Error() != want || m.ID.String() != "1" {
		t.Errorf("over the limit: %v, id %s", err, m.ID)
	}
}

func TestDuplicatesAreFoundAmongMany(t *testing.T) {
	for _, n := range []int{2, 8, 9, 31, 32, 33, 34, 500} {
		for _, at := range []int{0, (n - 1) / 2, n - 2} {
			var b strings.Builder
			for i := range n - 1 {
				fmt.Fprintf(&b, `"k%d":0,`, i)
			}
			in := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{%s"\u006b%d":1}}`, b.String(), at)
			var m jsonrpc.Message
			err := jsonrpc.Scan([]byte(in), &m)
			dup, ok := errors.AsType[*jsonrpc.DuplicateError](err)
			if !ok || dup.Where != "params" || dup.Name != fmt.Sprintf("k%d", at) {
				t.Errorf("%d members, the last like number %d: %v", n, at, err)
			}
		}
	}
}

func TestKindIsKnownEvenIfTheMessageIsRefused(t *testing.T) {
	for in, want := range map[string]jsonrpc.Kind{
		`{"jsonrpc":"1.0","id":1,"method":"m"}`:              jsonrpc.Request,
		`{"jsonrpc":"2.0","id":null,"method":"m"}`:           jsonrpc.Request,
		`{"jsonrpc":"2.0","method":"m","params":1}`:          jsonrpc.Notification,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`:    jsonrpc.Response,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a"`: jsonrpc.Request,
		`{"jsonrpc":"2.0","id":1}`:                           jsonrpc.Invalid,
		`[]`:                                                 jsonrpc.Invalid,
	} {
		var m jsonrpc.Message
		if err := jsonrpc.Scan([]byte(in), &m); err == nil || m.Kind != want {
			t.Errorf("%s: kind %d, error %v", in, m.Kind, err)
		}
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	for name, in := range map[string]string{
		"request":      string(call("hello\\nworld, caf\u00e9")),
		"notification": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":2,"message":"x"}}`,
		"response":     `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":{"b":[1,2,3]}},"isError":false}}`,
		"error":        `{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"no","data":{"a":1}}}`,
		"pretty":       "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n",
		"loose id":     `{"jsonrpc":"2.0","id":1.0,"result":{}}`,
	} {
		data := []byte(in)
		var m jsonrpc.Message
		if n := testing.AllocsPerRun(100, func() {
			if err := jsonrpc.Scan(data, &m); err != nil {
				t.Fatal(err)
			}
			m.Body.Lookup("arguments")
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestMessagesAreWrittenInOneLine(t *testing.T) {
	params, err := jsonrpc.ParseValue([]byte("{\n\t\"a\": \"\\r\\n\",\r\n\t\"b\": [1,\n2]\n}"))
	if err != nil {
		t.Fatal(err)
	}
	const body = "{\t\"a\": \"\\r\\n\",\t\"b\": [1,2]}"
	id, none := jsonrpc.IntID(7), jsonrpc.Value{}
	failure := &jsonrpc.Error{Code: -32602, Message: "a \"b\"\n", Data: params}
	for _, c := range []struct{ name, got, want string }{
		{"request", string(jsonrpc.AppendRequest(nil, id, "m\n", &params)), `{"jsonrpc":"2.0","id":7,"method":"m\n","params":` + body + `}`},
		{"request without params", string(jsonrpc.AppendRequest(nil, jsonrpc.StringID("é\""), "m", &none)), `{"jsonrpc":"2.0","id":"é\"","method":"m"}`},
		{"notification", string(jsonrpc.AppendNotification(nil, "m", &params)), `{"jsonrpc":"2.0","method":"m","params":` + body + `}`},
		{"notification without params", string(jsonrpc.AppendNotification(nil, "m", &none)), `{"jsonrpc":"2.0","method":"m"}`},
		{"result", string(jsonrpc.AppendResult(nil, id, &params)), `{"jsonrpc":"2.0","id":7,"result":` + body + `}`},
		{"absent result", string(jsonrpc.AppendResult(nil, id, &none)), `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"error", string(jsonrpc.AppendError(nil, id, failure)), `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"a \"b\"\n","data":` + body + `}}`},
		{"error without an id", string(jsonrpc.AppendError(nil, jsonrpc.ID{}, &jsonrpc.Error{Code: 1})), `{"jsonrpc":"2.0","error":{"code":1,"message":""}}`},
		{"error with the id null", string(jsonrpc.AppendNullError(nil, &jsonrpc.Error{Code: 1})), `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`},
		{"absent id of a request", string(jsonrpc.AppendRequest(nil, jsonrpc.ID{}, "m", &none)), `{"jsonrpc":"2.0","id":null,"method":"m"}`},
	} {
		if c.got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, c.got, c.want)
		}
	}
	if got := string(jsonrpc.AppendNotification([]byte("before"), "m", &none)); !strings.HasPrefix(got, `before{`) {
		t.Errorf("what was in the buffer is gone: %s", got)
	}
}

func TestForwardedMessageKeepsItsBytes(t *testing.T) {
	for _, body := range []string{
		`{"id":9007199254740993,"n":-9223372036854775808,"f":1.0,"e":1E2,"z":-0,"d":0.1000}`,
		`{"s":"\u00e9\/\ud800","é":"😀",  "x" : [ 1 , 2 ]}`,
		`{"arguments":{"a":1,"a":2,"Name":"x","name":"y"},"Other":"x","other":"y"}`,
	} {
		t.Run("B016 B017", func(t *testing.T) {
			in := `{"method":"tools/call","params":` + body + `,"id":9007199254740993,"jsonrpc":"2.0"}`
			want := `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":` + body + `}`
			var m jsonrpc.Message
			if err := jsonrpc.Scan([]byte(in), &m); err != nil {
				t.Fatal(err)
			}
			if got := string(jsonrpc.AppendRequest(nil, m.ID, string(m.Method), &m.Body)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestIDThatIsNoUTF8IsNotHandedOut_B013(t *testing.T) {
	var m jsonrpc.Message
	err := jsonrpc.Scan([]byte("{\"jsonrpc\":\"2.0\",\"id\":\"a\xff\",\"method\":\"ping\"}"), &m)
	if err == nil || !m.ID.IsZero() {
		t.Errorf("got id %q and %v", m.ID.Raw(), err)
	}
}
