package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/real"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/detect"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// DefaultFile is the path of the topology file of virtual machines, which NCCL loads first.
const DefaultFile = detect.DefaultFile

// Host reads the topology of the machine that the program runs on; its functions supply NCCL's variables and
// files.
type Host struct {
	Getenv func(name string) (string, bool)
	// Read reads the topology file that NCCL loads first.
	Read func(name string) ([]byte, error)
	// Warn is called with problems in that file or in variables, Note with a line about what was found.
	Warn func(err error)
	Note func(line string)
}

// Topology returns the topology file of the machine. Errors are those of Spec.
func (h *Host) Topology() ([]byte, error) {
	spec, err := h.Spec(0)
	if err != nil {
		return nil, err
	}
	return topoxml.Write(spec.Root), nil
}

// Spec detects the machine and keeps at most gpus GPUs (0: all). Without GPUs or a driver the error is of
// kind fail.Absent.
func (h *Host) Spec(gpus int) (*topo.Spec, error) {
	m, err := detect.Live()
	if err != nil {
		return nil, err
	}
	m.Verbs = h.verbs
	p := detect.Params{MaxGPUs: gpus, IBDisable: h.number("NCCL_IB_DISABLE", 0) != 0,
		MergeVFs: h.number("NCCL_IB_MERGE_VFS", 1) != 0,
		NoDMABuf: h.number("NCCL_DMABUF_ENABLE", 1) == 0}
	p.SocketFamily, _ = h.Getenv("NCCL_SOCKET_FAMILY")
	p.IBHCA, _ = h.Getenv("NCCL_IB_HCA")
	p.SocketIfname, _ = h.Getenv("NCCL_SOCKET_IFNAME")
	if p.Begin, err = h.beginning(); err != nil {
		return nil, err
	}
	spec, err := detect.Detect(m, p)
	if errors.Is(err, detect.ErrUnsupported) {
		return nil, fail.Unavailable(err)
	}
	if err != nil {
		return nil, fail.Argument(err)
	}
	return spec, nil
}

// verbs returns the limits of RDMA devices from libibverbs. If that cannot be loaded, NCCL has no InfiniBand
// either; it adds a note if the machine has such devices nevertheless.
func (h *Host) verbs() ([]detect.HCA, error) {
	devices, left, err := real.RDMADevices()
	if err != nil {
		if there, _ := filepath.Glob("/sys/class/infiniband/*"); len(there) > 0 {
			h.Note(fmt.Sprintf("warning: %d RDMA devices cannot be used, nor by NCCL: %v", len(there), err))
		}
		return nil, err
	}
	for _, err := range left {
		h.Note(fmt.Sprintf("warning: %v", err))
	}
	var out []detect.HCA
	for _, d := range devices {
		out = append(out, detect.HCA{Name: d.Name, MaxQP: d.MaxQP, DMABuf: d.DMABuf})
	}
	return out, nil
}

// beginning returns the topology file that NCCL loads before it probes the machine; nil if there is none.
func (h *Host) beginning() (*topo.Element, error) {
	name, _ := h.Getenv("NCCL_TOPO_FILE")
	named := name != ""
	if !named {
		name = DefaultFile
	}
	text, err := h.Read(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && !named:
		return nil, nil
	case errors.Is(err, os.ErrNotExist):
		h.Warn(fmt.Errorf("NCCL_TOPO_FILE=%s is not there; NCCL does without, and so does detect", name))
		return nil, nil
	case err != nil:
		return nil, err
	}
	spec, err := topoxml.Parse(text, name)
	if err != nil {
		return nil, fail.Input(err)
	}
	for _, w := range spec.Warnings {
		h.Warn(w)
	}
	h.Note(fmt.Sprintf("begun with %s, as NCCL does", name))
	return spec.Root, nil
}

// number returns a variable as NCCL parses it: 0 for a word, the default for an empty value
// (misc/param.cc:76).
func (h *Host) number(name string, def int64) int64 {
	if v, _ := h.Getenv(name); v != "" {
		def, _ = cnum.Int(v)
	}
	return def
}
