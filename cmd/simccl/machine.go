package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/internal/release"
	"github.com/simccl/simccl/internal/tracefile"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// machineFlags say which machine is meant: the Machine and Network of a Spec.
type machineFlags struct {
	topo      string
	nodes     int
	gpus      int
	multicast string
	fabric    string
	mnnvl     int
	class     string
	nccl      string
	libnccl   string
	runsNCCL  bool // the command's own --libnccl is the library that it runs
	given     *pflag.FlagSet
	found     []byte // the topology of this machine, in place of a file
}

func (m *machineFlags) register(c *cobra.Command) {
	f := c.Flags()
	m.given = f
	f.StringVar(&m.topo, "topo", "", "topology `FILE` as NCCL_TOPO_DUMP_FILE writes it; A.xml:4,B.xml:2 for unequal nodes; default: the built-in DGX H100")
	f.IntVar(&m.nodes, "nodes", 0, "number of equal nodes `N` (default 1, of the built-in machine 2)")
	f.IntVarP(&m.gpus, "gpus", "g", 0, "use the `K` lowest local ranks of each node (default all)")
	f.StringVar(&m.multicast, "multicast", "auto", "NVLink multicast: on, off, or auto: on where every GPU is sm_90+ behind an NVSwitch")
	f.IntVar(&m.mnnvl, "mnnvl", 0, "every `K` nodes are one NVLink domain, as in an NVL72 (default: what the file says); 1: a node alone is a domain, with a fabric as its neighbours have")
	f.StringVar(&m.nccl, "nccl-version", "", "decide as this `VERSION` of NCCL does: "+release.Names()+", one between (the nearest older answers), or torch==2.8 (default SIMCCL_NCCL_VERSION, else "+ncclRules().String()+")")
	if !m.runsNCCL {
		f.StringVar(&m.libnccl, "libnccl", "", "decide as the library `FILE` (libnccl.so.2) does; its version is read, nothing in it runs")
	}
	f.StringVar(&m.fabric, "fabric", "", "network between the nodes, a `FILE` as topo fabric writes (default an ideal one)")
}

// registerClass adds the option of commands that predict times.
func (m *machineFlags) registerClass(c *cobra.Command) {
	c.Flags().StringVar(&m.class, "machine-class", "", "speeds of GPUs, links and NICs: a `FILE` as calibrate writes, or a name (default by the topology)")
}

// thisTopo is the name under which a Spec has the topology of this machine.
const thisTopo = "this machine"

// spec is what the options say, as a Spec without a workload.
func (m *machineFlags) spec(a *app) (scenario.Spec, error) {
	var s scenario.Spec
	for _, o := range []struct {
		flag, name string
		v          int
	}{{"nodes", "--nodes", m.nodes}, {"gpus", "-g", m.gpus}} {
		if o.v < 0 || o.v == 0 && m.given != nil && m.given.Changed(o.flag) {
			return s, usage("%s %d: must be at least 1", o.name, o.v)
		}
	}
	nodes, err := m.kinds(a)
	s.Machine = scenario.Machine{Nodes: nodes, GPUs: m.gpus, NVLinkDomain: m.mnnvl, Class: m.class}
	if s.Machine.Multicast = m.multicast; m.multicast == "auto" {
		s.Machine.Multicast = ""
	}
	s.Network.Fabric = m.fabric
	if err == nil {
		s.NCCL.Version, err = m.release(a)
	}
	return s, err
}

// release is the version of NCCL that the options name.
func (m *machineFlags) release(a *app) (string, error) {
	switch {
	case m.libnccl == "":
		return m.nccl, nil
	case m.nccl != "":
		return "", usage("--nccl-version and --libnccl name a version each; leave one out")
	}
	f, err := os.Open(a.path(m.libnccl))
	if err != nil {
		return "", fmt.Errorf("--libnccl: %w", err)
	}
	defer f.Close()
	v, err := release.OfLibrary(f)
	if err != nil {
		return "", fmt.Errorf("--libnccl %s: %w", m.libnccl, err)
	}
	return v.String(), nil
}

// kinds reads --topo and --nodes: FILE, or FILE:COUNT,FILE:COUNT.
func (m *machineFlags) kinds(a *app) ([]scenario.Nodes, error) {
	switch {
	case m.topo == "" && m.found != nil:
		return []scenario.Nodes{{Topo: thisTopo, Count: m.nodes}}, nil
	case m.topo == "" && m.nodes == 0:
		return nil, nil
	case m.topo == "":
		return []scenario.Nodes{{Count: m.nodes}}, nil
	}
	var out []scenario.Nodes
	entries := strings.Split(m.topo, ",")
	for _, entry := range entries {
		n, err := a.splitCount(entry)
		if err != nil {
			return nil, err
		}
		switch {
		case n.Count > 0 && m.nodes > 0:
			return nil, usage("--topo %s: the counts after the colons already say how many nodes; leave --nodes out", m.topo)
		case n.Count == 0 && len(entries) == 1:
			n.Count = m.nodes
		}
		out = append(out, n)
	}
	return out, nil
}

// splitCount cuts FILE:COUNT; a file that exists under the whole name wins.
func (a *app) splitCount(entry string) (scenario.Nodes, error) {
	n := scenario.Nodes{Topo: entry}
	if entry == "" {
		return n, usage("--topo: a file name is missing")
	}
	i := strings.LastIndexByte(entry, ':')
	if _, err := os.Stat(a.path(entry)); err == nil || i < 1 {
		return n, nil
	}
	count, err := strconv.Atoi(entry[i+1:])
	if err != nil || count < 1 {
		return n, usage("--topo %s: the number of nodes after the colon must be at least 1, e.g. dgx.xml:4", entry)
	}
	return scenario.Nodes{Topo: entry[:i], Count: count}, nil
}

// options are the surroundings of a Spec: this process's files, environment and
// standard error.
func (a *app) options(found []byte) scenario.Options {
	return scenario.Options{Files: files{app: a, given: map[string][]byte{thisTopo: found}}, Settings: a.sources(), Program: version,
		Warn: a.warnOf, Cancelled: a.cancelled, Scratch: func(near string) (chrome.Spool, error) { return tracefile.Scratch(filepath.Dir(a.path(near))) },
		Create: func(name string) (scenario.File, error) {
			f, err := newfile.Create(a.path(name))
			if err != nil {
				return nil, err
			}
			return f, nil
		}}
}

// warnOf prints a warning of a Spec.
func (a *app) warnOf(err error) {
	switch w := err.(type) {
	case *scenario.LintWarning:
		if w.File != thisTopo {
			fmt.Fprintf(a.err, "topo lint: %s (simccl topo lint %s)\n", w.Summary, w.File)
		}
	case *scenario.ReleaseNote:
		fmt.Fprintf(a.err, "simccl: %v\n", w)
	case *scenario.NearError:
		if p := a.last.showing.Load(); p != nil {
			p.Clear()
		}
		fmt.Fprintf(a.err, "simccl: %v\n", w)
	default:
		a.warn("%v", asFlags(err))
	}
}

// load makes the communicator.
func (m *machineFlags) load(a *app) (*scenario.Site, error) { return m.site(a, scenario.Load) }

// layout reads the topology files and lays out the nodes, without a communicator.
func (m *machineFlags) layout(a *app) (*scenario.Site, error) { return m.site(a, scenario.Layout) }

func (m *machineFlags) site(a *app, load func(*scenario.Spec, scenario.Options) (*scenario.Site, error)) (*scenario.Site, error) {
	s, err := m.spec(a)
	if err != nil {
		return nil, err
	}
	x, err := load(&s, a.options(m.found))
	return x, asFlags(err)
}
