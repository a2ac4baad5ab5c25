package mcp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestStampsAreTheEdits: whatever the requests before were like.
func TestStampsAreTheEdits(t *testing.T) {
	params := []string{``, `{}`, `{"name":"a"}`, `{"name":"a","_meta":{}}`, `{"_meta":{"x":1,"progressToken":5},"name":"a"}`, `[1]`, `{"_meta":null}`}
	var metas []mcp.Metadata
	for _, client := range []string{"", `{"name":"a","version":"1"}`, `{"name":"b","version":"1"}`} {
		for _, capabilities := range []string{"", "{}", `{"roots":{},"tasks":{}}`} {
			for _, level := range []mcp.Level{"", "info"} {
				for i, revision := range []mcp.Revision{"", mcp.Revision20250618, mcp.Revision20250618, mcp.Revision20260728} {
					m := mcp.Metadata{LogLevel: level, Revision: revision, TakesTasks: i == 1}
					if client != "" {
						m.Client = []byte(client)
					}
					if capabilities != "" {
						m.Capabilities = []byte(capabilities)
					}
					metas = append(metas, m)
				}
			}
		}
	}
	stamp := mcp.NewStamp(mcp.Revision20260728)
	for _, meta := range metas {
		for _, raw := range params {
			for _, token := range []string{"", "7", `"x"`} {
				req := &mcp.Request{Meta: meta}
				if raw != "" {
					req.Params = value(t, raw)
				}
				for range 2 { // the second may be remembered
					got := jsonrpc.AppendEdited(nil, &req.Params, stamp.Edits(req, id(t, token))...)
					want := jsonrpc.AppendEdited(nil, &req.Params, mcp.EditsForModern(req, mcp.Revision20260728, id(t, token))...)
					if diff := cmp.Diff(string(want), string(got)); diff != "" {
						t.Fatalf("params %s, token %s, %+v:\n%s", raw, token, meta, diff)
					}
				}
			}
		}
	}
}

// TestStampKeepsNothingOfARequest: its memory may be used again.
func TestStampKeepsNothingOfARequest(t *testing.T) {
	stamp := mcp.NewStamp(mcp.Revision20260728)
	client := []byte(`{"name":"first","version":"1"}`)
	req := &mcp.Request{Meta: mcp.Metadata{Client: client}}
	first := string(stamp.Edits(req, jsonrpc.IntID(1))[0].Value)
	copy(client, `{"name":"other","version":"1"}`)
	other := stamp.Edits(req, jsonrpc.IntID(1))
	if want := mcp.EditsForModern(req, mcp.Revision20260728, jsonrpc.IntID(1)); string(other[0].Value) != string(want[0].Value) || string(other[0].Value) == first {
		t.Errorf("got %s, want %s", other[0].Value, want[0].Value)
	}
}
