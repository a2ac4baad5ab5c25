package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// This file says in plain words why a server could not be connected to, and what became
// of a call.

// A connectError is why a target could not be connected to. Its text is the exact cause.
type connectError struct {
	target *target
	err    error
}

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// connecting returns err as that of connecting to a target.
func connecting(t *target, err error) error {
	if err == nil {
		return nil
	}
	return &connectError{t, err}
}

// A diagnosis is what people are told of an error. Either may be empty.
type diagnosis struct {
	said string // what was tried, and what came of it
	hint string // the way out
}

// diagnose says why a connection was not made, or why a call has got no answer; nothing
// of any other error.
func diagnose(err error) diagnosis {
	e, ok := errors.AsType[*connectError](err)
	if !ok {
		return diagnoseCall(err)
	}
	var d diagnosis
	switch {
	case e.target.command != nil:
		d = diagnoseCommand(e.target.command, err)
	case e.target.url != nil:
		d = diagnoseURL(e.target, err)
	}
	if d.said == "" {
		d.said = "connecting to " + e.target.shown() + ": " + innermost(e.err)
	}
	if d.hint == "" && e.target.era != mcp.NoEra && codeOf(err) == ExitMismatch {
		d.hint = "without --era " + e.target.era.String() + " both eras are tried"
	}
	return d
}

// diagnoseCall says what is known of a call that the server has not answered.
func diagnoseCall(err error) diagnosis {
	e, ok := errors.AsType[*mcp.CallError](err)
	if !ok {
		return diagnosis{}
	}
	var d diagnosis
	switch e.Kind {
	case mcp.TimedOut:
		d.said = "the server did not answer in time"
	case mcp.ConnectionLost:
		d.said = "the connection to the server was lost"
	case mcp.Unreachable:
		d.said = "the server cannot be reached any more"
	case mcp.BadReply:
		d.said = "what the server answered is not MCP"
	default:
		return d // limits, and what a revision cannot do, say so themselves
	}
	switch {
	case e.Method != mcp.MethodCallTool:
	case e.Outcome == mcp.MaybeExecuted:
		d.said += "; the tool may have been called"
	case e.Outcome == mcp.NotSent:
		d.said += "; the tool was not called"
	}
	return d
}

// shown names a target in a sentence.
func (t *target) shown() string {
	if t.command != nil {
		return quoted(t.command.Path)
	}
	return shorten(t.String(), 2*maxText)
}

// innermost is what is left of an error without the calls that it failed, which are ours
// and not the user's.
func innermost(err error) string {
	for {
		failed, ok := errors.AsType[*mcp.CallError](err)
		if !ok {
			return err.Error()
		}
		if failed.Err == nil {
			return string(failed.Kind)
		}
		err = failed.Err
	}
}

// maxShown is how much of what a program printed is in a sentence. The cause has more.
const maxShown = 160 // characters

// quoted returns a text of somebody else's for a sentence: in one line, and bounded.
func quoted(text string) string {
	return `"` + shorten(clean(strings.TrimSpace(text)), maxShown) + `"`
}

// refusal is what there is to say of a server that answers, and does not begin.
func refusal(where string, err error) diagnosis {
	if errors.Is(err, session.ErrRevision) {
		return diagnosis{said: where + " and mcpsplice have no revision of MCP in common"}
	}
	if _, ok := saidByBridge(err, "kind"); ok {
		return diagnosis{said: where + " is a bridge, and the server behind it does not answer"}
	}
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok && jsonrpc.FromPeer(err) {
		return diagnosis{said: fmt.Sprintf("%s answers, and refuses to begin: %s", where, quoted(said.Message))}
	}
	return diagnosis{}
}

// speaksNoMCP reports whether a program that was started is no server: it sends back
// what it gets, or wrote something else to its stdout and no message, and did not end
// as a server does that has met with an obstacle.
func speaksNoMCP(err error) bool {
	e, ok := errors.AsType[*stdio.StartError](err)
	if !ok || e.Echo {
		return ok
	}
	return e.Output != "" && (e.Exit == exitedWell || e.Exit == "" && failureKind(err) == mcp.ConnectionLost)
}

// exitedWell is how stdio tells of a program that had nothing to complain about.
const exitedWell = "exit status 0"

const wantedServer = "name the command of an MCP server, as in -- npx -y @modelcontextprotocol/server-everything"

// diagnoseCommand says why a server that a command starts was not connected to.
func diagnoseCommand(command *stdio.Command, err error) diagnosis {
	e, ok := errors.AsType[*stdio.StartError](err)
	if !ok {
		return diagnosis{}
	}
	name := quoted(command.Path)
	late, isLate := errors.AsType[*timeoutError](err)
	switch {
	case errors.Is(err, stdio.ErrNotFound), errors.Is(err, stdio.ErrNotExecutable):
		return notStarted(command, err)
	case e.Echo:
		return diagnosis{name + " does not speak MCP: it sends back what it is sent", wantedServer}
	case speaksNoMCP(err) && e.Exit != "":
		return diagnosis{fmt.Sprintf("%s does not speak MCP: it printed %s and exited", name, quoted(e.Output)), wantedServer}
	case speaksNoMCP(err):
		return diagnosis{fmt.Sprintf("%s does not speak MCP: it printed %s", name, quoted(e.Output)), wantedServer}
	case e.Exit != "":
		return diagnosis{fmt.Sprintf("%s ended before it answered (%s)%s", name, e.Exit, written(e)), exitHint(e)}
	case isLate:
		return diagnosis{fmt.Sprintf("%s was started, but did not answer within %v%s", name, late.limit, written(e)),
			"is it an MCP server that speaks over stdin and stdout? some need an argument for that; --timeout gives it longer"}
	}
	return refusal(name, err)
}

// notStarted is what there is to say of a program that is not there, or is none.
func notStarted(command *stdio.Command, err error) diagnosis {
	name := quoted(command.Path)
	switch {
	case errors.Is(err, stdio.ErrNotExecutable):
		return diagnosis{name + " is there, but cannot be run", "is it a program? a script needs a first line with #! and the right to be run (chmod +x), or the name of its interpreter before it"}
	case command.Path == demoTarget, strings.Contains(command.Path, "://"):
		return diagnosis{"there is no program " + name, "after -- stands a command; a URL, and demo, stand without --"}
	case strings.Contains(command.Path, " ") && len(command.Args) == 0:
		return diagnosis{"there is no program " + name, "write the words of the command without quotes around them all: -- " + clean(command.Path)}
	case strings.ContainsAny(command.Path, `/\`):
		return diagnosis{"there is no program " + name, "is the path right? a relative one begins in the current directory, or that of --cwd"}
	}
	return diagnosis{"there is no program " + name + " in the directories of PATH", "is it installed, and the name spelled right? a program elsewhere is named by its path"}
}

// written is what a program wrote before it ended, or did not answer.
func written(e *stdio.StartError) string {
	var text string
	if e.Output != "" {
		text = ", and printed " + quoted(e.Output)
	}
	lines := strings.Split(strings.TrimSpace(e.Stderr), "\n")
	if last := lines[len(lines)-1]; last != "" {
		text += "; its stderr ends with " + quoted(last)
	}
	return text
}

func exitHint(e *stdio.StartError) string {
	switch {
	case e.Stderr != "" || e.Output != "":
		return "what it wrote says why, if it is an MCP server"
	case e.Exit == exitedWell:
		return "is it an MCP server? one runs until its input ends"
	}
	return "it wrote nothing that says why; is it an MCP server, and has it all arguments that it needs?"
}
