package client

import (
	"bytes"
	"sync"

	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A toolBook knows what lists have said of tools: which may be called twice, and
// what their output is like.
type toolBook struct {
	repeat func(*mcp.Tool) bool // set at construction, like keep
	keep   bool                 // output schemas

	listing chan struct{} // holds one value while tools are listed for the sake of a call

	mu      sync.Mutex
	tools   map[string]moment  // those that may be called twice, and as of when; guarded by mu, like what follows
	outputs map[string]*output // by tool
	bytes   int                // of all output schemas
	now     moment
}

// A moment is when a list was asked for, in what counts for a toolBook. That of a list
// out of the cache has no count.
type moment struct {
	connection int // its number
	changes    int // how often the tools had changed, as far as that was heard
	lapses     int // how often they may have while nobody listened
	count      int // of such moments
}

// Bounds of what is remembered. Further tools, and those with longer names, are not
// repeated, and their output is not checked.
const (
	maxToolBook    = 10_000
	maxToolName    = 1 << 10 // bytes
	maxOutputBytes = 8 << 20
)

// An output is a tool's output schema.
type output struct {
	raw  mcp.JSON
	once sync.Once
	read *schema.Schema // nil if it cannot be checked
	err  error          // why
}

// schema returns the schema, which is read when it is first needed.
func (o *output) schema() (*schema.Schema, error) {
	o.once.Do(func() { o.read, o.err = schema.New(o.raw) })
	return o.read, o.err
}

func (b *toolBook) init(o *Options) {
	b.repeat, b.keep = o.Repeat, o.Output != IgnoreOutput
	b.listing = make(chan struct{}, 1)
	b.forget()
}

// asOf returns what learn wants to know of a list that is asked for after it.
func (b *toolBook) asOf() moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.count++
	return b.now
}

// learn takes up what a list says, unless the tools have changed since, or the
// connection has. Outputs it does not if they may have: a result would be refused.
func (b *toolBook) learn(tools []mcp.Tool, asOf moment) {
	may := make([]bool, len(tools))
	for i := range tools {
		may[i] = b.repeat(&tools[i]) // without mu, which whoever reads from the server takes
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now.changes != asOf.changes || b.now.connection != asOf.connection {
		return
	}
	for i := range tools {
		tool := &tools[i]
		if len(tool.Name) > maxToolName {
			continue
		}
		if !may[i] {
			delete(b.tools, tool.Name)
		} else if _, known := b.tools[tool.Name]; known || len(b.tools) < maxToolBook {
			b.tools[tool.Name] = asOf
		}
		if b.keep && b.now.lapses == asOf.lapses {
			b.learnOutput(tool)
		}
	}
}

// learnOutput takes up an output schema. b.mu is held.
func (b *toolBook) learnOutput(tool *mcp.Tool) {
	old := b.outputs[tool.Name]
	if old != nil && bytes.Equal(old.raw, tool.OutputSchema) {
		return // it has been read, perhaps
	}
	if old != nil {
		b.bytes -= len(old.raw)
		delete(b.outputs, tool.Name)
	}
	size := len(tool.OutputSchema)
	if size == 0 || string(tool.OutputSchema) == "null" || len(b.outputs) == maxToolBook || b.bytes+size > maxOutputBytes {
		return
	}
	b.bytes += size
	b.outputs[tool.Name] = &output{raw: bytes.Clone(tool.OutputSchema)}
}

// forget forgets what lists have said, since they have changed.
func (b *toolBook) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.changes++
	b.tools = make(map[string]moment)
	b.outputs, b.bytes = make(map[string]*output), 0
}

// forgetOutputs forgets what may have changed while nobody listened: the server
// may be another version of itself.
func (b *toolBook) forgetOutputs() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.lapses++
	b.outputs, b.bytes = make(map[string]*output), 0
}

// repeatable reports whether a tool may be called twice, as far as is known.
func (b *toolBook) repeatable(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, may := b.tools[name]
	return may
}

// stillRepeatable reports whether a list of the connection that there is now says that a
// tool may be called twice whose call has failed. If that was on the same connection, it
// was asked for after that.
func (b *toolBook) stillRepeatable(name string, f *failure) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	asOf, may := b.tools[name]
	return may && asOf.connection == b.now.connection &&
		(asOf.connection > f.generation || asOf.count > f.at.count)
}

// connected says that there is another connection, or the first one.
func (b *toolBook) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.connection++
}

// output returns a tool's output schema, nil if none is known.
func (b *toolBook) output(name string) *output {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outputs[name]
}
