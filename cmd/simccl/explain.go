package main

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/congestion"
	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/tuning"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// opFlags name one operation.
type opFlags struct{ scenario.Named }

func (o *opFlags) register(f *pflag.FlagSet) {
	f.StringVarP(&o.RedOp, "op", "o", "sum", "reduction: sum, prod, min, max or avg")
	f.StringVarP(&o.Type, "datatype", "d", "float", "element type")
	flags.Register(f, flags.In("", flags.Of(&o.Root, "root", "r", 0, "root rank", "workload.root", "Root")))
	f.BoolVar(&o.InPlace, "in-place", false, "send and receive in the same buffer")
}

// operation parses OP and SIZE for a communicator.
func (o *opFlags) operation(a *app, args []string, ranks int) (comm.Op, error) {
	o.Op, o.Size = args[0], args[1]
	op, err := o.Parse(ranks)
	return op, a.AsFlags(err)
}

func newExplain(a *app) *cobra.Command {
	var m cli.Machine
	var o opFlags
	c := &cobra.Command{Use: "explain OP SIZE", Short: "Say why NCCL chooses what it chooses",
		Long: `explain prints the choice for one operation and size, every rival with its time or
the reason why it is off, the sizes at which the choice changes, how the work
is split, the limiting link, and every path that a rule refuses. With --fabric it simulates the operation over that
network, as run does: the time, the fullest link, which cables queue pairs share by chance, and what would spread them.
With --network packet it also names where messages meet congestion and what other settings would change, each tried.`,
		Example: `  simccl explain all_reduce 2M
  simccl explain all_reduce 2M --topo topo.xml --nodes 4 --env NCCL_ALGO=Ring --json
  simccl explain alltoall 4M --nodes 4 --fabric spectrum-x --network packet --fault nic=node0/2:slow=2`,
		Args: cli.Exactly("OP", "SIZE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := m.Load(&a.App)
			if err != nil {
				return err
			}
			op, err := o.operation(a, args, x.Comm.NRanks)
			if err != nil {
				return err
			}
			rep, err := explain.New(explain.Input{Comm: x.Comm, Op: op, Access: x.Config.Topo.Access})
			var none *tuning.NoChoiceError
			if err != nil && !(errors.As(err, &none) && rep != nil) {
				return err
			}
			met, e := m.Congestion(cmd.Context(), &a.App, o.Named)
			if e != nil {
				return e
			} else if a.JSON {
				if e := a.PrintJSON(congestion.Beside(rep, met)); e != nil {
					return e
				}
			} else if e := a.PrintText(rep.Text() + met.Text()); e != nil {
				return e
			}
			return err
		}}
	m.Register(c)
	m.RegisterNetwork(c)
	m.RegisterFaults(c)
	o.register(c.Flags())
	return c
}

func newTune(a *app) *cobra.Command {
	var m cli.Machine
	c := &cobra.Command{Use: "tune", Short: "Print NCCL's cost table",
		Long: `tune prints latency (us) and bandwidth (GB/s) of every collective, algorithm and
protocol as NCCL's cost model has them; bandwidth 0 is off, and explain says
why.`,
		Example: "  simccl tune\n  simccl tune --topo topo.xml --nodes 4 --json",
		Args:    cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			x, err := m.Load(&a.App)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(decision.Costs(x.Comm.Model))
			}
			_, err = fmt.Fprint(a.Out, decision.CostText(x.Comm.Model))
			return err
		}}
	m.Register(c)
	return c
}
