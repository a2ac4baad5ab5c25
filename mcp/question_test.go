package mcp_test

import (
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func TestOnlyWhatIsDeclaredIsAsked(t *testing.T) {
	const form, url, other = `{"mode":"form"}`, `{"mode":"url"}`, `{"mode":"voice"}`
	for _, tt := range []struct {
		capabilities, method, params string
		want                         bool
	}{
		{``, mcp.MethodElicit, form, false},
		{`{}`, mcp.MethodElicit, form, false},
		{`{"elicitation":null}`, mcp.MethodElicit, form, false},
		{`{"elicitation":{}}`, mcp.MethodElicit, form, true},
		{`{"elicitation":{}}`, mcp.MethodElicit, ``, true},
		{`{"elicitation":{}}`, mcp.MethodElicit, url, false},
		{`{"elicitation":{}}`, mcp.MethodElicit, other, false},
		{`{"elicitation":{}}`, mcp.MethodElicit, `{"mode":1}`, false},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicit, url, true},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicit, `{}`, false},
		{`{"elicitation":{"form":{},"url":{}}}`, mcp.MethodElicit, form, true},
		{`{"elicitation":{"form":{}}}`, mcp.MethodElicit, url, false},
		{`{"elicitation":{"form":null,"url":{}}}`, mcp.MethodElicit, form, false},
		{`{"elicitation":{"form":{},"url":null}}`, mcp.MethodElicit, url, false},
		{`{"elicitation":{}}`, mcp.MethodElicit, `{"mode":null}`, true},
		{`{"sampling":{"tools":null}}`, mcp.MethodCreateMessage, `{"tools":[]}`, false},
		{`{"sampling":{}}`, mcp.MethodCreateMessage, `{"tools":null,"toolChoice":null}`, true},
		{`{"sampling":{}}`, mcp.MethodCreateMessage, `{"messages":[]}`, true},
		{`{"sampling":{}}`, mcp.MethodCreateMessage, `{"tools":[]}`, false},
		{`{"sampling":{}}`, mcp.MethodCreateMessage, `{"toolChoice":{}}`, false},
		{`{"sampling":{"tools":{}}}`, mcp.MethodCreateMessage, `{"toolChoice":{},"tools":[]}`, true},
		{`{"elicitation":{}}`, mcp.MethodCreateMessage, `{}`, false},
		{`{"roots":{}}`, mcp.MethodListRoots, ``, true},
		{`{"sampling":{}}`, mcp.MethodListRoots, ``, false},
		{`{"":{}}`, "vendor/x", ``, false},
	} {
		t.Run(tt.capabilities+" "+tt.method+" "+tt.params, func(t *testing.T) {
			question := &mcp.Request{Method: tt.method, Params: jsonrpc.Trusted([]byte(tt.params))}
			if got := mcp.CanAsk([]byte(tt.capabilities), question); got != tt.want {
				t.Errorf("can be asked: %t", got)
			}
		})
	}
}

func TestMissingCapability(t *testing.T) {
	for _, tt := range []struct{ method, params, data string }{
		{mcp.MethodElicit, `{}`, `{"requiredCapabilities":{"elicitation":{}}}`},
		{mcp.MethodElicit, `{"mode":"url"}`, `{"requiredCapabilities":{"elicitation":{"url":{}}}}`},
		{mcp.MethodCreateMessage, `{}`, `{"requiredCapabilities":{"sampling":{}}}`},
		{mcp.MethodCreateMessage, `{"tools":[]}`, `{"requiredCapabilities":{"sampling":{"tools":{}}}}`},
		{mcp.MethodElicit, `{"tools":[]}`, `{"requiredCapabilities":{"elicitation":{}}}`},
		{mcp.MethodListRoots, ``, `{"requiredCapabilities":{"roots":{}}}`},
		{"vendor/x", ``, ``},
	} {
		err := mcp.MissingCapability(&mcp.Request{Method: tt.method, Params: jsonrpc.Trusted([]byte(tt.params))})
		if err.Code != jsonrpc.CodeMissingCapability || string(err.Data.Raw()) != tt.data {
			t.Errorf("%s: %v %s", tt.method, err, err.Data.Raw())
		}
	}
}
