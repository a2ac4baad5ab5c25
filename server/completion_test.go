package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

func TestCompletion(t *testing.T) {
	s := prompts()
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "u:{v}", Name: "n"}, nil)
	s.CompletePrompt("greet", "name", func(_ context.Context, _ *server.Call, typed string, settled map[string]string) ([]string, error) {
		return []string{typed + "da", settled["tone"]}, nil
	})
	s.CompletePrompt("greet", "many", func(context.Context, *server.Call, string, map[string]string) ([]string, error) {
		return strings.Split(strings.Repeat("x,", 249)+"x", ","), nil
	})
	s.CompleteResource("u:{v}", "v", func(context.Context, *server.Call, string, map[string]string) ([]string, error) { return nil, nil })
	complete := func(ref, argument, more string) (string, error) {
		got, err := handle(t, s, mcp.MethodComplete, `{"ref":`+ref+`,"argument":`+argument+more+`}`)
		v := value(got)
		raw, _ := v.Lookup("completion")
		return string(raw), err
	}
	const greet = `{"type":"ref/prompt","name":"greet"}`
	hundred := strings.TrimSuffix(strings.Repeat(`"x",`, 100), ",")
	for _, test := range []struct{ ref, argument, more, want string }{
		{greet, `{"name":"name","value":"A"}`, `,"context":{"arguments":{"tone":"!"}}`, `{"values":["Ada","!"],"total":2,"hasMore":false}`},
		{greet, `{"name":"name","value":"A"}`, ``, `{"values":["Ada",""],"total":2,"hasMore":false}`},
		{greet, `{"name":"many","value":""}`, ``, `{"values":[` + hundred + `],"total":250,"hasMore":true}`},
		{greet, `{"name":"tone","value":""}`, ``, `{"values":[],"total":0,"hasMore":false}`},
		{`{"type":"ref/resource","uri":"u:{v}"}`, `{"name":"v","value":""}`, ``, `{"values":[],"total":0,"hasMore":false}`},
	} {
		if got, err := complete(test.ref, test.argument, test.more); err != nil || got != test.want {
			t.Errorf("%s %s: %s, %v", test.ref, test.argument, got, err)
		}
	}
	for _, test := range [][3]string{
		{`{"type":"ref/prompt","name":"none"}`, `{"name":"a","value":""}`},
		{`{"type":"ref/resource","uri":"u:none"}`, `{"name":"a","value":""}`},
		{`{"type":"ref/other"}`, `{"name":"a","value":""}`},
		{`{}`, `{}`}, {`1`, `{}`}, {greet, `{"name":1}`}, {greet, `{"name":"name","value":""}`, `,"context":{"arguments":{"tone":1}}`},
	} {
		if _, err := complete(test[0], test[1], test[2]); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("%s: %v", fmt.Sprint(test), err)
		}
	}
	s.CompletePrompt("greet", "name", nil)
	if got, err := complete(greet, `{"name":"name","value":"A"}`, ``); err != nil || !strings.HasPrefix(got, `{"values":[]`) {
		t.Errorf("without the function: %s, %v", got, err)
	}
}
