package decide

import (
	"context"
	"errors"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/congestion"
	"github.com/simccl/simccl/tuning"
	"github.com/spf13/cobra"
)

// ExplainOptions are the flags and arguments of explain.
type ExplainOptions struct {
	Word    string // of the glossary, in place of Machine and Op
	Machine cli.Machine
	Op      cli.Operation
}

// Explain returns `simccl explain`.
func Explain(a *cli.App) *cobra.Command {
	var o ExplainOptions
	c := &cobra.Command{Use: "explain OP SIZE | WORD", Short: "Say why NCCL chooses what it chooses",
		Long: `explain prints the choice for one operation and size, every rival with its time or
the reason why it is off, the sizes at which the choice changes, how the work
is split, the limiting link, and every path that a rule refuses. With --fabric it simulates the operation over that
network, as run does: the time, the fullest link, which cables queue pairs share by chance, and what would spread them.
With --network packet it also names where messages meet congestion and what other settings would change, each tried.

explain WORD says what a word means: ring, NVLS, LL128, busbw, PXN, rail (simccl help glossary has all).
explain walk leads one all_reduce from call to wire.`,
		Example: `  simccl explain all_reduce 2M
  simccl explain LL128
  simccl explain all_reduce 2M --topo topo.xml --nodes 4 --env NCCL_ALGO=Ring --json
  simccl explain alltoall 4M --nodes 4 --fabric spectrum-x --network packet --fault nic=node0/2:slow=2`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Word = wordOf(args); o.Word == "" {
				o.Op.Op, o.Op.Size = args[0], args[1]
			}
			return o.Run(cmd.Context(), a)
		}}
	o.Machine.Register(c)
	o.Machine.RegisterNetwork(c)
	o.Machine.RegisterFaults(c)
	o.Op.Register(c)
	return c
}

// wordOf returns the glossary word that the arguments form, "double binary tree" with or without quotes.
func wordOf(args []string) string {
	w, _ := explain.FindWord(strings.Join(args, " "))
	return w.Name
}

// arguments wants a word, or an operation and a size.
func arguments(cmd *cobra.Command, args []string) error {
	if wordOf(args) != "" {
		return nil
	}
	if len(args) != 1 {
		return cli.Exactly("OP", "SIZE")(cmd, args)
	}
	if _, err := coll.ParseFunc(args[0]); err != nil {
		return fail.Usage("%s is no word of the glossary (simccl help glossary), nor an operation", args[0])
	}
	return cli.Exactly("OP", "SIZE")(cmd, args)
}

// Run prints the reasons. If NCCL cannot choose, it prints what is known and returns the error of tuning.
func (o *ExplainOptions) Run(ctx context.Context, a *cli.App) error {
	if w, ok := explain.FindWord(o.Word); ok {
		if a.JSON {
			return a.PrintJSON(w)
		}
		return a.PrintText(w.Print())
	}
	x, err := o.Machine.Load(a)
	if err != nil {
		return err
	}
	op, err := o.Op.Of(a, x.Comm.NRanks)
	if err != nil {
		return err
	}
	rep, err := explain.New(explain.Input{Comm: x.Comm, Op: op, Access: x.Config.Topo.Access})
	var none *tuning.NoChoiceError
	if err != nil && !(errors.As(err, &none) && rep != nil) {
		return err
	}
	met, e := o.Machine.Congestion(ctx, a, o.Op.Named)
	switch {
	case e != nil:
		return e
	case a.JSON:
		e = a.PrintJSON(congestion.Beside(rep, met))
	default:
		e = a.PrintText(rep.Text() + met.Text())
	}
	if e != nil {
		return e
	}
	return err
}
