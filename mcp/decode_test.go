package mcp_test

import (
	"strings"
	"testing"
	"time"

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
		`{"content":[],"resultType":"other"}`,
		`{"content":[],"resultType":"complete","x":1}`,
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

func TestContentIsAnArray(t *testing.T) {
	for raw, ok := range map[string]bool{`[]`: true, ` [ ] `: true, `null`: true, `{}`: false, `"text"`: false, `1`: false, `[`: false} {
		var c mcp.Contents
		if err := c.UnmarshalJSON([]byte(raw)); (err == nil) != ok || len(c) > 0 {
			t.Errorf("%s: %v, %v", raw, c, err)
		}
	}
}

// One block of a conversation came alone in older revisions, and may come in an array.
func TestSampledContentStaysAsItCame(t *testing.T) {
	const block = `{"type":"text","text":"a"}`
	for _, content := range []string{block, `[` + block + `]`, `[]`, `[` + block + `,` + block + `]`} {
		message := `{"role":"user","content":` + content + `,"_meta":{"k":1},"x":1}`
		answer := `{"role":"assistant","content":` + content + `,"model":"m","stopReason":"endTurn","_meta":{"k":1},"x":1}`
		for raw, v := range map[string]any{message: new(mcp.SamplingMessage), answer: new(mcp.CreateMessageResult)} {
			if err := json.Unmarshal([]byte(raw), v); err != nil {
				t.Fatal(err)
			}
			if got, err := mcp.NewJSON(v); err != nil || string(got) != raw {
				t.Errorf("%s, %v; want %s", got, err, raw)
			}
		}
	}
}

// What a schema takes for an integer, and what languages write for an empty object that
// have no other array, hides nothing.
func TestDecodingWhatOthersWrite(t *testing.T) {
	var (
		page     mcp.ListResourcesResult
		discover mcp.DiscoverResult
		call     mcp.CallToolResult
		timed    struct{ D time.Duration }
		schema   struct{ MaxLength int }
	)
	for raw, v := range map[string]any{
		`{"resources":[{"uri":"a:","name":"a","size":1024.0}],"ttlMs":6e4}`:             &page,
		`{"supportedVersions":[],"capabilities":{"tools":[],"logging":[]},"_meta":[]}`:  &discover,
		`{"content":[{"type":"resource_link","uri":"a:","name":"a","size":2.0}],"x":1}`: &call,
		`{"D":5}`: &timed,
	} {
		if err := result(t, raw).Decode(v); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if err := mcp.JSON(`{"MaxLength":3.0}`).Decode(&schema); err != nil || schema.MaxLength != 3 {
		t.Errorf("got %v, %v", schema, err)
	}
	if *page.TTLMs != 60000 || *page.Resources[0].Size != 1024 || timed.D != 5 {
		t.Errorf("got %v, %v", page, timed)
	}
	if discover.Capabilities.Tools == nil || discover.Capabilities.Logging == nil {
		t.Errorf("got %v", discover.Capabilities)
	}
	if link, ok := call.Content[0].(*mcp.ResourceLink); !ok || *link.Size != 2 || link.Extra != nil {
		t.Errorf("got %v", call.Content)
	}
	if err := result(t, `{"resources":[{"uri":"a:","name":"a","size":1.5}]}`).Decode(&page); err == nil {
		t.Error("a fraction of a byte is taken")
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

// TestHintsThatAreNoneHideNothing: what they are about is read all the same.
func TestHintsThatAreNoneHideNothing(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	for hints, want := range map[string]mcp.CacheHints{
		`"ttlMs":60000,"cacheScope":"public"`: {TTLMs: ms(60000), CacheScope: mcp.Public},
		`"ttlMs":6e4,"cacheScope":"public"`:   {TTLMs: ms(60000), CacheScope: mcp.Public},
		`"ttlMs":1.5`:                         {TTLMs: ms(1)},
		`"ttlMs":-1`:                          {TTLMs: ms(-1)},
		`"ttlMs":-1.5`:                        {},
		`"ttlMs":1e300`:                       {},
		`"ttlMs":99999999999999999999999`:     {},
		`"ttlMs":"60000","cacheScope":true`:   {},
		`"ttlMs":null,"cacheScope":null`:      {},
		`"ttlMs":5,"cacheScope":["public"]`:   {TTLMs: ms(5)},
	} {
		result := mcp.RawResult([]byte(`{"tools":[{"name":"x"}],"other":1,` + hints + `}`))
		var page mcp.ListToolsResult
		if err := result.Decode(&page); err != nil || len(page.Tools) != 1 || string(page.Extra["other"]) != "1" {
			t.Errorf("with %s there are %d tools, %v", hints, len(page.Tools), err)
		}
		if diff := cmp.Diff(want, page.CacheHints); diff != "" {
			t.Errorf("%s (-want +got):\n%s", hints, diff)
		}
	}
	var page mcp.ListToolsResult
	result := mcp.RawResult([]byte(`{"tools":7,"ttlMs":"x"}`))
	if err := result.Decode(&page); err == nil {
		t.Error("a list that is none is read")
	}
}
