package bench

import (
	"context"
	"io"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/diagnose"
	"github.com/spf13/cobra"
)

// DiagnoseOptions are the flags and arguments of diagnose.
type DiagnoseOptions struct {
	Files       []string
	Machine     cli.Machine
	VerdictOnly bool
	Report      string
}

// Diagnose returns `simccl diagnose`.
func Diagnose(a *cli.App) *cobra.Command {
	var o DiagnoseOptions
	c := &cobra.Command{Use: "diagnose FILE...",
		Short: "Say whether measured times are what a machine should give, and if not, why",
		Long: `diagnose reads what people have of a run: tables of nccl-tests (text, -J, several
operations and node counts), logs of NCCL, topology dumps, nvidia-smi topo -m and -q,
ibstat, ethtool -S, lspci -vv, perftest, Kineto traces, dumps of PyTorch's Flight
Recorder, a report in words. It simulates what the machine should give, and says for each size and for the whole: as
expected, slower or faster, within the uncertainty that the machine's and the
network's class state and the spread of draws.

What is slower it explains: each suspect (a slow NIC, no GPUDirect, a setting,
…) is simulated. What a file is sure of comes first, then those whose whole curve
fits, each with a command that proves it and the remedy; suspects that nothing in
the input separates share a rank. What is missing is assumed,
said, and asked for in the order in which it would decide.

Of a job that hangs or fails, logs and dumps say who waits for whom.`,
		Example: `  simccl diagnose testdata/measured/h200x4/nccl-tests/chan_1_4.txt --verdict-only
  simccl run all_reduce --sizes 1M > table.txt; simccl diagnose table.txt --topo dgx-h100`,
		RunE: cli.RunWith(a, &o, &o.Files)}
	o.Machine.Register(c)
	o.Machine.RegisterClass(c)
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&o.VerdictOnly, "verdict-only", "", false, "the verdict alone: no suspect is simulated"),
		flags.Of(&o.Report, "report", "", "", "write a page to `FILE` (.html): the measured times in the "+
			"expected band, those of suspects, the machine")))
	return c
}

// Run compares the tables with what the machine should give, tries suspects, and prints verdict, suspects
// and what is missing as text, JSON or a page.
func (o *DiagnoseOptions) Run(ctx context.Context, a *cli.App) error {
	if len(o.Files) == 0 {
		return fail.Usage("diagnose: name at least one file: a table of nccl-tests, a log of NCCL, …")
	}
	req := diagnose.Request{Options: a.Options(nil), NoSuspects: o.VerdictOnly}
	for _, name := range o.Files {
		data, err := a.ReadFile(name, process.MaxLog)
		if err != nil {
			return err
		}
		req.Files = append(req.Files, diagnose.File{Name: name, Data: data})
	}
	var err error
	if req.Spec, err = o.Machine.Spec(a); err != nil {
		return err
	}
	req.Spec = req.Spec.WithEnv(a.Env)
	r, err := diagnose.New(ctx, req)
	switch {
	case err != nil:
		return a.AsFlags(err)
	case o.Report != "":
		if err = a.Save(o.Report, "open it in a browser", func(w io.Writer) error {
			return o.page(w, r)
		}); err != nil {
			return err
		}
	}
	switch {
	case a.JSON:
		return a.PrintJSON(r)
	}
	return a.PrintText(r.Text())
}
