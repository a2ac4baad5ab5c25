package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/cli"
	"github.com/mcpsplice/mcpsplice/transport"
)

func TestFlagsOfConnections(t *testing.T) {
	for _, tt := range []struct {
		args string
		want transport.PoolOptions
	}{
		{"", transport.PoolOptions{MaxConns: 64, Idle: 5 * time.Minute, TurnWait: 30 * time.Second}},
		{"--isolation auto --max-connections 3 --idle 1h", transport.PoolOptions{MaxConns: 3, Idle: time.Hour, TurnWait: 30 * time.Second}},
		{"--isolation shared", transport.PoolOptions{Isolation: transport.Shared, MaxConns: 64, Idle: 5 * time.Minute, TurnWait: 30 * time.Second}},
		{"--isolation per-client", transport.PoolOptions{Isolation: transport.PerClient, MaxConns: 64, Idle: 5 * time.Minute, TurnWait: 30 * time.Second}},
		{"--isolation serialized --turn-wait 1s", transport.PoolOptions{Isolation: transport.Serialized, MaxConns: 64, Idle: 5 * time.Minute, TurnWait: time.Second}},
	} {
		got, err := cli.PoolOptions(strings.Fields(tt.args)...)
		if err != nil || got != tt.want {
			t.Errorf("%q gives %+v, %v", tt.args, got, err)
		}
	}
}
