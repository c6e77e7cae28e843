package main

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/internal/decision"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// opFlags name one operation.
type opFlags struct {
	op, datatype string
	root         int
	inPlace      bool
}

func (o *opFlags) register(f *pflag.FlagSet) {
	f.StringVarP(&o.op, "op", "o", "sum", "reduction: sum, prod, min, max or avg")
	f.StringVarP(&o.datatype, "datatype", "d", "float", "element type")
	f.IntVarP(&o.root, "root", "r", 0, "root rank")
	f.BoolVar(&o.inPlace, "in-place", false, "send and receive in the same buffer")
}

// operation parses OP and SIZE for a communicator. The size is nccl-tests',
// without its rounding, as --sizes has it.
func (o *opFlags) operation(args []string, ranks int) (comm.Op, units.Bytes, error) {
	var out comm.Op
	f, err := coll.ParseFunc(args[0])
	if err != nil {
		return out, 0, err
	}
	size, err := parseSize(args[0], args[1])
	if err != nil {
		return out, 0, err
	}
	typ, err := coll.ParseDataType(o.datatype)
	if err != nil {
		return out, 0, err
	}
	red, err := coll.ParseRedOp(o.op)
	if err != nil {
		return out, 0, err
	}
	if o.root < 0 || o.root >= ranks {
		return out, 0, usage("-r %d: must be a rank from 0 to %d", o.root, ranks-1)
	}
	n := coll.ExactSizes(f, size, typ, ranks).Count
	return comm.Op{Func: f, Count: n, Type: typ, RedOp: red, Root: int32(o.root), InPlace: o.inPlace}, size, nil
}

func newExplain(a *app) *cobra.Command {
	var m machineFlags
	var o opFlags
	c := &cobra.Command{Use: "explain OP SIZE", Short: "Say why NCCL chooses what it chooses",
		Long: `explain prints the choice for one operation and size, every rival with its time or
the reason why it is off, the sizes at which the choice changes, how the work
is split, the limiting link, and every path that a rule refuses.`,
		Example: `  simccl explain all_reduce 2M
  simccl explain all_reduce 2M --topo topo.xml --nodes 4 --env NCCL_ALGO=Ring --json`,
		Args: exactly("OP", "SIZE"),
		RunE: func(_ *cobra.Command, args []string) error {
			x, err := m.load(a)
			if err != nil {
				return err
			}
			op, _, err := o.operation(args, x.Comm.NRanks)
			if err != nil {
				return err
			}
			rep, err := explain.New(explain.Input{Comm: x.Comm, Op: op, Access: x.Config.Topo.Access})
			var none *tuning.NoChoiceError
			if err != nil && !(errors.As(err, &none) && rep != nil) {
				return err
			}
			if a.json {
				if e := a.printJSON(rep); e != nil {
					return e
				}
			} else if e := a.printText(rep.Text()); e != nil {
				return e
			}
			return err
		}}
	m.register(c)
	o.register(c.Flags())
	return c
}

func newTune(a *app) *cobra.Command {
	var m machineFlags
	c := &cobra.Command{Use: "tune", Short: "Print NCCL's cost table",
		Long: `tune prints latency (us) and bandwidth (GB/s) of every collective, algorithm and
protocol as NCCL's cost model has them; bandwidth 0 is off, and explain says
why.`,
		Example: "  simccl tune\n  simccl tune --topo topo.xml --nodes 4 --json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			x, err := m.load(a)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(decision.Costs(x.Comm.Model))
			}
			_, err = fmt.Fprint(a.out, decision.CostText(x.Comm.Model))
			return err
		}}
	m.register(c)
	return c
}
