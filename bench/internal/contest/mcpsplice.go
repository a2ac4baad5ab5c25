package contest

// Names of this project's contestants, which the targets are about.
const (
	Splice       = "mcpsplice"
	SpliceTyped  = "mcpsplice-typed"
	SpliceBridge = "mcpsplice-bridge"

	SpliceServer          = "mcpsplice-server"
	SpliceServerUnchecked = "mcpsplice-server-novalidation"
	SpliceListen          = "mcpsplice-listen"
)

// Which of them take part.
const (
	spliceServers = true
	spliceBridge  = true
)

// Crowd returns this project's bridge, with an isolation, before the server that a
// crowd of clients calls.
func Crowd(isolation string) Contestant {
	return Contestant{
		Name: SpliceBridge, Transport: HTTP, Bridge: true, Program: spliceBinary, Revisions: both,
		Args: func(p Paths, addr string) []string {
			return []string{"serve", "--isolation", isolation, "--listen", "http://" + addr, "--", p.of(spliceServer), "crowd", "stdio"}
		},
	}
}

// CrowdServer is a contestant whose program is the server that a crowd of clients
// calls.
func CrowdServer() Contestant { return Contestant{Program: spliceServer} }

// mcpsplice returns this project's contestants.
func mcpsplice() []Contestant {
	var list []Contestant
	if spliceServers {
		list = append(list,
			Contestant{Name: Splice, Transport: HTTP, Program: spliceServer, Args: args("raw", "http"), Revisions: both, MemStats: true},
			Contestant{Name: SpliceTyped, Transport: HTTP, Program: spliceServer, Args: args("typed", "http"), Revisions: both, MemStats: true},
			Contestant{Name: Splice, Transport: Stdio, Program: spliceServer, Args: args("raw", "stdio"), Revisions: both, MemStats: true},
			Contestant{Name: SpliceTyped, Transport: Stdio, Program: spliceServer, Args: args("typed", "stdio"), Revisions: both, MemStats: true},
		)
		for _, t := range []Transport{HTTP, Stdio} {
			list = append(list,
				Contestant{Name: SpliceServer, Transport: t, Program: spliceServer, Args: args("server", string(t)), Revisions: both, MemStats: true, Typed: true},
				Contestant{Name: SpliceServerUnchecked, Transport: t, Program: spliceServer, Args: args("server-novalidation", string(t)), Revisions: both, MemStats: true, Typed: true, Unchecked: true},
			)
		}
		list = append(list, Contestant{
			Name: SpliceListen, Transport: HTTP, Listen: true, Program: spliceServer, Args: args("listen", "http"), Revisions: modern, MemStats: true,
		})
	}
	if spliceBridge {
		list = append(list, Contestant{
			Name: SpliceBridge, Transport: HTTP, Bridge: true, Program: spliceBinary, Revisions: both,
			Args: func(p Paths, addr string) []string {
				return append([]string{"serve", "--listen", "http://" + addr, "--"}, p.floorStdio()...)
			},
		})
	}
	return list
}
