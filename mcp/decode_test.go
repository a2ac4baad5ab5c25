package mcp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// Decoding a result says what decoding its bytes says, whichever way it goes.
func TestDecodingAToolResult(t *testing.T) {
	long := strings.Repeat(`naïve \"text\"\n`, 1000)
	for _, raw := range []string{
		`{"content":[]}`,
		`{"content":null}`,
		`{}`,
		`{"content":[{"type":"text","text":"a"}]}`,
		`{ "content" : [ { "text" : "` + long + `" , "type" : "text" } , {"type":"text","text":""} ] }`,
		`{"content":[{"type":"text","text":"a","annotations":{"priority":1},"_meta":{"k":1},"x":2}]}`,
		`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"new","text":"a"},null,1]}`,
		`{"content":[{"type":"text","text":1}]}`,
		`{"content":[{"type":"text","text":"\ud800"}]}`,
		`{"content":[{"type":"text","text":"\ufffd"}]}`,
		`{"content":[{"type":"text","text":null}]}`,
		`{"content":[{"type":"text","text":"a","text":"b"}]}`,
		`{"content":[{"type":1,"text":"a"}]}`,
		`{"content":[{"text":"a"}]}`,
		`{"content":[],"content":[]}`,
		`{"content":{}}`,
		`{"content":[],"isError":true,"resultType":"complete","structuredContent":{"a": 1}}`,
		`{"content":[],"isError":null,"resultType":"other","structuredContent":null}`,
		`{"content":[],"isError":1}`,
		`{"content":[],"_meta":{"a":1},"more":[1]}`,
		`{"content":[{"type":"text","text":"a"}],"_meta":{"a":1},"isError":false}`,
	} {
		value, err := jsonrpc.ParseValue([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		var got, want mcp.CallToolResult
		gotErr := (&mcp.Result{Value: value}).Decode(&got)
		wantErr := json.Unmarshal([]byte(raw), &want)
		if (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%.200s: got %v, want %v", raw, gotErr, wantErr)
		}
		if diff := cmp.Diff(want, got); gotErr == nil && diff != "" {
			t.Errorf("%.200s: %s", raw, diff)
		}
	}
}

func BenchmarkDecodeToolResult(b *testing.B) {
	for name, n := range map[string]int{"100B": 1, "64KiB": 64 << 10 / 86} {
		text := strings.Repeat("The quick brown fox \"jumps\" over the lazy dog, naïve café, and runs on for a while.\n", n)
		raw, err := json.Marshal(mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: text}}})
		if err != nil {
			b.Fatal(err)
		}
		value, err := jsonrpc.ParseValue(raw)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			result := mcp.Result{Value: value}
			for b.Loop() {
				var r mcp.CallToolResult
				if err := result.Decode(&r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/bytes", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				var r mcp.CallToolResult
				if err := json.Unmarshal(raw, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
