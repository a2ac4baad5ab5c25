package main

import (
	"path/filepath"
)

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
	made    pack
	speaks  string
	profile string   // file in profiles/
	title   string   // what it calls itself, for profiles that leave this open
	without []string // checks of the profile that it cannot be put to
	stdio   func(t tools, tmp string) []string
	http    func(t tools) []string
	sse     func(t tools) []string // HTTP with SSE; http if nil and ours
	forms   string                 // a letter each
	not     string                 // a family of clients that is of no use at it
	slow    bool                   // it takes a second to start
	ours    bool                   // its direct rows are no controls, but what is tested; it serves HTTP with SSE too
}

// A client is somebody else's or made with our package client, in one mode.
type client struct {
	name    string
	made    pack
	family  string // clients of one family parse results alike
	mode    string // INTEROP_MODE
	era     string // the era it speaks; auto takes the newest it is offered
	sse     bool   // it knows HTTP with SSE, and has a row for it
	command func(t tools) []string
	only    []string // the checks that it can be put to, nil for all
	oneShot bool     // it makes a connection for each request
}

// speaks tells which revisions the client speaks.
func (c client) speaks() string {
	switch c.era {
	case "auto":
		return "the newest that it is offered"
	case "modern":
		return "2026-07-28 only"
	}
	return "legacy"
}

// Packages that more than one peer is made with, or that have more than one mode.
var (
	npmTS1       = pack{npm, "@modelcontextprotocol/sdk"}
	npmTS2Client = pack{npm, "@modelcontextprotocol/client"}
	npmInspector = pack{npm, "@modelcontextprotocol/inspector"}
	pypiMCP      = pack{pypi, "mcp"}
	goSDK        = pack{goModule, "github.com/modelcontextprotocol/go-sdk"}
	goMCPGo      = pack{goModule, "github.com/mark3labs/mcp-go"}
)

var clients = []client{
	{name: "ts1", made: npmTS1, family: "ts1", era: "legacy", sse: true, command: nodeScript("ts1.mjs")},
	{name: "ts2", made: npmTS2Client, family: "ts2", mode: "modern", era: "modern", command: nodeScript("ts2.mjs")},
	{name: "ts2-legacy", made: npmTS2Client, family: "ts2", mode: "legacy", era: "legacy", sse: true, command: nodeScript("ts2.mjs")},
	{name: "py", made: pypiMCP, family: "py", mode: "auto", era: "auto", command: pythonScript("client.py")},
	{name: "py-legacy", made: pypiMCP, family: "py", mode: "legacy", era: "legacy", sse: true, command: pythonScript("client.py")},
	{name: "go", made: goSDK, family: "go", mode: "auto", era: "auto", command: goBinary("gosdk-client")},
	{name: "go-legacy", made: goSDK, family: "go", mode: "legacy", era: "legacy", sse: true, command: goBinary("gosdk-client")},
	{name: "mcpgo", made: goMCPGo, family: "mcpgo", mode: "auto", era: "auto", command: goBinary("mcpgo-client")},
	{name: "mcpgo-legacy", made: goMCPGo, family: "mcpgo", mode: "legacy", era: "legacy", sse: true, command: goBinary("mcpgo-client")},
	{name: "splice", made: pack{name: "package client"}, family: spliceFamily, mode: "auto", era: "auto", sse: true, command: goBinary("mcpsplice-client")},
	{name: "splice-legacy", made: pack{name: "package client"}, family: spliceFamily, mode: "legacy", era: "legacy", sse: true, command: goBinary("mcpsplice-client")},
	inspectorClient("inspector", "modern"),
	inspectorClient("inspector-legacy", "legacy"),
}

// inspectorClient is the Inspector's CLI, which makes one request a run and asks
// nobody: it is put to what one request can show.
func inspectorClient(name, era string) client {
	return client{
		name: name, made: npmInspector, family: inspectorFamily, mode: era, era: era, command: nodeScript("inspector.mjs"),
		only:    []string{"connect", "list", "call", "structured", "error", "read", "prompt"},
		oneShot: true,
	}
}

// Families that are told apart from others: our own clients, and the Inspector.
const (
	spliceFamily    = "splice"
	inspectorFamily = "inspector"
)

var servers = []server{
	{
		name: "mcpsplice", made: pack{name: "package server"}, speaks: "both eras",
		profile: "common", title: "interop-mcpsplice", forms: "ABCDS", ours: true,
		stdio: noTmp(goBinary("mcpsplice-server", "-stdio", "-http")), http: goBinary("mcpsplice-server", "-http"),
	},
	{
		name: "everything", made: pack{npm, "@modelcontextprotocol/server-everything"}, speaks: "legacy",
		profile: "everything", forms: "ABCDS",
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
		// It is given no directory: it has those that are the client's roots, of which the
		// Inspector has none.
		name: "filesystem", made: pack{npm, "@modelcontextprotocol/server-filesystem"}, speaks: "legacy",
		profile: "filesystem", forms: "A", not: inspectorFamily,
		stdio: func(t tools, _ string) []string {
			return []string{t.Node, t.npm("server-filesystem/dist/index.js")}
		},
	},
	{
		name: "memory", made: pack{npm, "@modelcontextprotocol/server-memory"}, speaks: "legacy",
		profile: "memory", forms: "A",
		stdio: func(t tools, tmp string) []string {
			return []string{
				"env", "MEMORY_FILE_PATH=" + filepath.Join(tmp, "memory.jsonl"), t.Node, t.npm("server-memory/dist/index.js"),
			}
		},
	},
	{
		name: "gosdk", made: goSDK, speaks: "both eras on stdio; legacy on HTTP, with sessions",
		profile: "common", title: "interop-gosdk", forms: "AB", without: []string{"sealed"},
		stdio: noTmp(goBinary("gosdk-server")), http: goBinary("gosdk-server", "-http"),
	},
	{
		name: "gosdk-stateless", made: goSDK, speaks: "both eras, without sessions",
		profile: "common", title: "interop-gosdk", forms: "BD",
		without: []string{"sealed"},
		http:    goBinary("gosdk-server", "-http", "-stateless"),
	},
	{
		name: "mcpgo", made: goMCPGo, speaks: "both eras",
		profile: "common", title: "interop-mcpgo", forms: "AB",
		without: []string{"exact", "updated", "sealed"},
		stdio:   noTmp(goBinary("mcpgo-server")), http: goBinary("mcpgo-server", "-http"),
	},
	{
		name: "fastmcp", made: pack{pypi, "fastmcp"}, speaks: "both eras",
		profile: "common", title: "interop-fastmcp", forms: "AB", slow: true,
		without: []string{"sample", "roots", "updated", "sealed"},
		stdio:   noTmp(pythonScript("server.py")), http: pythonScript("server.py", "--http"),
	},
	{
		name: "mcp", made: pypiMCP, speaks: "both eras",
		profile: "common", title: "interop-mcp", forms: "AB", slow: true,
		without: []string{"url", "sealed"},
		stdio:   noTmp(pythonScript("sdkserver.py")), http: pythonScript("sdkserver.py", "--http"),
		sse: pythonScript("sdkserver.py", "--sse"),
	},
	{
		name: "ts1", made: npmTS1, speaks: "legacy, with sessions on HTTP",
		profile: "common", title: "interop-ts1", forms: "AB",
		without: []string{"exact", "sealed"},
		stdio:   noTmp(nodeScript("server1.mjs")), http: nodeScript("server1.mjs", "--http"),
		sse: nodeScript("server1.mjs", "--sse"),
	},
	{
		name: "ts2", made: pack{npm, "@modelcontextprotocol/server"}, speaks: "2026-07-28 only",
		profile: "common", title: "interop-ts2", forms: "ABCD", without: []string{"exact", "sealed"},
		stdio: noTmp(nodeScript("server.mjs")), http: nodeScript("server.mjs", "--http"),
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
