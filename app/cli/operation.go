package cli

import (
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/pflag"
)

// Operation are the options that say which single operation is meant. OP and SIZE are
// arguments.
type Operation struct{ scenario.Named }

// Register declares the options.
func (o *Operation) Register(f *pflag.FlagSet) {
	f.StringVarP(&o.RedOp, "op", "o", "sum", "reduction: sum, prod, min, max or avg")
	f.StringVarP(&o.Type, "datatype", "d", "float", "element type")
	f.IntVarP(&o.Root, "root", "r", 0, "root rank")
	f.BoolVar(&o.InPlace, "in-place", false, "send and receive in the same buffer")
}

// Of is the operation among a communicator's ranks.
func (o *Operation) Of(ranks int) (comm.Op, error) {
	op, err := o.Parse(ranks)
	return op, AsFlags(err)
}
