package client_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestEventsThatArePassedOverAreTold_P5: what a server sends outside calls and cannot be
// taken may have been a change. What is no message at all was none.
func TestEventsThatArePassedOverAreTold_P5(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{%s}}`
	for _, tt := range []struct {
		name, data string
		want       []string
	}{
		{"a large one", fmt.Sprintf(changed, `"x":"`+strings.Repeat("x", 2000)+`"`), []string{client.Resynced}},
		{"a notification that cannot be read", fmt.Sprintf(changed, `"x":1,"x":2`), []string{client.Resynced}},
		{"a sign of life", `ping`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newLateLogger(t)
				target := client.URL("http://legacy.example/mcp")
				target.Options.Transport = server
				target.Options.MaxBody = 1000
				c := connect(t, target, &client.Options{Era: mcp.Legacy})
				s := listen(t, c, tools)
				synctest.Wait() // for the GET stream
				if _, err := io.WriteString(server.stream, "data: "+tt.data+"\n\n"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				expect(t, s, tt.want...)
			})
		})
	}
}
