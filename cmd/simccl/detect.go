package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/detect"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/spf13/cobra"
)

func newTopoDetect(a *app) *cobra.Command {
	gpus, out := 0, ""
	c := &cobra.Command{Use: "detect", Short: "Write this machine's topology file",
		Long: `detect reads GPUs from NVML and everything else from sysfs, and prints the file
that NCCL ` + ncclRules().String() + ` would write with NCCL_TOPO_DUMP_FILE. NCCL_IB_HCA,
NCCL_IB_DISABLE, NCCL_IB_MERGE_VFS, NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY
choose the NICs. What NCCL_TOPO_FILE says, or the file that virtual machines
keep at ` + detect.DefaultFile + `, overrides
what is found.`,
		Example: "  simccl topo detect > this.xml\n  simccl topo detect -g 4 -o four.xml && simccl run all_reduce --topo four.xml --nodes 1",
		Args:    exactly(),
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

// verbsDevices queries libibverbs for what sysfs does not report of RDMA devices.
// Where it cannot be asked, NCCL has no InfiniBand either; a machine that has
// such devices all the same deserves a word.
func verbsDevices(a *app) ([]detect.HCA, error) {
	devices, left, err := real.RDMADevices()
	if err != nil {
		if there, _ := filepath.Glob("/sys/class/infiniband/*"); len(there) > 0 {
			fmt.Fprintf(a.err, "simccl: warning: %d RDMA devices cannot be used, nor by NCCL: %v\n", len(there), err)
		}
		return nil, err
	}
	for _, err := range left {
		fmt.Fprintf(a.err, "simccl: warning: %v\n", err)
	}
	var out []detect.HCA
	for _, d := range devices {
		out = append(out, detect.HCA{Name: d.Name, MaxQP: d.MaxQP, DMABuf: d.DMABuf})
	}
	return out, nil
}

// beginning is the topology file that NCCL reads before it reads the
// machine, nil without one.
func beginning(a *app) (*topo.Element, error) {
	name, _ := a.getenv("NCCL_TOPO_FILE")
	named := name != ""
	if !named {
		name = detect.DefaultFile
	}
	text, err := a.read(name, maxTopology)
	switch {
	case errors.Is(err, os.ErrNotExist) && !named:
		return nil, nil
	case errors.Is(err, os.ErrNotExist):
		a.warn("NCCL_TOPO_FILE=%s is not there; NCCL does without, and so does detect", name)
		return nil, nil
	case err != nil:
		return nil, err
	}
	spec, err := a.parseTopo(text, name)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(a.err, "simccl: begun with %s, as NCCL does\n", name)
	return spec.Root, nil
}

// number is a variable as NCCL reads one: of a word it is 0, of nothing the
// default (misc/param.cc:76).
func (a *app) number(name string, def int64) int64 {
	if v, _ := a.getenv(name); v != "" {
		def, _ = cnum.Int(v)
	}
	return def
}

// detectSpec reads this machine, with NCCL's variables choosing the NICs; gpus
// is how many GPUs are kept at most, 0 all.
func detectSpec(a *app, gpus int) (*topo.Spec, error) {
	m, err := detect.Live()
	if err != nil {
		return nil, err
	}
	m.Verbs = func() ([]detect.HCA, error) { return verbsDevices(a) }
	p := detect.Params{MaxGPUs: gpus, IBDisable: a.number("NCCL_IB_DISABLE", 0) != 0, MergeVFs: a.number("NCCL_IB_MERGE_VFS", 1) != 0,
		NoDMABuf: a.number("NCCL_DMABUF_ENABLE", 1) == 0}
	p.SocketFamily, _ = a.getenv("NCCL_SOCKET_FAMILY")
	p.IBHCA, _ = a.getenv("NCCL_IB_HCA")
	p.SocketIfname, _ = a.getenv("NCCL_SOCKET_IFNAME")
	if p.Begin, err = beginning(a); err != nil {
		return nil, err
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
