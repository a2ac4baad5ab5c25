package main

import (
	"fmt"
	"slices"
	"strings"
)

// onlyThrough are the pairs that do not work without mcpsplice, with the forms in
// which they do not, and why. They are named here so that nobody can say so of a
// pair that works, and no pair stops working unseen.
var onlyThrough = []struct {
	servers, forms, clients string // separated by commas
	why                     string
}{
	{
		"gosdk", "http", "mcpgo",
		"mcp-go's client takes the answer of a Go SDK server with sessions for 2026-07-28, which that server serves without sessions only",
	},
	{
		"everything,memory,ts1", "stdio,http", "ts2,inspector",
		"the client speaks 2026-07-28 only, the server legacy revisions only",
	},
	{
		"filesystem", "stdio", "ts2",
		"the client speaks 2026-07-28 only, the server legacy revisions only",
	},
	{
		"gosdk", "http", "ts2,inspector",
		"the client speaks 2026-07-28 only, the server with sessions legacy revisions only",
	},
	{
		"ts2", "stdio,http", "ts1,ts2-legacy,py-legacy,go-legacy,mcpgo-legacy,splice-legacy,inspector-legacy",
		"the client speaks legacy revisions only, the server 2026-07-28 only",
	},
}

// whyOnlyThrough tells why the pair of a direct row does not work in it, and "" of a
// pair that does.
func whyOnlyThrough(r row) string {
	has := func(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }
	for _, pairs := range onlyThrough {
		if has(pairs.servers, r.server.name) && has(pairs.forms, r.form) && has(pairs.clients, r.client.name) {
			return pairs.why
		}
	}
	return ""
}

// works tells whether a client gets so far as to call the server's tools.
func works(checks []check) bool {
	passes := func(name string) bool {
		return slices.ContainsFunc(checks, func(c check) bool { return c.Name == name && c.OK })
	}
	return passes("connect") && passes("call")
}

// brokenPairs lists what is wrong with the pairs of the rows that ran: each works
// through mcpsplice, and without it unless onlyThrough says that it does not.
func brokenPairs(done map[string][]check, ran []row) []string {
	var problems []string
	for _, r := range ran {
		ok, why := works(done[r.String()]), whyOnlyThrough(r)
		switch {
		case !r.direct() && !ok:
			problems = append(problems, fmt.Sprintf("%s: the pair does not work through mcpsplice", r))
		case r.direct() && !ok && why == "":
			problems = append(problems, fmt.Sprintf("%s: the pair does not work without mcpsplice, and pairs.go does not say so", r))
		case r.direct() && ok && why != "":
			problems = append(problems, fmt.Sprintf("%s: the pair works without mcpsplice, and pairs.go says that it does not", r))
		}
	}
	return problems
}
