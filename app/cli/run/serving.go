package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
)

// RegisterServing declares the flags of kernels other than NCCL's, and of operations of serving.
func (r *RunOptions) RegisterServing(c *cobra.Command) {
	s := &r.Serving
	rows := []flags.Row{flags.Of(&r.Kernel, "kernel", "", "",
		"`KERNEL` in place of NCCL's choice: of all_reduce "+strings.Join(peer.AllReduceKernels(), ", ")+
			" or symmetric; of ep_dispatch and ep_combine "+strings.Join(peer.ExpertKernels(), ", ")+
			" (default deepep) or nccl; of kv_transfer "+peer.CacheWrite+" (default) or "+peer.CacheRead,
		"workload.kernel")}
	rows = append(append(rows, cli.ExpertRows(s)...),
		flags.Of(&s.SMs, "sms", "", 0, "`N` blocks of the kernel (default 20; deepep-v2 12; trtllm all)",
			"workload.serving.sms"),
		flags.Of(&s.FromTP, "from-tp", "", 0, "kv_transfer: tensor parallelism `N` of prefill",
			"workload.serving.fromTP"),
		flags.Of(&s.ToTP, "to-tp", "", 0, "kv_transfer: tensor parallelism `N` of decode",
			"workload.serving.toTP"),
		flags.Of(&s.Layers, "layers", "", 0, "kv_transfer: `N` layers", "workload.serving.layers"),
		flags.Of(&s.BlockTokens, "block-tokens", "", 0, "kv_transfer: `N` tokens of a block of the cache",
			"workload.serving.blockTokens"),
		flags.Of(&s.KVBytes, "kv-bytes", "", 0,
			"kv_transfer: `N` bytes of keys and values of a token in a layer, all heads",
			"workload.serving.kvBytes"))
	flags.Register(c.Flags(), flags.In("Serving", rows...))
}

// serving simulates an operation of serving.
func (r *RunOptions) serving(ctx context.Context, a *cli.App, spec scenario.Spec,
	placed func(error) error) error {
	for _, name := range append(slices.Clone(tables), "trace", "profile", "ops", "csv", "schedule",
		"explain-method", "sizes", "min-bytes", "max-bytes") {
		if r.given != nil && r.given.Changed(name) && name != "save-scenario" {
			return fail.Usage("--%s: %s has no table of sizes; leave it out", name, spec.Workload.Op)
		}
	}
	if r.Save != "" {
		if err := saveSpec(a, r.Save, spec); err != nil {
			return err
		}
	}
	out, err := scenario.Serve(ctx, spec, a.Options(r.Machine.Found))
	if err != nil {
		return placed(err)
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	return printServed(a, out)
}

func printServed(a *cli.App, s *scenario.Served) error {
	fmt.Fprintf(a.Out, "%s by %s: %d ranks on %d nodes\n", s.Op, s.Kernel, s.Ranks, s.Nodes)
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "us\tGB/s\tbytes a rank\tbetween nodes\tSMs\tof its time\t  limiting link\t")
	fmt.Fprintf(w, "%.2f\t%.2f\t%d\t%d\t%d\t%.0f %%\t  %s\t\n", s.Us, s.GBps, s.Bytes, s.Remote, s.Blocks,
		100*s.Use, s.Limit)
	if err := w.Flush(); err != nil {
		return err
	}
	if s.Proven {
		fmt.Fprintln(a.Out, "proven")
	}
	if s.Margin > 0 {
		fmt.Fprintf(a.Out, "within about %.0f %%\n", 100*s.Margin)
	}
	for _, note := range s.Assumed {
		fmt.Fprintln(a.Out, "note:", note)
	}
	return nil
}
