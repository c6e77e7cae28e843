package bench

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/workload/compute"
	"github.com/spf13/cobra"
)

// maxMeasurement is the largest accepted size of a measurement of kernels, in bytes.
const maxMeasurement = 64 << 20

// CalibrateComputeOptions are the flags and arguments of calibrate compute.
type CalibrateComputeOptions struct {
	File string // a measurement
	Out  string // the class; empty: standard output
}

func computeCommand(a *cli.App) *cobra.Command {
	var o CalibrateComputeOptions
	c := &cobra.Command{Use: "compute FILE",
		Short: "Make the compute class of a GPU from measured kernels",
		Long: `compute fits the class of a GPU to what kernels took on it: matrix products by shape
and precision, attention forward and backward, norms, activation functions, the
optimizer. FILE has a JSON object a line, as testdata/measured/h200x1/compute.jsonl:
one of kind machine with gpu and sm, then gemm (m, n, k, dtype), attn_fwd and
attn_bwd+fwd (b, heads, seq, head_dim), rms and swiglu (rows, cols), adam
(elements), each with us, its time in a CUDA graph, and decode (d, h, kv, ff, batch,
context, tp), a layer's step with graph_us_per_layer. What it writes is what
--compute-class of workload gen takes.`,
		Example: `  simccl calibrate compute compute.jsonl -o h200.json
  simccl workload gen --model llama-3.1-8b --gpu h200 --compute-class h200.json -o job.txt`,
		Args: cli.Exactly("FILE"),
		RunE: cli.RunWithOne(a, &o, &o.File)}
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&o.Out, "out", "o", "", "write to `FILE` instead of standard output")))
	return c
}

// fitted is the JSON output.
type fitted struct {
	Class *compute.Class `json:"class"`
	// Errors are the mean relative error of each kind of kernel, of those that take 20 µs or more.
	Errors []compute.Residual `json:"errors"`
	Files  []string           `json:"files"`
}

// Run fits a compute class to the measurement in o.File and writes it to o.Out or standard output.
func (o *CalibrateComputeOptions) Run(_ context.Context, a *cli.App) error {
	data, err := a.Read(o.File, maxMeasurement)
	if err != nil {
		return err
	}
	rows, err := compute.Rows(data, o.File)
	if err != nil {
		return err
	}
	c, err := compute.Fit(rows, o.File)
	if err != nil {
		return fail.Input(fmt.Errorf("%s: %w", o.File, err))
	}
	text, err := c.Format()
	if err != nil {
		return err
	}
	r := fitted{Class: c, Errors: c.Residuals(rows), Files: []string{}}
	if o.Out != "" {
		w, err := newfile.Create(a.Path(o.Out))
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		if err := w.Finish(err); err != nil {
			return err
		}
		r.Files = append(r.Files, o.Out)
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	to := a.Out
	if o.Out == "" {
		if _, err := a.Out.Write(text); err != nil {
			return err
		}
		to = a.Err
	}
	for _, e := range r.Errors {
		fmt.Fprintf(to, "%-14s %4d kernels, mean error %.1f %%\n", e.Kind, e.Kernels, 100*e.Mean)
	}
	return nil
}
