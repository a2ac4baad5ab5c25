package contest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// A Program is a binary that contestants are started from. The heavy ones are
// apart, so that none pays for another's memory or start.
type Program struct {
	name string
	// dir and pkg are the module's directory, seen from the benchmarks' own
	// module, and the package.
	dir, pkg string
}

var (
	peers        = Program{"peers", ".", "./cmd/peers"}
	gosdk        = Program{"gosdk", ".", "./cmd/gosdk"}
	mcpgo        = Program{"mcpgo", ".", "./cmd/mcpgo"}
	spliceServer = Program{"mcpsplice-server", ".", "./cmd/mcpsplice"}
	spliceBinary = Program{"mcpsplice", "..", "./cmd/mcpsplice"}
)

// Paths says where the binaries are.
type Paths struct {
	dir string
	// Script is the TypeScript client; empty if it is not installed.
	Script string
}

func (p Paths) of(g Program) string { return filepath.Join(p.dir, g.name) }

// floorStdio is the command of the server behind every bridge.
func (p Paths) floorStdio() []string { return []string{p.of(peers), "floor", "stdio"} }

// Build builds the programs of the contestants and clients into dir. The directory module
// is the benchmarks' own.
func Build(ctx context.Context, module, dir string, list []Contestant, clients []Client) (Paths, error) {
	paths := Paths{dir: dir}
	programs := []Program{peers}
	for _, c := range list {
		if !slices.Contains(programs, c.Program) {
			programs = append(programs, c.Program)
		}
	}
	for _, c := range clients {
		if !c.Script && !slices.Contains(programs, c.Program) {
			programs = append(programs, c.Program)
		}
	}
	for _, g := range programs {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", paths.of(g), g.pkg)
		cmd.Dir = filepath.Join(module, g.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return paths, fmt.Errorf("building %s: %w\n%s", g.name, err, out)
		}
	}
	return paths, nil
}
