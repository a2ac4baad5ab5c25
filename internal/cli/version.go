package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/spf13/cobra"
)

// linkedVersion is set by -ldflags "-X …/internal/cli.linkedVersion=1.2.3".
var linkedVersion string

// version returns the program's version: as it was linked in, or else as the
// build knows it.
func version() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

func implementation() mcp.Implementation {
	return mcp.Implementation{Name: "mcpsplice", Version: version()}
}

type versionOptions struct {
	*app
}

func newVersionCmd(a *app) *cobra.Command {
	o := &versionOptions{app: a}
	cmd := &cobra.Command{
		Use:                   "version [flags]",
		Short:                 "Print the version, and the protocol revisions it speaks",
		Long:                  "Print the version of this program, of Go, and the revisions of MCP that it\nspeaks, newest first.",
		Example:               "  mcpsplice version --json",
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE:                  func(*cobra.Command, []string) error { return versionRun(o) },
	}
	a.addJSONFlag(cmd, "print one JSON object")
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("", "%s takes no arguments", cmd.CommandPath())
	}
	return nil
}

func versionRun(o *versionOptions) error {
	type report struct {
		Version   string         `json:"version"`
		Go        string         `json:"go"`
		Platform  string         `json:"platform"`
		Revisions []mcp.Revision `json:"revisions"`
	}
	r := report{
		version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH,
		append(mcp.ModernRevisions(), mcp.LegacyRevisions()...),
	}
	if o.asJSON {
		return o.outLine(r)
	}
	revisions := make([]string, len(r.Revisions))
	for i, revision := range r.Revisions {
		revisions[i] = string(revision)
	}
	_, err := fmt.Fprintf(o.Out, "mcpsplice %s (%s, %s)\nMCP %s\n", r.Version, r.Go, r.Platform, strings.Join(revisions, ", "))
	return err
}
