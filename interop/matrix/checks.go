package main

import (
	"context"
	"fmt"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A check is one thing that every cell is asked.
type check struct {
	name string
	what string // that passes, for people
	// cannot names what the protocol of a cell lacks for the check, with the
	// specification's section; "" if it lacks nothing. Nil stands for nothing in
	// any cell.
	cannot func(c *cell) string
	run    func(ctx context.Context, c *cell) error
	// instead is run where the check cannot be: it asserts that what is lacking
	// is refused, or what a client gets in its place.
	instead func(ctx context.Context, c *cell) error
}

// checks are in the order in which they run, over one connection.
var checks = []check{
	{name: "discover", what: "the server's name, instructions and capabilities arrive, and the client's at the server", run: checkDiscover},
	{name: "list", what: "all pages of the tools, in order, with their schemas", run: checkList},
	{name: "call", what: "a text of quotes, control characters, U+2028 and an emoji comes back", run: checkCall},
	{
		name: "structured", what: "structured content is what the output schema says",
		cannot: before(mcp.Revision20250618, "structured content", "2025-06-18, server/tools, Structured Content"),
		run:    checkStructured, instead: checkStructuredAsText,
	},
	{name: "tool-error", what: "a failed tool is told the model", run: checkToolError},
	{name: "protocol-error", what: "code, message and data of the server's errors, and of those of the protocol", run: checkProtocolErrors},
	{name: "annotated", what: "a tool with x-mcp-header is listed as it is, and called", run: checkAnnotated},
	{
		name: "mirrored", what: "its argument is in a header on each wire of HTTP of 2026-07-28",
		cannot: withoutHeaders, run: checkMirrored, instead: checkNotMirrored,
	},
	{name: "progress", what: "progress in order, before the result", run: checkProgress},
	{name: "progress-asking", what: "progress of a call that asks: before, meanwhile and after", run: checkProgressAround},
	{name: "log", what: "log messages of the level that the call wants, and no others", run: checkLog},
	{name: "cancel", what: "the server sees that a call was cancelled", run: checkCancel},
	elicitation("accept", "accept Zoë"),
	elicitation("decline", "decline"),
	elicitation("dismiss", "cancel"),
	{
		name: "url", what: "a URL is opened in the middle of a call",
		cannot: before(mcp.Revision20251125, "elicitation by URL", "2025-11-25, client/elicitation, URL Mode Elicitation Requests"),
		run:    checkURL, instead: unasked(mcp.Revision20251125, "open", nil, checkURL),
	},
	{
		name: "url-error", what: "an error says that a URL must be opened before the call succeeds",
		cannot: before(mcp.Revision20251125, "error that has a URL opened", "2025-11-25, client/elicitation, URL Elicitation Required Error"),
		run:    checkURLError, instead: unasked(mcp.Revision20251125, "consent", nil, checkURLError),
	},
	{name: "sampling", what: "the client's model is asked", run: checkSampling},
	{name: "roots", what: "the client's roots are asked for", run: checkRoots},
	{name: "rounds", what: "two questions one after the other, in a call that waits and by results that need input", run: checkRounds},
	{name: "at-once", what: "two questions at the same time, in both ways", run: checkAtOnce},
	{name: "elsewhere", what: "a prompt and a resource ask, too", run: checkElsewhere},
	{name: "undeclared", what: "a client that has declared nothing is asked nothing, and a server that asks is refused", run: checkUndeclared},
	{name: "apart", what: "questions of two clients' calls at one time go to the client whose call it is", run: checkApart},
	{name: "completion", what: "arguments of prompts and variables of templates are completed", run: checkCompletion},
	{name: "prompt", what: "a prompt is listed and got", run: checkPrompt},
	{name: "read", what: "text, bytes, and a resource that there is not", run: checkRead},
	{name: "updated", what: "a change of the resource that was subscribed to, and of no other", run: checkUpdated},
	{name: "list-changed", what: "a new tool is announced, and listed", run: checkListChanged},
	{name: "big", what: "a result of 5 MiB", run: checkBig},
	{name: "exact", what: "numbers, escapes and unknown members, token for token, there and back", run: checkExact},
	{name: "exact-asides", what: "the same in progress, log messages, questions and answers", run: checkExactAsides},
	{
		name: "task", what: "a tool that is a task is begun, looked at and ended by a client that has its server's kind of tasks, and called by others",
		cannot: withoutTasks, run: checkTask, instead: checkNoTask,
	},
	{
		name: "task-progress", what: "the client is told how a task is, in order, before the result",
		cannot: withoutTaskProgress, run: checkTaskProgress, instead: checkTaskStates,
	},
	{
		name: "task-asking", what: "a task asks the client's model",
		cannot: withoutTasks, run: checkTaskAsks, instead: checkWork(workAsking),
	},
	{
		name: "task-cancel", what: "the server sees that a task was cancelled, be it by its client or with the call that awaits it",
		cannot: withoutTasks, run: checkTaskCancelled, instead: checkWorkCancelled,
	},
	{name: "equal-ids", what: "calls of two clients at one time with equal ids and progress tokens are not crossed", run: checkEqualIDs},
}

// before says that a feature is not in revisions before since.
func before(since mcp.Revision, feature, section string) func(*cell) string {
	return func(c *cell) string {
		for _, peer := range []struct {
			role string
			side side
		}{{"client", c.clientSide}, {"server", c.serverSide}} {
			if peer.side.revision < since {
				return fmt.Sprintf("a %s of %s has no %s (%s)", peer.role, peer.side.revision, feature, section)
			}
		}
		return ""
	}
}

// differ returns an error if two texts are not the same.
func differ(what, got, want string) error {
	if got == want {
		return nil
	}
	const most = 300
	return fmt.Errorf("%s is %.*s, want %.*s", what, most, got, most, want)
}
