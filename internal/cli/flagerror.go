package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file says what is wrong with flags and names of commands.

// flagError is the error of flags that cannot be read, in words of this program.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return invalidValue(cmd, invalid)
	}
	if required, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		flag := required.GetFlag()
		value, _ := pflag.UnquoteUsage(flag)
		return usagef("as in --"+flag.Name+" "+value, "--%s needs a value", flag.Name)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = name[1:]
		}
		return usagef(unknownFlagHint(cmd, name), "unknown flag: %s", name)
	}
	return &usageError{err, listsFlags(cmd)}
}

func listsFlags(cmd *cobra.Command) string { return cmd.CommandPath() + " --help lists the flags" }

func invalidValue(cmd *cobra.Command, e *pflag.InvalidValueError) error {
	flag := e.GetFlag()
	switch flag.Value.Type() {
	case "duration":
		return usagef("a time has a unit, as in --"+flag.Name+" 30s, or 5m, or 1h", "--%s must be a time, not %q", flag.Name, e.GetValue())
	case "int":
		return usagef("", "--%s must be a whole number, not %q", flag.Name, e.GetValue())
	case "bool":
		return usagef("", "--%s takes no value", flag.Name)
	}
	return &usageError{e, listsFlags(cmd)}
}

// unknownFlagHint returns the way out of a flag that there is not: the nearest one, or
// what else was meant, if that is likely.
func unknownFlagHint(cmd *cobra.Command, name string) string {
	isLong := strings.HasPrefix(name, "--")
	if near := nearFlags(cmd, name); isLong && len(near) > 0 {
		return "did you mean " + joinOr(near) + "? " + listsFlags(cmd)
	}
	// What stands before it, as far as it was read.
	words := cmd.Flags().Args()
	isTarget := len(words) > 0 && (words[0] == demoTarget || strings.Contains(words[0], "://"))
	switch command := cmd.Name(); {
	case len(words) > 0 && !isTarget && (command == "ls" || command == "probe" || command == "serve"):
		return fmt.Sprintf("the command of a server stands after --, as in %s -- %s ARGS...", cmd.CommandPath(), clean(strings.Join(words, " ")))
	case isLong && len(words) > 1 && (command == "call" || command == "prompt"):
		return fmt.Sprintf("is it an argument of %s? that is written %s=VALUE, without --; %s", clean(words[1]), clean(name[2:]), listsFlags(cmd))
	}
	return listsFlags(cmd)
}

// otherNames are flags by names that they have elsewhere.
var otherNames = map[string]string{
	"port": "listen", "host": "listen", "bind": "listen", "address": "listen", "addr": "listen",
	"token": "header", "auth": "header", "bearer": "header", "dir": "cwd", "output": "out", "arguments": "args", "params": "args",
	"verbose": "log-level", "debug": "log-level",
}

// nearFlags returns the flags of a command that a name was meant for.
func nearFlags(cmd *cobra.Command, name string) []string {
	if other := cmd.Flags().Lookup(otherNames[strings.TrimLeft(name, "-")]); other != nil {
		return []string{"--" + other.Name}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return nearest(name, names)
}

// unknownCommand refuses what is no command, and names the nearest.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help lists the commands"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	} else if args[0] == demoTarget || strings.Contains(args[0], "://") {
		hint = "a command stands before a server, as in mcpsplice ls " + clean(args[0])
	}
	return usagef(hint, "unknown command %q", args[0])
}

// addCompletion adds cobra's command that makes scripts for shells, so that what is
// wrong with its arguments is wrong usage.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return // invariant: cobra has just added it
	}
	completion.Args, completion.SuggestionsMinimumDistance = unknownCommand, root.SuggestionsMinimumDistance
	completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range completion.Commands() {
		shell.Args = noArgs
	}
}

// exampleOf returns the first example of a command.
func exampleOf(cmd *cobra.Command) string {
	first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	return "as in " + first
}
