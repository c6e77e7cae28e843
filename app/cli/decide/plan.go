package decide

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/plan/export"
	"github.com/simccl/simccl/plan/msccl"
	"github.com/spf13/cobra"
)

// PlanOptions are the flags and arguments of plan.
type PlanOptions struct {
	Machine cli.Machine
	Op      cli.Operation
	Format  string // text, csv, goal, msccl or json
	Check   bool   // prove the plan first
}

// Plan returns `simccl plan`.
func Plan(a *cli.App) *cobra.Command {
	var o PlanOptions
	c := &cobra.Command{Use: "plan OP SIZE",
		Short: "Print the plan of an operation: every primitive of every rank",
		Example: `  simccl plan all_reduce 64K -g 4 --nodes 1
  simccl plan alltoall 1M --format csv > flows.csv`,
		Args: cli.Exactly("OP", "SIZE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Op.Op, o.Op.Size = args[0], args[1]
			return o.Run(cmd.Context(), a)
		}}
	o.Machine.Register(c)
	o.Op.Register(c)
	c.Flags().StringVar(&o.Format, "format", "text", "text, csv (SimCCL's list of flows), goal, msccl "+
		"(XML, where it can say the plan), or json (the list of messages)")
	c.Flags().BoolVar(&o.Check, "check", false, "prove the plan first")
	return c
}

// Run prints the plan.
func (o *PlanOptions) Run(_ context.Context, a *cli.App) error {
	format := o.Format
	if a.JSON {
		format = "json"
	}
	if !slices.Contains([]string{"text", "csv", "goal", "msccl", "json"}, format) {
		return fail.Usage("--format %s: write text, csv (SimCCL's), goal, msccl or json", format)
	}
	x, err := o.Machine.Load(a)
	if err != nil {
		return err
	}
	op, err := o.Op.Of(a, x.Comm.NRanks)
	if err != nil {
		return err
	}
	if op.Count == 0 {
		return fail.Usage("%s of %s: no element for each of %d ranks; NCCL does nothing", o.Op.Op, o.Op.Size,
			x.Comm.NRanks)
	}
	p, _, err := x.Comm.Plan(op)
	if err != nil {
		return err
	}
	if o.Check {
		if err := check.Plan(p); err != nil {
			return fail.Check("%v", err)
		}
	}
	w := bufio.NewWriterSize(a.Out, 1<<16)
	return errors.Join(writePlan(w, p, format), w.Flush())
}

func writePlan(w io.Writer, p *plan.Plan, format string) error {
	switch format {
	case "csv":
		return export.WriteFlows(w, p)
	case "goal":
		return export.WriteGOAL(w, p)
	case "msccl":
		s, err := msccl.FromPlan(p, "simccl")
		if err != nil {
			return fail.Argument(err)
		}
		_, err = w.Write(s.XML())
		return err
	case "json":
		return export.WriteMessages(w, p)
	}
	return export.WriteText(w, p)
}
