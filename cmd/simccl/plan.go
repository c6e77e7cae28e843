package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/plan/export"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

func newPlan(a *app) *cobra.Command {
	var m machineFlags
	var o opFlags
	format, prove := "text", false
	c := &cobra.Command{Use: "plan OP SIZE", Short: "Print the plan of an operation: every primitive of every rank",
		Example: `  simccl plan all_reduce 64K -g 4 --nodes 1
  simccl plan alltoall 1M --format csv > flows.csv`,
		Args: exactly("OP", "SIZE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.json {
				format = "json"
			}
			if !slices.Contains([]string{"text", "csv", "goal", "json"}, format) {
				return usage("--format %s: write text, csv (SimCCL's), goal or json", format)
			}
			x, err := m.load(a)
			if err != nil {
				return err
			}
			op, _, err := o.operation(args, x.comm.NRanks)
			if err != nil {
				return err
			}
			if op.Count == 0 {
				return usage("%s of %s: no element for each of %d ranks; NCCL does nothing", args[0], args[1], x.comm.NRanks)
			}
			p, _, err := x.comm.Plan(op)
			if err != nil {
				return decisionError(err)
			}
			if prove {
				if err := check.Plan(p); err != nil {
					return failed("%v", err)
				}
			}
			w := bufio.NewWriterSize(a.out, 1<<16)
			return errors.Join(writePlan(w, p, format), w.Flush())
		}}
	m.register(c)
	o.register(c.Flags())
	c.Flags().StringVar(&format, "format", "text", "text, csv (SimCCL's list of flows), goal, or json (the list of messages)")
	c.Flags().BoolVar(&prove, "check", false, "prove the plan first")
	return c
}

func writePlan(w io.Writer, p *plan.Plan, format string) error {
	switch format {
	case "csv":
		return export.WriteFlows(w, p)
	case "goal":
		return export.WriteGOAL(w, p)
	case "json":
		return writeMessages(w, p)
	}
	return export.WriteText(w, p)
}

// message is one message of a plan in JSON.
type message struct {
	ID      int64       `json:"id"`
	From    int32       `json:"from"`
	To      int32       `json:"to"`
	Channel int32       `json:"channel"`
	Bytes   units.Bytes `json:"bytes"`
	Chunk   int32       `json:"chunk"`
	Deps    []int64     `json:"deps"` // messages whose data it carries on
	Prev    int64       `json:"prev"` // that the same program sent before, -1 for its first
}

// writeMessages writes the messages of a plan as one JSON document, a line each,
// as they are made: there may be millions.
func writeMessages(w io.Writer, p *plan.Plan) error {
	head, err := json.Marshal(map[string]any{"op": p.Req.Func.TestName(), "count": p.Req.Count, "type": p.Req.Type.TestName(), "ranks": p.Comm.NRanks,
		"algo": p.Req.Algo.String(), "proto": p.Req.Proto.String(), "channels": p.Split.NChannels})
	if err != nil {
		return err
	}
	comma := ""
	if _, err := fmt.Fprintf(w, "{\"plan\":%s,\n\"messages\":[", head); err != nil {
		return err
	}
	err = export.EachFlow(p, func(f *export.Flow) error {
		line, err := json.Marshal(message{f.ID, f.Conn.Src, f.Conn.Dst, f.Conn.Channel, f.Bytes, f.Chunk, append([]int64{}, f.Deps...), f.Prev})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n%s", comma, line)
		comma = ","
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(w, "\n]}\n")
	return err
}

// writeOps writes the list of point-to-point operations to a file that appears
// whole or not at all.
func writeOps(name string, p *plan.Plan) error {
	file, err := newfile.Create(name)
	if err != nil {
		return input(err)
	}
	format := "csv"
	if strings.HasSuffix(name, ".goal") {
		format = "goal"
	}
	w := bufio.NewWriterSize(file, 1<<16)
	if err = writePlan(w, p, format); err == nil {
		err = w.Flush()
	}
	if err = file.Finish(err); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
