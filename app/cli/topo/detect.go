package topo

import (
	"context"

	"github.com/simccl/simccl/app/bench"
	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/newfile"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/spf13/cobra"
)

// DetectOptions are the flags and arguments of detect.
type DetectOptions struct {
	GPUs   int    // use the first GPUs; 0: all
	Output string // a file; empty: standard output
}

func detect(a *cli.App) *cobra.Command {
	var o DetectOptions
	c := &cobra.Command{Use: "detect", Short: "Write this machine's topology file",
		Long: `detect reads GPUs from NVML and everything else from sysfs, and prints the file
that NCCL ` + cli.Rules().String() + ` would write with NCCL_TOPO_DUMP_FILE. NCCL_IB_HCA,
NCCL_IB_DISABLE, NCCL_IB_MERGE_VFS, NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY
choose the NICs. What NCCL_TOPO_FILE says, or the file that virtual machines
keep at ` + bench.DefaultFile + `, overrides
what is found.`,
		Example: "  simccl topo detect > this.xml\n" +
			"  simccl topo detect -g 4 -o four.xml && simccl run all_reduce --topo four.xml --nodes 1",
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	c.Flags().IntVarP(&o.GPUs, "gpus", "g", 0, "only the first K GPUs (default all)")
	c.Flags().StringVarP(&o.Output, "output", "o", "", "write to this file instead of standard output")
	return c
}

// Run writes the topology file of this machine.
func (o *DetectOptions) Run(_ context.Context, a *cli.App) error {
	spec, err := a.Host().Spec(o.GPUs)
	if err != nil {
		return err
	}
	text := topoxml.Write(spec.Root)
	if o.Output != "" {
		return newfile.Write(a.Path(o.Output), text)
	}
	_, err = a.Out.Write(text)
	return err
}
