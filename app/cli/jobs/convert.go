package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/goal"
	"github.com/simccl/simccl/workload/simai"
	"github.com/spf13/cobra"
)

// targets lists the formats that convert writes.
var targets = []string{"native", "chakra", "goal", "goal-binary", "simai"}

// WorkloadConvertOptions are the flags and arguments of convert.
type WorkloadConvertOptions struct {
	Job Files
	To  string // native, chakra, goal, goal-binary or simai
	Out string // a file, of chakra the prefix of files; empty: standard output
}

func convert(a *cli.App) *cobra.Command {
	var o WorkloadConvertOptions
	c := &cobra.Command{Use: "convert FILE|DIR...", Short: "Write a job in another format",
		Long: `convert writes a job as simccl's text (native), Chakra's execution traces (chakra:
--out PREFIX gives PREFIX.0.et, PREFIX.1.et … and, with groups, PREFIX.groups.json), GOAL (goal,
goal-binary) or SimAI's rows (simai). What the format cannot say is named on
standard error.`,
		Example: "  simccl workload convert recording -o job.txt\n" +
			"  simccl workload convert job.txt --to chakra -o job\n" +
			"  simccl workload convert job.txt --to goal",
		Args: someFiles,
		RunE: cli.RunWith(a, &o, &o.Job.Names)}
	o.Job.Register(c)
	c.Flags().StringVar(&o.To, "to", "native", "`FORMAT`: "+strings.Join(targets, ", "))
	c.Flags().StringVarP(&o.Out, "out", "o", "",
		"write to `FILE` instead of standard output; the prefix of files for chakra")
	return c
}

// Run writes the job in the format.
func (o *WorkloadConvertOptions) Run(_ context.Context, a *cli.App) error {
	j, err := o.Job.Read(a)
	if err != nil {
		return err
	}
	return writeAs(a, j.Program, o.To, o.Out)
}

// writeAs writes a program in a format.
func writeAs(a *cli.App, p *workload.Program, to, out string) error {
	r := result{Format: to, Files: []string{}, Lost: []string{}}
	var write func(io.Writer) error
	switch to {
	case "native":
		write = func(w io.Writer) error { _, err := io.WriteString(w, p.Format()); return err }
	case "chakra":
		return r.print(a, r.chakra(a, p, out))
	case "goal", "goal-binary":
		f, lost, err := goal.From(p)
		if err != nil {
			return fail.Input(err)
		}
		r.Lost = append(r.Lost, lost...)
		write = f.WriteText
		if to == "goal-binary" {
			if write = f.WriteBinary; out == "" {
				return fail.Usage("--to goal-binary needs --out FILE")
			}
		}
	case "simai":
		f, lost, err := simai.From(p)
		if err != nil {
			return fail.Input(err)
		}
		r.Lost = append(r.Lost, lost...)
		write = f.Write
	default:
		return fail.Usage("--to %s: formats are %s", to, strings.Join(targets, ", "))
	}
	return r.print(a, r.stream(a, out, write))
}

// chakra writes a trace a rank, and the members of groups.
func (r *result) chakra(a *cli.App, p *workload.Program, prefix string) error {
	if prefix == "" {
		return fail.Usage("--to chakra needs --out PREFIX")
	}
	traces, groups, lost, err := chakra.From(p)
	if err != nil {
		return fail.Input(err)
	}
	r.Lost = append(r.Lost, lost...)
	for rank, t := range traces {
		if err := r.stream(a, fmt.Sprintf("%s.%d.et", prefix, rank), t.Write); err != nil {
			return err
		}
	}
	if len(groups) == 0 {
		return nil
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	return r.stream(a, prefix+".groups.json", func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
