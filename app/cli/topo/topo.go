// Package topo implements the commands of topo: it shows, checks, compares, converts and generates topology
// files, lists named machines, generates networks, and detects the machine that the program runs on.
//
// What it must not know: what is decided on a machine.
package topo

import (
	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/spf13/cobra"
)

// Command returns `simccl topo`.
func Command(a *cli.App) *cobra.Command {
	return cli.Group("topo", "Inspect topology files", showCommand(a), lintCommand(a), diff(a), convert(a),
		detect(a), fabricCommand(a), list(a), gen(a), anonymous(a))
}

// oneFile sets --topo from the argument; it returns a usage error for two files.
func oneFile(m *cli.Machine, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if len(args) > 1 {
		return fail.Usage("one FILE, not %d; A.xml:4,B.xml:2 joins unequal nodes", len(args))
	}
	if m.Topo != "" {
		return fail.Usage("the topology is given twice: %s and --topo %s", args[0], m.Topo)
	}
	m.Topo = args[0]
	return nil
}

// write prints a topology as NCCL's XML, with --json as elements.
func write(a *cli.App, root *decl.Element) error {
	if a.JSON {
		return a.PrintJSON(show.ElementJSON(root))
	}
	return a.PrintText(string(topoxml.Write(root)))
}
