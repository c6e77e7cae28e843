package topo

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/show"
	"github.com/spf13/cobra"
)

// DiffOptions are the flags and arguments of diff.
type DiffOptions struct{ Old, New string }

func diff(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "diff OLD NEW", Short: "Compare two topology files",
		Long: `diff says what two topologies declare differently: devices by bus id, nets by
name, CPUs by NUMA number, anywhere in the file; order, ranks and host
hashes do not count. Status 7 where there is a difference.`,
		Example: "  simccl topo diff old.xml new.xml", Args: cli.Exactly("OLD", "NEW"),
		RunE: cli.RunOf(a, func(args []string) cli.Runner { return &DiffOptions{args[0], args[1]} })}
}

// Run prints the differences, and fails where there are any.
func (o *DiffOptions) Run(_ context.Context, a *cli.App) error {
	var specs [2]*topo.Spec
	for i, file := range []string{o.Old, o.New} {
		var err error
		if specs[i], err = scenario.Topology(file, a.Options(nil)); err != nil {
			return err
		}
	}
	changes := show.Diff(specs[0], specs[1])
	if a.JSON {
		if err := a.Encode("  ", true, append([]show.Change{}, changes...)); err != nil {
			return err
		}
	} else {
		for _, c := range changes {
			fmt.Fprintln(a.Out, c)
		}
	}
	if len(changes) > 0 {
		return fail.Check("%d differences", len(changes))
	}
	return nil
}
