package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// readDocument returns a document by its path from the root of the repository.
func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents are those that tell people how the program is used.
func documents(t *testing.T) []string {
	t.Helper()
	below, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(below) == 0 {
		t.Fatalf("no documents below docs, %v", err)
	}
	all := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"}
	for _, name := range below {
		if filepath.Base(name) != "interop.md" { // whose lines name peers, one of them mcpsplice
			all = append(all, "docs/"+filepath.Base(name))
		}
	}
	return all
}

var (
	inCode     = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]+`")
	longFlag   = regexp.MustCompile(`(?:^|[^\w-])--([a-z][a-z-]*)`)
	invocation = regexp.MustCompile(`\bmcpsplice ([a-z]+)([^\n|#]*)`)
	flagRow    = regexp.MustCompile("(?m)^\\| `(?:-\\w, )?--.*$")
	makeTarget = regexp.MustCompile(`(?:^|\s|\x60)make ([a-z][a-z-]*)`)
)

// TestDocumentsNameFlagsThatThereAre: each flag in a document is one of some command,
// and in a command line one of that command.
func TestDocumentsNameFlagsThatThereAre(t *testing.T) {
	root := cli.Root()
	known := map[string]bool{"help": true, "version": true}
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	lines := 0
	for _, name := range documents(t) {
		for _, code := range inCode.FindAllString(readDocument(t, name), -1) {
			for _, m := range longFlag.FindAllStringSubmatch(code, -1) {
				if !known[m[1]] {
					t.Errorf("%s names --%s, which no command has:\n%s", name, m[1], code)
				}
			}
			for _, m := range invocation.FindAllStringSubmatch(code, -1) {
				lines++
				if err := understood(root, m[1], m[2]); err != nil {
					t.Errorf("%s: %v in %s", name, err, m[0])
				}
			}
		}
	}
	if lines < 10 {
		t.Errorf("only %d command lines were found", lines)
	}
}

// understood reports what a command line names that there is not.
func understood(root *cobra.Command, command, rest string) error {
	cmd, _, err := root.Find([]string{command})
	if err != nil || cmd == root {
		return fmt.Errorf("there is no command %q", command)
	}
	own, _, _ := strings.Cut(rest+" ", " -- ")
	for _, m := range longFlag.FindAllStringSubmatch(own, -1) {
		if cmd.Flags().Lookup(m[1]) == nil && m[1] != "help" {
			return fmt.Errorf("%s has no flag --%s", command, m[1])
		}
	}
	return nil
}

// TestReadmeListsTheFlagsOfServe, all of them, with their defaults.
func TestReadmeListsTheFlagsOfServe(t *testing.T) {
	serve, _, err := cli.Root().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	rows := flagRow.FindAllString(readDocument(t, "README.md"), -1)
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		i := slices.IndexFunc(rows, func(row string) bool {
			return regexp.MustCompile("--" + f.Name + "[` ]").MatchString(strings.Split(row, "|")[1])
		})
		if i < 0 {
			t.Errorf("README.md does not list --%s", f.Name)
			return
		}
		said := strings.Trim(strings.Split(rows[i], "|")[2], " `")
		if ignored := []string{"", "[]", "false"}; !slices.Contains(ignored, f.DefValue) && said != f.DefValue {
			t.Errorf("README.md says that the default of --%s is %q, and it is %q", f.Name, said, f.DefValue)
		}
	})
}

// TestCommandLineIsDocumented: the commands, and the exit codes with their kinds.
func TestCommandLineIsDocumented(t *testing.T) {
	text := readDocument(t, "docs/cli.md")
	for _, cmd := range cli.Root().Commands() {
		if !strings.Contains(text, "\n| `"+cmd.Name()+" ") {
			t.Errorf("docs/cli.md does not list %s", cmd.Name())
		}
	}
	for code := cli.ExitUnexpected; code <= cli.ExitInterrupted; code++ {
		row := fmt.Sprintf("\n| %d | `%s` | ", code, code)
		if code == cli.ExitUnexpected || code.String() != cli.ExitUnexpected.String() {
			if !strings.Contains(text, row) {
				t.Errorf("docs/cli.md lacks the row %q", row)
			}
		}
	}
}

// TestDocumentsNameTargetsOfMake that there are.
func TestDocumentsNameTargetsOfMake(t *testing.T) {
	makefile := readDocument(t, "Makefile")
	for _, name := range documents(t) {
		for _, code := range inCode.FindAllString(readDocument(t, name), -1) {
			for _, m := range makeTarget.FindAllStringSubmatch(code, -1) {
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					t.Errorf("%s names make %s, which the Makefile has not", name, m[1])
				}
			}
		}
	}
}
