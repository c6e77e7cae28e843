package main

import (
	"bufio"
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

func newPlan(a *app) *cobra.Command {
	var m cli.Machine
	var o opFlags
	format, prove := "text", false
	c := &cobra.Command{Use: "plan OP SIZE", Short: "Print the plan of an operation: every primitive of every rank",
		Example: `  simccl plan all_reduce 64K -g 4 --nodes 1
  simccl plan alltoall 1M --format csv > flows.csv`,
		Args: cli.Exactly("OP", "SIZE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.JSON {
				format = "json"
			}
			if !slices.Contains([]string{"text", "csv", "goal", "msccl", "json"}, format) {
				return usage("--format %s: write text, csv (SimCCL's), goal, msccl or json", format)
			}
			x, err := m.Load(&a.App)
			if err != nil {
				return err
			}
			op, err := o.operation(a, args, x.Comm.NRanks)
			if err != nil {
				return err
			}
			if op.Count == 0 {
				return usage("%s of %s: no element for each of %d ranks; NCCL does nothing", args[0], args[1], x.Comm.NRanks)
			}
			p, _, err := x.Comm.Plan(op)
			if err != nil {
				return err
			}
			if prove {
				if err := check.Plan(p); err != nil {
					return failed("%v", err)
				}
			}
			w := bufio.NewWriterSize(a.Out, 1<<16)
			return errors.Join(writePlan(w, p, format), w.Flush())
		}}
	m.Register(c)
	o.register(c.Flags())
	c.Flags().StringVar(&format, "format", "text", "text, csv (SimCCL's list of flows), goal, msccl (XML, where it can say the plan), or json (the list of messages)")
	c.Flags().BoolVar(&prove, "check", false, "prove the plan first")
	return c
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
