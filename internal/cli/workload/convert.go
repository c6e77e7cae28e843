package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/internal/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/goal"
	"github.com/simccl/simccl/workload/simai"
	"github.com/spf13/cobra"
)

// targets are what convert writes.
var targets = []string{"native", "chakra", "goal", "goal-binary", "simai"}

func convert(a *cli.App) *cobra.Command {
	var f flags
	var to, out string
	c := &cobra.Command{Use: "convert FILE|DIR...", Short: "Write a job in another format",
		Long: `convert writes a job as simccl's text (native), Chakra's execution traces (chakra:
--out PREFIX gives PREFIX.0.et, PREFIX.1.et … and PREFIX.groups.json), GOAL (goal,
goal-binary) or SimAI's rows (simai). What the format cannot say is named on
standard error.`,
		Example: "  simccl workload convert recording -o job.txt\n  simccl workload convert job.txt --to chakra -o job\n  simccl workload convert job.txt --to goal",
		Args:    some,
		RunE: func(_ *cobra.Command, args []string) error {
			j, err := read(a, args, f)
			if err != nil {
				return err
			}
			return writeAs(a, j.Program, to, out)
		}}
	f.add(c)
	c.Flags().StringVar(&to, "to", "native", "`FORMAT`: "+strings.Join(targets, ", "))
	c.Flags().StringVarP(&out, "out", "o", "", "write to `FILE` instead of standard output; the prefix of files for chakra")
	return c
}

// writeAs writes a program in a format.
func writeAs(a *cli.App, p *workload.Program, to, out string) error {
	switch to {
	case "native":
		return write(a, out, p.Format())
	case "chakra":
		return writeChakra(a, p, out)
	case "goal", "goal-binary":
		f, lost, err := goal.From(p)
		if err != nil {
			return fail.Input(err)
		}
		warn(a, to, lost)
		if to == "goal" {
			return stream(a, out, f.WriteText)
		}
		if out == "" {
			return fail.Usage("--to goal-binary needs --out FILE")
		}
		return stream(a, out, f.WriteBinary)
	case "simai":
		f, lost, err := simai.From(p)
		if err != nil {
			return fail.Input(err)
		}
		warn(a, to, lost)
		return stream(a, out, f.Write)
	}
	return fail.Usage("--to %s: formats are %s", to, strings.Join(targets, ", "))
}

// warn names what a format cannot say.
func warn(a *cli.App, format string, lost []string) {
	for _, what := range lost {
		a.Warn("%s does not say: %s", format, what)
	}
}

// stream writes to a file, or to standard output.
func stream(a *cli.App, name string, f func(io.Writer) error) error {
	if name == "" || name == "-" {
		return f(a.Out)
	}
	w, err := newfile.Create(a.Path(name))
	if err != nil {
		return err
	}
	return w.Finish(f(w))
}

func writeChakra(a *cli.App, p *workload.Program, prefix string) error {
	if prefix == "" {
		return fail.Usage("--to chakra needs --out PREFIX")
	}
	traces, groups, lost, err := chakra.From(p)
	if err != nil {
		return fail.Input(err)
	}
	warn(a, "chakra", lost)
	for r, t := range traces {
		if err := stream(a, fmt.Sprintf("%s.%d.et", prefix, r), t.Write); err != nil {
			return err
		}
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	return stream(a, prefix+".groups.json", func(w io.Writer) error { _, err := w.Write(append(bytes.TrimSpace(text), '\n')); return err })
}
