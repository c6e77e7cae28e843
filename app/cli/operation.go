package cli

import (
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
)

// Operation are the flags and arguments that select a single operation. OP and SIZE are arguments.
type Operation struct{ scenario.Named }

// Register declares the options.
func (o *Operation) Register(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&o.RedOp, "op", "o", "sum", "reduction: sum, prod, min, max or avg"),
		flags.Of(&o.Type, "datatype", "d", "float", "element type"),
		flags.Of(&o.Root, "root", "r", 0, "root rank", "workload.root", "Root"),
		flags.Of(&o.InPlace, "in-place", "", false, "send and receive in the same buffer")))
}

// Of returns the operation for a communicator of a number of ranks.
func (o *Operation) Of(a *App, ranks int) (comm.Op, error) {
	op, err := o.Parse(ranks)
	return op, a.AsFlags(err)
}
