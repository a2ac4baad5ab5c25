package mcp_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// value returns the value of raw, which is absent if raw is empty.
func value(t testing.TB, raw string) jsonrpc.Value {
	t.Helper()
	if raw == "" {
		return jsonrpc.Value{}
	}
	v, err := jsonrpc.ParseValue([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// id returns the id whose wire form is raw, which is absent if raw is empty.
func id(t testing.TB, raw string) jsonrpc.ID {
	t.Helper()
	if raw == "" {
		return jsonrpc.ID{}
	}
	id, ok := jsonrpc.RawID([]byte(raw))
	if !ok {
		t.Fatalf("%s is no id", raw)
	}
	return id
}
