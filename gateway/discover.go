package gateway

import (
	"context"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// capabilities are what a backend can do of what a gateway carries.
type capabilities struct {
	has          [lists]bool
	subscribe    bool
	completions  bool
	logging      bool
	instructions string
	life         time.Duration // for how long the server says that this holds
	public       bool          // for everybody
}

// maxInstructions is how much of the instructions of all backends is told, in bytes.
const maxInstructions = 32 << 10

// discover asks a backend what it can do. One that does not know the question may be
// able to do everything.
func (b *backend) discover(ctx context.Context, meta *mcp.Metadata) (*capabilities, error) {
	req := newRequest(mcp.MethodDiscover, jsonrpc.Trusted([]byte("{}")), meta)
	result, err := b.ask(ctx, req, mcp.NoCaller{})
	if hasCode(err, jsonrpc.CodeMethodNotFound) {
		return everything(), nil
	}
	if err != nil {
		return nil, err
	}
	declared := result.Get("capabilities")
	_, hasTools := declared.Lookup("tools")
	_, hasPrompts := declared.Lookup("prompts")
	_, hasResources := declared.Lookup("resources")
	c := &capabilities{has: [lists]bool{hasTools, hasPrompts, hasResources, hasResources}}
	c.life, c.public = hints(&result)
	c.subscribe = mcp.ReadServerCapabilities(&result.Value).Resources.Subscribe
	_, c.completions = declared.Lookup("completions")
	_, c.logging = declared.Lookup("logging")
	text, _ := result.LookupString("instructions")
	// Cut between characters: what is not UTF-8 would spoil the answer for all backends.
	c.instructions = strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxInstructions)], ""))
	return c, nil
}

// everything is what a backend may be able to do of which nothing is known.
func everything() *capabilities {
	return &capabilities{has: [lists]bool{true, true, true, true}, subscribe: true, completions: true, logging: true}
}

// discover answers server/discover: with what the backends can do together. A backend
// that has not answered in time may be able to do everything: clients do not ask again.
// Extensions, tasks among them, are not promised.
func (g *Gateway) discover(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	v := g.viewOf(&req.Meta)
	backends := g.all()
	all := make([]*capabilities, len(backends))
	flights := make([]*flight, len(backends))
	at := time.Now()
	for i, b := range backends {
		flights[i] = g.fetch(v, b, discovery, &req.Meta)
	}
	for i, f := range flights {
		g.await(ctx, &wait{flight: f, at: at, view: v, backend: backends[i], kind: discovery})
		g.mu.RLock()
		if all[i], _ = g.knownCapabilities(v, backends[i]); all[i] == nil {
			all[i] = everything()
		}
		g.mu.RUnlock()
	}
	if ctx.Err() != nil {
		return mcp.Result{}, givenUp(ctx, req.Method)
	}
	if len(all) == 0 {
		all = []*capabilities{everything()}
	}
	instructions := g.opts.Instructions
	if instructions == "" {
		instructions = instructionsOf(backends, all)
	}
	return mcp.NewResult(mcp.DiscoverResult{
		SupportedVersions: mcp.ModernRevisions(),
		Capabilities:      union(all),
		Instructions:      instructions,
		ResultMembers: mcp.ResultMembers{
			ResultType: mcp.Complete, Meta: mcp.Object{mcp.MetaServerInfo: g.opts.Info.JSON()},
		},
	})
}

// union returns what several backends can do together. Lists change in any case: when
// backends come and go.
func union(all []*capabilities) (u mcp.ServerCapabilitySet) {
	for _, c := range all {
		if c.has[tools] {
			u.Tools = &mcp.ListCapability{ListChanged: true}
		}
		if c.has[prompts] {
			u.Prompts = &mcp.ListCapability{ListChanged: true}
		}
		if c.has[resources] {
			subscribe := c.subscribe || u.Resources != nil && u.Resources.Subscribe
			u.Resources = &mcp.ResourceCapability{ListChanged: true, Subscribe: subscribe}
		}
		if c.completions {
			u.Completions = mcp.Object{}
		}
		if c.logging {
			u.Logging = mcp.Object{}
		}
	}
	return u
}

// instructionsOf returns the instructions of the backends, under their names if there
// are several.
func instructionsOf(backends []*backend, all []*capabilities) string {
	if len(backends) == 1 {
		return all[0].instructions
	}
	var b strings.Builder
	for i, of := range backends {
		text := all[i].instructions
		if text == "" || b.Len()+len(text) > maxInstructions {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("[" + of.name + "]\n" + text)
	}
	return b.String()
}
