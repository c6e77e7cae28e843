package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real/ibv"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/detect"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/spf13/cobra"
)

func newTopoDetect(a *app) *cobra.Command {
	gpus, out := 0, ""
	c := &cobra.Command{Use: "detect", Short: "Write this machine's topology file",
		Long: `detect reads GPUs from NVML and everything else from sysfs, and prints the file
that NCCL 2.28.9 would write with NCCL_TOPO_DUMP_FILE. NCCL_IB_HCA,
NCCL_IB_DISABLE, NCCL_IB_MERGE_VFS, NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY
choose the NICs.`,
		Example: "  simccl topo detect > this.xml\n  simccl topo detect -g 4 -o four.xml && simccl run all_reduce --topo four.xml --nodes 1",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			spec, err := detectSpec(a, gpus)
			if err != nil {
				return err
			}
			text := topoxml.Write(spec.Root)
			if out != "" {
				return newfile.Write(a.path(out), text)
			}
			_, err = a.out.Write(text)
			return err
		}}
	c.Flags().IntVarP(&gpus, "gpus", "g", 0, "only the first K GPUs (default all)")
	c.Flags().StringVarP(&out, "output", "o", "", "write to this file instead of standard output")
	return c
}

// verbsDevices asks libibverbs for what sysfs does not tell of RDMA devices.
// Where it cannot be asked, NCCL has no InfiniBand either; a machine that has
// such devices all the same deserves a word.
func verbsDevices(a *app) ([]detect.HCA, error) {
	lib, err := ibv.Open()
	var names []string
	if err == nil {
		names, err = lib.DeviceNames()
	}
	if err != nil {
		if there, _ := filepath.Glob("/sys/class/infiniband/*"); len(there) > 0 {
			fmt.Fprintf(a.err, "simccl: warning: %d RDMA devices cannot be used, nor by NCCL: %v\n", len(there), err)
		}
		return nil, err
	}
	var out []detect.HCA
	for _, name := range names {
		d, err := lib.OpenDevice(name)
		if err != nil { // NCCL leaves it out too (net_ib.cc:715)
			fmt.Fprintf(a.err, "simccl: warning: %v\n", err)
			continue
		}
		out = append(out, detect.HCA{Name: name, MaxQP: d.MaxQP, DMABuf: d.DMABuf()})
		d.Close()
	}
	return out, nil
}

// detectSpec reads this machine, with NCCL's variables choosing the NICs; gpus
// is how many GPUs are kept at most, 0 all.
func detectSpec(a *app, gpus int) (*topo.Spec, error) {
	m, err := detect.Live()
	if err != nil {
		return nil, err
	}
	m.Verbs = func() ([]detect.HCA, error) { return verbsDevices(a) }
	p := detect.Params{MaxGPUs: gpus, MergeVFs: true}
	p.SocketFamily, _ = a.getenv("NCCL_SOCKET_FAMILY")
	if v, ok := a.getenv("NCCL_DMABUF_ENABLE"); ok {
		p.NoDMABuf = v == "0"
	}
	p.IBHCA, _ = a.getenv("NCCL_IB_HCA")
	p.SocketIfname, _ = a.getenv("NCCL_SOCKET_IFNAME")
	if v, ok := a.getenv("NCCL_IB_DISABLE"); ok {
		p.IBDisable = v != "" && v != "0"
	}
	if v, ok := a.getenv("NCCL_IB_MERGE_VFS"); ok {
		p.MergeVFs = v != "0"
	}
	spec, err := detect.Detect(m, p)
	if errors.Is(err, detect.ErrUnsupported) {
		return nil, &statusError{code: exitAbsent, err: err}
	}
	if err != nil {
		return nil, usage("%v", err)
	}
	return spec, nil
}
