package client

import (
	"fmt"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// An OutputCheck says what becomes of a tool's result whose structured content is
// not as the tool's output schema has it.
type OutputCheck int

// What may become of it.
const (
	RefuseOutput OutputCheck = iota // the call fails with an [*OutputError]
	WarnOfOutput                    // it is logged
	IgnoreOutput                    // nothing is checked
)

// An OutputError says that structured content is not as the tool's output schema
// has it. The call was answered.
type OutputError struct {
	Tool   string
	Result *mcp.CallToolResult // as it came
	Err    error               // names the place in the content, as a JSON Pointer
}

// Error names the tool and the place.
func (e *OutputError) Error() string {
	return fmt.Sprintf("the structured content of the tool %q does not fit its output schema: %v", e.Tool, e.Err)
}

// Unwrap returns why it does not fit.
func (e *OutputError) Unwrap() error { return e.Err }

// checkOutput checks a result against what is known of its tool: "Clients SHOULD validate structured results against this schema"
// (2025-06-18 and later, server/tools, Output Schema).
func (c *Client) checkOutput(tool string, result *mcp.CallToolResult) error {
	known := c.tools.output(tool)
	if known == nil || result.Failed() {
		return nil
	}
	log := c.opts.Logger
	if result.StructuredContent == nil {
		// Nothing in it is wrong, and many servers leave it out.
		log.Warn("a result lacks the structured content that its tool's output schema promises", "name", tool)
		return nil
	}
	s, err := known.schema()
	if err != nil {
		log.Debug("an output schema cannot be checked", "name", tool, "err", err)
		return nil
	}
	if err = s.Check(result.StructuredContent); err == nil {
		return nil
	}
	err = &OutputError{Tool: tool, Result: result, Err: err}
	if c.opts.Output == WarnOfOutput {
		log.Warn("a result is not as it should be", "name", tool, "err", err)
		return nil
	}
	return badReply(mcp.MethodCallTool, err)
}
