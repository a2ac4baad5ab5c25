package streamable_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestCallWithoutATLSConnectionIsNotSent: what ends the handshake of TLS ends it before
// anything of a call can be sent.
func TestCallWithoutATLSConnectionIsNotSent_P2(t *testing.T) {
	for name, serve := range map[string]func(conn net.Conn){
		"ended":   func(net.Conn) {},
		"refused": func(conn net.Conn) { _, _ = conn.Write([]byte("\x15\x03\x03\x00\x02\x02\x28")) },
		"no TLS":  func(conn net.Conn) { _, _ = conn.Write([]byte("SSH-2.0-x\r\n")) },
		"silence": func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan struct{})
			defer func() { <-served }()
			defer listener.Close()
			go func() {
				defer close(served)
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = bufio.NewReader(conn).ReadByte() // of the client's hello
					serve(conn)
					_ = conn.Close()
				}
			}()
			opts := knownEra(mcp.Modern)
			opts.ConnectTimeout = 100 * time.Millisecond
			_, err = streamable.CallOnce(t.Context(), "https://"+listener.Addr().String()+"/mcp", toolRequest("t", "{}"), nil, opts)
			if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.Unreachable || e.Outcome != mcp.NotSent {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestCallOverTLSMayHaveBeenExecuted: the connection is lost when the call has been sent,
// a new one or one that was there.
func TestCallOverTLSMayHaveBeenExecuted_P2(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			answer := modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if string(m.Method) == mcp.MethodCallTool {
					panic(http.ErrAbortHandler)
				}
				writeResult(w, m, `{"resultType":"complete","tools":[]}`)
			})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				var m jsonrpc.Message
				_ = jsonrpc.Scan(body, &m)
				answer(w, r, &m)
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			c, err := streamable.DialTrusting(t.Context(), server.URL, &tls.Config{RootCAs: roots}, knownEra(mcp.NoEra))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range 2 {
				_, err = call(t, c, mcp.NoCaller{})
				if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.ConnectionLost || e.Outcome != mcp.MaybeExecuted {
					t.Errorf("%v", err)
				}
			}
		})
	}
}
