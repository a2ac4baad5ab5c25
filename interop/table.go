package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed profiles
var profiles embed.FS

// tools says where the installed peers are.
type tools struct {
	Dir       string `json:"dir"`  // holds node/, py/ and bin/
	Node      string `json:"node"` // a node of version 22 or later
	Source    string `json:"source"`
	Mcpsplice string `json:"mcpsplice"`
}

// A server is somebody else's or made with our package server, with the forms of
// the table that it is in.
type server struct {
	name    string
	profile string   // file in profiles/
	title   string   // what it calls itself, for profiles that leave this open
	without []string // checks of the profile that it cannot be put to
	stdio   func(t tools, tmp string) []string
	http    func(t tools) []string
	sse     func(t tools) []string // HTTP with SSE; http if nil and ours
	forms   string                 // a letter each
	clients []string               // nil means all
	ours    bool                   // its direct rows are no controls, but what is tested; it serves HTTP with SSE too
}

// A client is somebody else's or made with our package client, in one mode.
type client struct {
	name    string
	family  string // clients of one family parse results alike
	mode    string // INTEROP_MODE
	era     string // the era it speaks; auto takes the newest it is offered
	sse     bool   // it knows HTTP with SSE, and has a row for it
	command func(t tools) []string
}

var clients = []client{
	{"ts1", "ts1", "", "legacy", true, nodeScript("ts1.mjs")},
	{"ts2", "ts2", "modern", "modern", false, nodeScript("ts2.mjs")},
	{"ts2-legacy", "ts2", "legacy", "legacy", true, nodeScript("ts2.mjs")},
	{"py", "py", "auto", "auto", false, pythonScript("client.py")},
	{"py-legacy", "py", "legacy", "legacy", true, pythonScript("client.py")},
	{"go", "go", "auto", "auto", false, goBinary("gosdk-client")},
	{"go-legacy", "go", "legacy", "legacy", true, goBinary("gosdk-client")},
	{"mcpgo", "mcpgo", "auto", "auto", false, goBinary("mcpgo-client")},
	{"mcpgo-legacy", "mcpgo", "legacy", "legacy", true, goBinary("mcpgo-client")},
	{"splice", spliceFamily, "auto", "auto", true, goBinary("mcpsplice-client")},
	{"splice-legacy", spliceFamily, "legacy", "legacy", true, goBinary("mcpsplice-client")},
}

// spliceFamily is the family of our own clients.
const spliceFamily = "splice"

// spliceClients are the clients of servers that are there for our client.
var spliceClients = []string{"splice", "splice-legacy"}

var servers = []server{
	{
		name: "mcpsplice", profile: "common", title: "interop-mcpsplice", forms: "ABCDS", ours: true,
		stdio: noTmp(goBinary("mcpsplice-server", "-stdio", "-http")), http: goBinary("mcpsplice-server", "-http"),
	},
	{
		name: "everything", profile: "everything", forms: "ABCDS",
		stdio: func(t tools, _ string) []string {
			return []string{t.Node, t.npm("server-everything/dist/index.js"), "stdio"}
		},
		http: func(t tools) []string {
			return []string{
				t.Node, "--import", filepath.Join(t.Dir, "node", "loopback.mjs"),
				t.npm("server-everything/dist/index.js"), "streamableHttp",
			}
		},
		sse: func(t tools) []string {
			return []string{
				t.Node, "--import", filepath.Join(t.Dir, "node", "loopback.mjs"), t.npm("server-everything/dist/index.js"), "sse",
			}
		},
	},
	{
		name: "filesystem", profile: "filesystem", forms: "A",
		stdio: func(t tools, tmp string) []string {
			return []string{t.Node, t.npm("server-filesystem/dist/index.js"), filepath.Join(tmp, "allowed")}
		},
	},
	{
		name: "memory", profile: "memory", forms: "A", clients: spliceClients,
		stdio: func(t tools, tmp string) []string {
			return []string{
				"env", "MEMORY_FILE_PATH=" + filepath.Join(tmp, "memory.jsonl"), t.Node, t.npm("server-memory/dist/index.js"),
			}
		},
	},
	{
		name: "gosdk", profile: "common", title: "interop-gosdk", forms: "AB", without: []string{"url", "sealed"},
		stdio: noTmp(goBinary("gosdk-server")), http: goBinary("gosdk-server", "-http"),
	},
	{
		name: "gosdk-stateless", profile: "common", title: "interop-gosdk", forms: "BD",
		without: []string{"url", "sealed"}, clients: []string{"ts1", "ts2", "py", "go-legacy", "mcpgo", "mcpgo-legacy", "splice", "splice-legacy"},
		http: goBinary("gosdk-server", "-http", "-stateless"),
	},
	{
		name: "mcpgo", profile: "common", title: "interop-mcpgo", forms: "AB",
		without: []string{"url", "exact", "updated", "sealed"},
		stdio:   noTmp(goBinary("mcpgo-server")), http: goBinary("mcpgo-server", "-http"),
	},
	{
		name: "fastmcp", profile: "common", title: "interop-fastmcp", forms: "AB",
		without: []string{"url", "sample", "roots", "updated", "sealed"},
		stdio:   noTmp(pythonScript("server.py")), http: pythonScript("server.py", "--http"),
	},
	{
		name: "mcp", profile: "common", title: "interop-mcp", forms: "AB", clients: spliceClients,
		without: []string{"url", "sealed"},
		stdio:   noTmp(pythonScript("sdkserver.py")), http: pythonScript("sdkserver.py", "--http"),
		sse: pythonScript("sdkserver.py", "--sse"),
	},
	{
		name: "ts1", profile: "common", title: "interop-ts1", forms: "AB", clients: spliceClients,
		without: []string{"exact", "sealed"},
		stdio:   noTmp(nodeScript("server1.mjs")), http: nodeScript("server1.mjs", "--http"),
		sse: nodeScript("server1.mjs", "--sse"),
	},
	{
		name: "ts2", profile: "common", title: "interop-ts2", forms: "ABCD", without: []string{"exact", "sealed"},
		clients: []string{"ts1", "ts2", "py-legacy", "go-legacy", "mcpgo", "mcpgo-legacy", "splice", "splice-legacy"},
		stdio:   noTmp(nodeScript("server.mjs")), http: nodeScript("server.mjs", "--http"),
	},
}

func (t tools) npm(path string) string {
	return filepath.Join(t.Dir, "node", "node_modules", "@modelcontextprotocol", path)
}

func nodeScript(name string, args ...string) func(tools) []string {
	return func(t tools) []string { return append([]string{t.Node, filepath.Join(t.Dir, "node", name)}, args...) }
}

func pythonScript(name string, args ...string) func(tools) []string {
	return func(t tools) []string {
		python := filepath.Join(t.Dir, "py", "bin", "python")
		return append([]string{python, filepath.Join(t.Source, "peers", "python", name)}, args...)
	}
}

func goBinary(name string, args ...string) func(tools) []string {
	return func(t tools) []string { return append([]string{filepath.Join(t.Dir, "bin", name)}, args...) }
}

func noTmp(command func(tools) []string) func(tools, string) []string {
	return func(t tools, _ string) []string { return command(t) }
}

// The forms: how a client reaches a server. The direct ones are the controls of
// the others.
const (
	directStdio = "stdio"
	directHTTP  = "http"
	directSSE   = "sse" // HTTP with SSE, of revision 2024-11-05
	formA       = "A"   // stdio server, client over HTTP
	formB       = "B"   // HTTP server, client over stdio
	formC       = "C"   // stdio server, client over stdio
	formD       = "D"   // HTTP server, client over HTTP
	formS       = "S"   // stdio server, client over HTTP with SSE
)

// A row is one client at one server in one form.
type row struct {
	server server
	form   string
	client client
}

func (r row) String() string { return r.server.name + "/" + r.form + "/" + r.client.name }

func (r row) direct() bool { return slices.Contains(directForms, r.form) }

// heals tells whether the client has to survive that its server is killed. A
// bridge would do that for it.
func (r row) heals() bool { return r.direct() && r.client.family == spliceFamily }

// hasSSE tells whether the client has a row over HTTP with SSE. Without a bridge
// those of others have one at our server only.
func (r row) hasSSE() bool {
	return r.client.sse && (r.form != directSSE || r.server.ours || r.client.family == spliceFamily)
}

// overHTTP is the command that serves the HTTP forms.
func (r row) overHTTP() func(tools) []string {
	if r.form == directSSE && r.server.sse != nil {
		return r.server.sse
	}
	return r.server.http
}

var directForms = []string{directStdio, directHTTP, directSSE}

func (r row) serverOverHTTP() bool {
	return r.form == directHTTP || r.form == directSSE || r.form == formB || r.form == formD
}

func (r row) clientOverHTTP() bool {
	return r.form == directHTTP || r.form == formA || r.form == formD || r.clientOverSSE()
}

func (r row) clientOverSSE() bool { return r.form == directSSE || r.form == formS }

// era is the era that the client has to end up in. Without a bridge an auto
// client gets what the server has; a bridge offers the modern one to all. HTTP
// with SSE is legacy.
func (r row) era() string {
	if r.client.era != "auto" {
		return r.client.era
	}
	switch {
	case r.clientOverSSE():
		return "legacy"
	case r.direct():
		return "any"
	}
	return "modern"
}

// rows is the whole table, controls first.
func rows() []row {
	var all []row
	for _, s := range servers {
		forms := []string{}
		if s.stdio != nil {
			forms = append(forms, directStdio)
		}
		if s.http != nil {
			forms = append(forms, directHTTP)
		}
		if s.ours || s.sse != nil {
			forms = append(forms, directSSE)
		}
		for _, form := range append(forms, strings.Split(s.forms, "")...) {
			for _, c := range clients {
				r := row{s, form, c}
				if (s.clients == nil || slices.Contains(s.clients, c.name)) && (!r.clientOverSSE() || r.hasSSE()) {
					all = append(all, r)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b row) int {
		switch {
		case a.direct() == b.direct():
			return 0
		case a.direct():
			return -1
		}
		return 1
	})
	return all
}

// profile is what the client of a row gets to know about the server, and the
// checks to run, in order.
func (r row) profile(tmp string) (text string, checks []string, err error) {
	b, err := profiles.ReadFile("profiles/" + r.server.profile + ".json")
	if err != nil {
		return "", nil, err
	}
	text = strings.NewReplacer("$TMP", tmp, "$SERVER", r.server.title).Replace(string(b))
	var p struct {
		Checks []string `json:"checks"`
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return "", nil, fmt.Errorf("profile %s: %w", r.server.profile, err)
	}
	return text, slices.DeleteFunc(p.Checks, func(check string) bool {
		return slices.Contains(r.server.without, check) || check == "heal" && !r.heals()
	}), nil
}
