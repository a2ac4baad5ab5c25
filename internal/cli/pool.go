package cli

import (
	"time"

	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/spf13/cobra"
)

// poolFlags say who shares connections to a server, how many there are, and for how
// long they are kept.
type poolFlags struct {
	isolation string
	maxConns  int
	idle      time.Duration
	turnWait  time.Duration
}

func (f *poolFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.isolation, "isolation", "auto", "`HOW` clients share connections to a legacy server: shared,\nper-client, serialized (shared, one client at a time), or\nauto: shared unless they can be asked something")
	fs.IntVar(&f.maxConns, "max-connections", transport.DefaultMaxConns, "have at most `N` connections to the server")
	fs.DurationVar(&f.idle, "idle", transport.DefaultIdle, "close a connection that nobody has used for `TIME`")
	fs.Lookup("idle").DefValue = "5m"
	fs.DurationVar(&f.turnWait, "turn-wait", transport.DefaultTurnWait, "fail a call that another client has held up for `TIME`,\nwith --isolation serialized")
}

// options returns how connections to the server are kept.
func (f *poolFlags) options(cmd *cobra.Command) (transport.PoolOptions, error) {
	isolation, err := parseIsolation(f.isolation)
	switch {
	case err != nil:
		return transport.PoolOptions{}, err
	case f.maxConns <= 0:
		return transport.PoolOptions{}, usagef("", "--max-connections must be more than 0")
	case f.idle <= 0:
		return transport.PoolOptions{}, usagef("", "--idle must be more than 0")
	case f.turnWait <= 0:
		return transport.PoolOptions{}, usagef("", "--turn-wait must be more than 0")
	case isolation != transport.Serialized && cmd.Flags().Changed("turn-wait"):
		return transport.PoolOptions{}, usagef("", "--turn-wait is for --isolation serialized")
	}
	return transport.PoolOptions{Isolation: isolation, MaxConns: f.maxConns, Idle: f.idle, TurnWait: f.turnWait}, nil
}

func parseIsolation(text string) (transport.Isolation, error) {
	switch isolation := transport.Isolation(text); isolation {
	case transport.Shared, transport.PerClient, transport.Serialized:
		return isolation, nil
	}
	if text == "auto" {
		return transport.Automatic, nil
	}
	return "", usagef("", "--isolation must be auto, shared, per-client or serialized, not %q", text)
}
