package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/exampletest"
)

// TestMain lets the test binary be the example as well.
func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestPingOverHTTP_S278(t *testing.T) {
	url := exampletest.Listen(t)
	for _, tt := range []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{"pong":true}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"pong"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}`},
	} {
		if got := exampletest.Body(t, exampletest.Post(t, url, tt.send)); got != tt.want {
			t.Errorf("%s is answered with %s, want %s", tt.send, got, tt.want)
		}
	}
}

func TestHeartbeatsAreBroadcast_S280(t *testing.T) {
	url := exampletest.Listen(t, "-every", "20ms")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	stream := bufio.NewReader(res.Body)
	var before, ts int64
	for beats, event := 0, ""; beats < 3; {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "event" {
			event = value
		}
		if name != "data" || event != "heartbeat" {
			continue
		}
		if _, err := fmt.Sscanf(value, `{"ts":%d}`, &ts); err != nil || ts < before {
			t.Errorf("after %d comes %q, %v", before, value, err)
		}
		before = ts
		beats++
	}
}
