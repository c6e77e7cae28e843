package machines

import (
	"strings"

	"github.com/simccl/simccl/internal/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/process"
	"github.com/simccl/simccl/internal/smitopo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/spf13/pflag"
)

// Convert are the options of topo convert for files that are no topology.
type Convert struct {
	kinds smitopo.Kinds
	spec  bool
}

// Register declares the options.
func (c *Convert) Register(f *pflag.FlagSet) {
	f.StringVar(&c.kinds.GPU, "gpu-kind", "", "of nvidia-smi topo -m: the `KIND` of the GPUs, as topo gen has it (default guessed from NVLinks)")
	f.StringVar(&c.kinds.NIC, "nic-kind", "", "the `KIND` of the NICs (default guessed)")
	f.StringVar(&c.kinds.CPU, "cpu-kind", "", "the `KIND` of the CPUs (default guessed)")
	f.BoolVar(&c.spec, "spec", false, "of nvidia-smi topo -m: print the description, as topo gen reads it")
}

// File converts a file that is the output of nvidia-smi topo -m; done is false for others.
func (c *Convert) File(a *cli.App, name string) (done bool, err error) {
	if name == "" || builtin.Lookup(name) != nil {
		return false, nil
	}
	data, err := a.Read(name, process.MaxSettings)
	if err != nil {
		return false, nil // the reader of topologies says what is wrong
	}
	if text := string(data); !smitopo.Is(text) {
		return refused(text) != "", unread(name, refused(text))
	}
	s, err := smitopo.Parse(string(data), name, c.kinds)
	if err != nil {
		return true, err
	}
	for _, f := range s.Facts {
		if f.Estimated {
			a.Warn("%s: the kind of %s is %s", name, f.Of, f.Source)
		}
	}
	if c.spec {
		return true, a.PrintJSON(s)
	}
	root, err := s.Generate()
	if err != nil {
		return true, err
	}
	return true, write(a, root)
}

// refused says why a description of a machine is not read; empty for what may be one
// of NCCL's.
func refused(text string) string {
	switch {
	case strings.Contains(text, "hwloc") && strings.Contains(text, "<topology"):
		return "lstopo's XML, which has no NVLinks"
	case strings.Contains(text, " NCCL INFO "):
		return "a log of NCCL, which has no PCIe tree"
	}
	return ""
}

// unread is the error of a file that is not read, nil without a reason.
func unread(name, why string) error {
	if why == "" {
		return nil
	}
	return fail.NotYet("convert the output of nvidia-smi topo -m, or have NCCL write the tree (NCCL_TOPO_DUMP_FILE)", "%s: %s", name, why)
}
