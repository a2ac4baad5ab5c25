package mcp_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// examples says as what the example messages of the specification are read: one
// row for each folder of them. Nil stands for JSON that this library keeps as it
// is.
var examples = map[string]any{
	"AudioContent":                          mcp.Contents{},
	"BlobResourceContents":                  mcp.ResourceContents{},
	"BooleanSchema":                         nil,
	"CallToolRequest":                       mcp.CallToolParams{},
	"CallToolRequestParams":                 mcp.CallToolParams{},
	"CallToolResult":                        mcp.CallToolResult{},
	"CallToolResultResponse":                mcp.CallToolResult{},
	"CancelledNotification":                 mcp.CancelledParams{},
	"CancelledNotificationParams":           mcp.CancelledParams{},
	"ClientCapabilities":                    mcp.ClientCapabilitySet{},
	"CompleteRequest":                       mcp.CompleteParams{},
	"CompleteRequestParams":                 mcp.CompleteParams{},
	"CompleteResult":                        mcp.CompleteResult{},
	"CompleteResultResponse":                mcp.CompleteResult{},
	"CreateMessageRequest":                  mcp.CreateMessageParams{},
	"CreateMessageRequestParams":            mcp.CreateMessageParams{},
	"CreateMessageResult":                   mcp.CreateMessageResult{},
	"DiscoverRequest":                       mcp.PageParams{},
	"DiscoverResult":                        mcp.DiscoverResult{},
	"DiscoverResultResponse":                mcp.DiscoverResult{},
	"ElicitRequest":                         mcp.ElicitParams{},
	"ElicitRequestFormParams":               mcp.ElicitParams{},
	"ElicitRequestURLParams":                mcp.ElicitParams{},
	"ElicitResult":                          mcp.ElicitResult{},
	"EmbeddedResource":                      mcp.Contents{},
	"GetPromptRequest":                      mcp.GetPromptParams{},
	"GetPromptRequestParams":                mcp.GetPromptParams{},
	"GetPromptResult":                       mcp.GetPromptResult{},
	"GetPromptResultResponse":               mcp.GetPromptResult{},
	"HeaderMismatchError":                   failure{},
	"ImageContent":                          mcp.Contents{},
	"InputRequests":                         map[string]mcp.InputRequest{},
	"InputRequiredResult":                   mcp.InputRequiredResult{},
	"InputResponses":                        map[string]mcp.JSON{},
	"InternalError":                         failure{},
	"InvalidParamsError":                    failure{},
	"ListPromptsRequest":                    mcp.PageParams{},
	"ListPromptsResult":                     mcp.ListPromptsResult{},
	"ListPromptsResultResponse":             mcp.ListPromptsResult{},
	"ListResourceTemplatesRequest":          mcp.PageParams{},
	"ListResourceTemplatesResult":           mcp.ListResourceTemplatesResult{},
	"ListResourceTemplatesResultResponse":   mcp.ListResourceTemplatesResult{},
	"ListResourcesRequest":                  mcp.PageParams{},
	"ListResourcesResult":                   mcp.ListResourcesResult{},
	"ListResourcesResultResponse":           mcp.ListResourcesResult{},
	"ListRootsRequest":                      mcp.PageParams{},
	"ListRootsResult":                       mcp.ListRootsResult{},
	"ListToolsRequest":                      mcp.PageParams{},
	"ListToolsResult":                       mcp.ListToolsResult{},
	"ListToolsResultResponse":               mcp.ListToolsResult{},
	"LoggingMessageNotification":            mcp.LogParams{},
	"LoggingMessageNotificationParams":      mcp.LogParams{},
	"MethodNotFoundError":                   failure{},
	"MissingRequiredClientCapabilityError":  failure{},
	"ModelPreferences":                      mcp.ModelPreferences{},
	"NumberSchema":                          nil,
	"PaginatedRequestParams":                mcp.PageParams{},
	"ParseError":                            failure{},
	"ProgressNotification":                  mcp.ProgressParams{},
	"ProgressNotificationParams":            mcp.ProgressParams{},
	"PromptListChangedNotification":         mcp.PageParams{},
	"ReadResourceRequest":                   mcp.ReadResourceParams{},
	"ReadResourceResult":                    mcp.ReadResourceResult{},
	"ReadResourceResultResponse":            mcp.ReadResourceResult{},
	"Resource":                              mcp.Resource{},
	"ResourceLink":                          mcp.Contents{},
	"ResourceListChangedNotification":       mcp.PageParams{},
	"ResourceUpdatedNotification":           mcp.ResourceUpdatedParams{},
	"ResourceUpdatedNotificationParams":     mcp.ResourceUpdatedParams{},
	"Root":                                  mcp.Root{},
	"SamplingMessage":                       mcp.SamplingMessage{},
	"ServerCapabilities":                    mcp.ServerCapabilitySet{},
	"StringSchema":                          nil,
	"SubscriptionsAcknowledgedNotification": mcp.ListenParams{},
	"SubscriptionsListenRequest":            mcp.ListenParams{},
	"SubscriptionsListenResult":             mcp.ResultMembers{},
	"SubscriptionsListenResultResponse":     mcp.ResultMembers{},
	"TextContent":                           mcp.Contents{},
	"TextResourceContents":                  mcp.ResourceContents{},
	"TitledMultiSelectEnumSchema":           nil,
	"TitledSingleSelectEnumSchema":          nil,
	"Tool":                                  mcp.Tool{},
	"ToolListChangedNotification":           mcp.PageParams{},
	"ToolResultContent":                     mcp.Contents{},
	"ToolUseContent":                        mcp.Contents{},
	"UnsupportedProtocolVersionError":       failure{},
	"UntitledMultiSelectEnumSchema":         nil,
	"UntitledSingleSelectEnumSchema":        nil,
}

// A failure is an example of an error: of a whole response, or of its member
// error.
type failure struct{}

const examplesDir = "testdata/2026-07-28/examples"

// readExamples calls f for each example of the specification.
func readExamples(t *testing.T, f func(t *testing.T, folder string, data []byte)) {
	t.Helper()
	files, err := filepath.Glob(examplesDir + "/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples in %s (%v)", examplesDir, err)
	}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		t.Run(folder+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f(t, folder, data)
		})
	}
}

func TestExamplesOfTheSpecificationKeepAllMembers(t *testing.T) {
	seen := make(map[string]bool)
	readExamples(t, func(t *testing.T, folder string, data []byte) {
		kind, ok := examples[folder]
		if !ok {
			t.Fatalf("no row in examples says as what %s is read", folder)
		}
		seen[folder] = true
		got, err := reencode(data, kind)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(canonical(t, data), canonical(t, got)); diff != "" {
			t.Errorf("re-encoded it differs (-example +ours):\n%s", diff)
		}
	})
	for folder := range examples {
		if !seen[folder] {
			t.Errorf("the row %s of examples has no example", folder)
		}
	}
}

// reencode reads an example as a message of its own, or as a part of one, and
// writes it again.
func reencode(data []byte, kind any) ([]byte, error) {
	var head struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		if _, isContents := kind.(mcp.Contents); !isContents {
			return nil, err
		}
	}
	switch kind.(type) {
	case nil:
		return retype(data, mcp.JSON{})
	case failure:
		return reencodeError(data)
	case mcp.Contents:
		array, err := retype([]byte("["+string(data)+"]"), kind)
		return array[1 : len(array)-1], err
	}
	switch {
	case head.Version != "":
		return reencodeMessage(data, kind)
	case head.Method != "": // a question within an input_required result
		return reencodeQuestion(data, kind)
	}
	return retype(data, kind)
}

func reencodeQuestion(data []byte, kind any) ([]byte, error) {
	var question mcp.InputRequest
	if err := json.Unmarshal(data, &question); err != nil {
		return nil, err
	}
	params, err := retype(question.Params, kind)
	if err != nil {
		return nil, err
	}
	question.Params = params
	return json.Marshal(question)
}

// retype decodes data into a new value of kind's type and encodes that.
func retype(data []byte, kind any) ([]byte, error) {
	if data == nil {
		return nil, nil
	}
	v := reflect.New(reflect.TypeOf(kind))
	if err := json.Unmarshal(data, v.Interface()); err != nil {
		return nil, err
	}
	return json.Marshal(v.Interface())
}

func reencodeMessage(data []byte, kind any) ([]byte, error) {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err != nil {
		return nil, err
	}
	body, err := retype(m.Body.Raw(), kind)
	if err != nil {
		return nil, err
	}
	value := jsonrpc.Value{}
	if body != nil {
		value = jsonrpc.Trusted(body)
	}
	switch m.Kind {
	case jsonrpc.Request:
		return jsonrpc.AppendRequest(nil, m.ID, string(m.Method), &value), nil
	case jsonrpc.Notification:
		return jsonrpc.AppendNotification(nil, string(m.Method), &value), nil
	}
	return jsonrpc.AppendResult(nil, m.ID, &value), nil
}

func reencodeError(data []byte) ([]byte, error) {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err == nil {
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.ReadError(&m.Body)), nil
	}
	v, err := jsonrpc.ParseValue(data)
	if err != nil {
		return nil, err
	}
	whole := jsonrpc.AppendError(nil, jsonrpc.IntID(1), jsonrpc.ReadError(&v))
	var response struct {
		Error mcp.JSON `json:"error"`
	}
	err = json.Unmarshal(whole, &response)
	return response.Error, err
}

func canonical(t *testing.T, data []byte) string {
	t.Helper()
	v := jsontext.Value(data).Clone()
	if err := v.Canonicalize(jsontext.CanonicalizeRawFloats(false), jsontext.CanonicalizeRawInts(false)); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if err := v.Indent(); err != nil {
		t.Fatal(err)
	}
	return string(v)
}
