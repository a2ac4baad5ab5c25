package streamable_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestIdleConnectionsAreProbed_R6: a peer that is gone without a word is found out
// within 15 s, three times.
func TestIdleConnectionsAreProbed_R6(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	transport := streamable.NewTransport(time.Second)
	conn, err := transport.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	if err := raw.Control(func(fd uintptr) {
		for name, opt := range map[string][2]int{
			"on":       {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE},
			"idle":     {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE},
			"interval": {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL},
			"count":    {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT},
		} {
			got[name], err = syscall.GetsockoptInt(int(fd), opt[0], opt[1])
			if err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if after := got["idle"] + got["count"]*got["interval"]; got["on"] != 1 || got["idle"] > 15 || after > 45 {
		t.Errorf("a silent connection is given up after %d s: %v", after, got)
	}
	// HTTP/2 has pings of its own.
	if h2 := transport.HTTP2; h2 == nil || h2.SendPingTimeout <= 0 || h2.SendPingTimeout+h2.PingTimeout > 45*time.Second {
		t.Errorf("HTTP/2 connections are probed as %+v", h2)
	}
}
