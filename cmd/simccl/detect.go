package main

import (
	"fmt"

	"github.com/simccl/simccl/app/bench"
	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/newfile"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/spf13/cobra"
)

func newTopoDetect(a *app) *cobra.Command {
	gpus, out := 0, ""
	c := &cobra.Command{Use: "detect", Short: "Write this machine's topology file",
		Long: `detect reads GPUs from NVML and everything else from sysfs, and prints the file
that NCCL ` + cli.Rules().String() + ` would write with NCCL_TOPO_DUMP_FILE. NCCL_IB_HCA,
NCCL_IB_DISABLE, NCCL_IB_MERGE_VFS, NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY
choose the NICs. What NCCL_TOPO_FILE says, or the file that virtual machines
keep at ` + bench.DefaultFile + `, overrides
what is found.`,
		Example: "  simccl topo detect > this.xml\n  simccl topo detect -g 4 -o four.xml && simccl run all_reduce --topo four.xml --nodes 1",
		Args:    cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			spec, err := a.thisHost().Spec(gpus)
			if err != nil {
				return err
			}
			text := topoxml.Write(spec.Root)
			if out != "" {
				return newfile.Write(a.Path(out), text)
			}
			_, err = a.Out.Write(text)
			return err
		}}
	c.Flags().IntVarP(&gpus, "gpus", "g", 0, "only the first K GPUs (default all)")
	c.Flags().StringVarP(&out, "output", "o", "", "write to this file instead of standard output")
	return c
}

// thisHost is the machine that the program runs on.
func (a *app) thisHost() *bench.Host {
	return &bench.Host{Getenv: a.Getenv, Warn: func(err error) { a.Warn("%v", err) }, Note: func(line string) { fmt.Fprintln(a.Err, "simccl: "+line) },
		Read: func(name string) ([]byte, error) { return a.Read(name, process.MaxTopology) }}
}
