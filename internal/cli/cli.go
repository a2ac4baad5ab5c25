// Package cli is the mcpsplice program: its commands, their flags, and how they
// end. It is built on the exported packages of this module, as any other user
// of the library would be.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Streams are the standard streams of the program. Nothing but data goes to
// Out: messages to people go to Err.
type Streams struct {
	In, Out *os.File
	Err     io.Writer
}

// errInterrupted is the cause with which a signal ends the context of a command.
var errInterrupted = errors.New("interrupted")

// Main runs the program with the arguments that follow its name, and returns
// how it ends. The first SIGINT, SIGTERM or SIGHUP ends the command's context;
// after a second one Main returns at once, with the command still running. A SIGHUP
// that whoever started the program has it ignore (nohup) stays ignored.
func Main(ctx context.Context, args []string, streams Streams) ExitCode {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	streams.Err = newConsole(streams.Err)
	ended := make(chan ExitCode, 1)
	go func() { ended <- run(ctx, args, streams) }()
	for range 2 {
		select {
		case code := <-ended:
			return code
		case <-signals:
			cancel(errInterrupted)
		}
	}
	return ExitInterrupted
}

// run runs one command to its end and says what went wrong, if anything did.
func run(ctx context.Context, args []string, streams Streams) ExitCode {
	a := newApp(streams)
	root := newRoot(a)
	root.SetArgs(append([]string{}, args...))
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	cmd, err := root.ExecuteContextC(ctx)
	a.console.finish()
	if err == nil {
		return ExitOK
	}
	code := codeOf(err)
	if errors.Is(context.Cause(ctx), errInterrupted) {
		code = ExitInterrupted
		err = interruption(err)
	}
	a.asJSON = a.asJSON || slices.Contains(ownArgs(args), "--json") // the flags may not have been read so far
	a.authorized = givesToken(cmd)
	a.fail(err, code)
	return code
}

// givesToken reports whether the flags of a command say who we are.
func givesToken(cmd *cobra.Command) bool {
	headers, err := cmd.Flags().GetStringArray("header")
	return err == nil && slices.ContainsFunc(headers, func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return strings.EqualFold(name, "Authorization")
	})
}

// ownArgs are the arguments before "--".
func ownArgs(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// An app is what the commands have in common.
type app struct {
	Streams
	console *console // Err
	columns int      // of Out, 0 if it is no terminal
	style   style    // of Out
	asJSON  bool     // the flag --json
	inTaken bool     // an argument is what stdin holds

	authorized bool // a token was given
}

func newApp(streams Streams) *app {
	a := &app{Streams: streams}
	var ok bool
	if a.console, ok = streams.Err.(*console); !ok {
		a.console = newConsole(streams.Err)
		a.Err = a.console
	}
	if columns, ok := terminal(streams.Out); ok {
		a.columns = cmp.Or(columns, defaultColumns)
	}
	a.style = newStyle(a.columns > 0, os.Getenv)
	return a
}

// notice tells people something.
func (a *app) notice(format string, args ...any) {
	if a.asJSON {
		a.errLine(struct {
			Notice string `json:"notice"`
		}{fmt.Sprintf(format, args...)})
		return
	}
	// Whom stderr does not reach cannot be told so.
	_, _ = fmt.Fprintf(a.Err, "mcpsplice: "+format+"\n", args...)
}

const rootLong = `mcpsplice connects any MCP client to any MCP server: over any transport, across
every revision of the protocol.

A server is named by its URL, or by the command that starts it; "demo" is the
built-in one. The command stands after --, which always ends the flags of
mcpsplice itself.

Exit codes:
  0  all went well                  5  the tool reported an error
  1  something unexpected           6  no such tool, resource or prompt
  2  wrong usage or configuration   7  no common protocol or revision
  3  authorization needed           8  timed out
  4  the server is unreachable    130  interrupted`

const rootExample = `  mcpsplice ls demo
  mcpsplice call demo add a=1 b=2
  mcpsplice ls -- npx -y @modelcontextprotocol/server-everything`

const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}{{if .HasExample}}

Example:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help says more about a command.{{end}}
`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:                        "mcpsplice",
		Short:                      "Connect any MCP client to any MCP server",
		Long:                       rootLong,
		Example:                    rootExample,
		Version:                    version(),
		Args:                       unknownCommand,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpCommand(newHelpCmd(root))
	root.SetVersionTemplate("mcpsplice {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newListCmd(a), newCallCmd(a), newReadCmd(a), newPromptCmd(a), newCompleteCmd(a), newWatchCmd(a),
		newServeCmd(a), newProbeCmd(a), newVersionCmd(a),
	)
	addCompletion(root)
	return root
}

// newHelpCmd is cobra's own command, but one that refuses what is no command.
func newHelpCmd(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:                   "help [COMMAND]",
		Short:                 "Say more about a command",
		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(args) == 0 {
				for _, c := range root.Commands() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root && len(rest) > 0 {
				return unknownCommand(root, rest)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// addJSONFlag adds --json to a command.
func (a *app) addJSONFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&a.asJSON, "json", false, usage)
}
