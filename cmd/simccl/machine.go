package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// machineFlags say which machine is meant.
type machineFlags struct {
	topo      string
	nodes     int
	gpus      int
	multicast string
	fabric    string
	mnnvl     int
	class     string
	given     *pflag.FlagSet
	found     []byte // the topology of this machine, where it stands in place of a file
}

const defaultNodes = 2 // of the built-in machine

func (m *machineFlags) register(c *cobra.Command) {
	f := c.Flags()
	m.given = f
	f.StringVar(&m.topo, "topo", "", "topology `FILE` as NCCL_TOPO_DUMP_FILE writes it; A.xml:4,B.xml:2 for unequal nodes; default: the built-in DGX H100")
	f.IntVar(&m.nodes, "nodes", 0, "number of equal nodes `N` (default 1, of the built-in machine 2)")
	f.IntVarP(&m.gpus, "gpus", "g", 0, "use the `K` lowest local ranks of each node (default all)")
	f.StringVar(&m.multicast, "multicast", "auto", "NVLink multicast: on, off, or auto: on where every GPU is sm_90+ behind an NVSwitch")
	f.IntVar(&m.mnnvl, "mnnvl", 0, "every `K` nodes are one NVLink domain, as in an NVL72 (default: what the file says); 1: a node alone is a domain, with a fabric as its neighbours have")
	f.StringVar(&m.fabric, "fabric", "", "network between the nodes, a `FILE` as topo fabric writes (default an ideal one)")
}

// asked tells whether an option was written, which its zero value is not.
func (m *machineFlags) asked(name string) bool { return m.given != nil && m.given.Changed(name) }

// registerClass adds the option of commands that tell times.
func (m *machineFlags) registerClass(c *cobra.Command) {
	c.Flags().StringVar(&m.class, "machine-class", "", "speeds of GPUs, links and NICs: a `FILE` as calibrate writes, or a name (default by the topology)")
}

// machine is everything up to the communicator.
type machine struct {
	cfg     *config.Config
	cluster *fabric.Cluster
	comm    *comm.Comm
	network *fabric.Network // between the nodes, nil for an ideal one
	class   gpu.Class       // how fast GPUs, links and NICs are
	name    string          // of the topology, as it was given
	digest  string          // sha256 of its bytes, hexadecimal
}

// between is what joins the nodes.
func (m *machine) between() gpu.Network {
	if m.comm.NNodes < 2 {
		return gpu.NoNetwork
	}
	for i := range m.cluster.Classes {
		s := m.cluster.Classes[i].Host.System(0)
		for _, id := range s.Of(topo.NET) {
			if s.Nodes[id].Net.Sockets {
				return gpu.Sockets
			}
		}
	}
	return gpu.RDMA
}

func parseMulticast(s string) (comm.Multicast, error) {
	switch s {
	case "auto":
		return comm.MulticastAuto, nil
	case "on":
		return comm.MulticastOn, nil
	case "off":
		return comm.MulticastOff, nil
	}
	return 0, usage("--multicast %s: write on, off or auto", s)
}

// cluster reads the topology files and lays out the nodes.
func (m *machineFlags) cluster(a *app) (*machine, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	out := &machine{cfg: cfg}
	members, err := m.members(a, out)
	if err != nil {
		return nil, err
	}
	files := members
	if members, err = m.joined(members); err != nil {
		return nil, err
	}
	p := cfg.Topo
	if m.gpus < 0 || m.gpus == 0 && m.asked("gpus") {
		return nil, usage("-g %d: a number of GPUs from 1 on", m.gpus)
	}
	if m.gpus > 0 {
		for _, x := range members {
			n, err := topo.CountGPUs(x.Spec, &p)
			if err != nil {
				return nil, input(err)
			}
			if m.gpus > n {
				return nil, usage("-g %d: %s has only %d GPUs", m.gpus, x.Spec.Name, n)
			}
		}
		p.GPUs = units.Some(m.gpus)
	}
	if out.cluster, err = fabric.New(members, p); err != nil {
		return nil, topologyError(err)
	}
	if n := out.cluster.NoFabric; n != "" {
		a.warn("%s is one host and reports no NVLink fabric, so NCCL takes every host of the NVLink domains for a node of its own (mnnvl.cc:27); where it has one, write --mnnvl 1", n)
	}
	if m.topo != "" || out.cfg.Text("NCCL_TOPO_FILE").Value != "" {
		a.lintMembers(files, cfg)
	}
	out.idleFilters(a, files)
	out.network, err = m.readNetwork(a)
	return out, err
}

// joined makes NVLink domains of K nodes each, where --mnnvl asks for them.
func (m *machineFlags) joined(members []fabric.Member) ([]fabric.Member, error) {
	if m.mnnvl < 0 {
		return nil, usage("--mnnvl %d: how many nodes share an NVLink domain, from 1 on", m.mnnvl)
	}
	if m.mnnvl < 2 {
		for i := range members {
			members[i].Fabric = m.mnnvl == 1
		}
		return members, nil
	}
	out := make([]fabric.Member, len(members))
	for i, x := range members {
		count := x.Count
		if len(members) == 1 && m.nodes == 0 {
			count = m.mnnvl // one domain where nobody says how many
		}
		if count%m.mnnvl != 0 {
			return nil, usage("--mnnvl %d: %d nodes of %s do not make whole domains", m.mnnvl, count, x.Spec.Name)
		}
		spec, err := topo.Join(x.Spec, m.mnnvl)
		if err != nil {
			return nil, input(err)
		}
		out[i] = fabric.Member{Spec: spec, Count: count / m.mnnvl}
	}
	return out, nil
}

// topologyError is a topology of which no machine can be made.
func topologyError(err error) error {
	var merge *topo.MergeError
	if errors.As(err, &merge) {
		return &statusError{code: exitUsage, err: err}
	}
	return input(err)
}

// members parses --topo: FILE, or FILE:COUNT,FILE:COUNT.
func (m *machineFlags) members(a *app, out *machine) ([]fabric.Member, error) {
	if m.nodes < 0 || m.nodes == 0 && m.asked("nodes") {
		return nil, usage("--nodes %d: a number from 1 on", m.nodes)
	}
	name := m.topo
	if v := out.cfg.Text("NCCL_TOPO_FILE"); name == "" && v.Set && v.Value != "" {
		name = v.Value
	}
	sum := sha256.New()
	if name == "" && m.found != nil {
		out.name = "this machine"
		sum.Write(m.found)
		out.digest = hex.EncodeToString(sum.Sum(nil))
		spec, err := a.parseTopo(m.found, out.name)
		return []fabric.Member{{Spec: spec, Count: max(m.nodes, 1)}}, err
	}
	if name == "" {
		out.name = builtin.DGXH100Name
		sum.Write(builtin.DGXH100())
		out.digest = hex.EncodeToString(sum.Sum(nil))
		spec, err := a.parseTopo(builtin.DGXH100(), builtin.DGXH100Name)
		nodes := m.nodes
		if nodes == 0 {
			nodes = defaultNodes
		}
		return []fabric.Member{{Spec: spec, Count: nodes}}, err
	}
	var members []fabric.Member
	var names []string
	entries := strings.Split(name, ",")
	for _, entry := range entries {
		file, count, counted, err := a.splitCount(entry)
		if err != nil {
			return nil, err
		}
		switch {
		case counted && m.nodes > 0:
			return nil, usage("--topo %s: the counts after the colons already say how many nodes; leave --nodes out", name)
		case !counted && len(entries) > 1:
			count = 1
		case !counted:
			count = max(m.nodes, 1)
		}
		data, err := a.read(file, maxTopology)
		if err != nil {
			return nil, err
		}
		sum.Write(data)
		spec, err := a.parseTopo(data, file)
		if err != nil {
			return nil, err
		}
		members = append(members, fabric.Member{Spec: spec, Count: count})
		names = append(names, filepath.Base(file))
	}
	out.name, out.digest = strings.Join(names, ","), hex.EncodeToString(sum.Sum(nil))
	return members, nil
}

// splitCount cuts FILE:COUNT; a file that exists under the whole name wins.
func (a *app) splitCount(entry string) (file string, count int, counted bool, err error) {
	if entry == "" {
		return "", 0, false, usage("--topo: a file name is missing")
	}
	if _, e := os.Stat(a.path(entry)); e == nil {
		return entry, 0, false, nil
	}
	i := strings.LastIndexByte(entry, ':')
	if i < 1 {
		return entry, 0, false, nil
	}
	n, e := strconv.Atoi(entry[i+1:])
	if e != nil || n < 1 {
		return "", 0, false, usage("--topo %s: after the colon stands the number of nodes, from 1 on", entry)
	}
	return entry[:i], n, true, nil
}

func (a *app) parseTopo(data []byte, name string) (*topo.Spec, error) {
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		return nil, input(err)
	}
	for _, w := range spec.Warnings {
		a.warn("%v", w)
	}
	return spec, nil
}

// load makes the communicator.
func (m *machineFlags) load(a *app) (*machine, error) {
	cast, err := parseMulticast(m.multicast)
	if err != nil {
		return nil, err
	}
	out, err := m.cluster(a)
	if err != nil {
		return nil, err
	}
	if err := m.readClass(a, out); err != nil {
		return nil, err
	}
	given, err := a.graphFile(out)
	if err != nil {
		return nil, err
	}
	p := commParams(out.cfg, cast)
	p.Given = given
	out.comm, err = comm.New(out.cluster, p)
	if err != nil {
		return nil, decisionError(err)
	}
	return out, out.dump(a)
}

// commParams are the settings of the pure stages.
func commParams(cfg *config.Config, cast comm.Multicast) comm.Params {
	p := cfg.Comm()
	p.Multicast = cast
	return p
}

// graphFile reads the graphs that a user wants in place of searched ones; nil
// without a file. Every node takes them for its own GPUs.
func (a *app) graphFile(m *machine) (func(*topo.System) ([]*search.Graph, error), error) {
	v := m.cfg.Text("NCCL_GRAPH_FILE")
	if !v.Set || v.Value == "" {
		return nil, nil
	}
	data, err := a.read(v.Value, maxTopology)
	if err != nil {
		return nil, err
	}
	return func(sys *topo.System) ([]*search.Graph, error) {
		given, err := topoxml.ParseGraphs(data, v.Value, sys)
		return given, input(err)
	}, nil
}

// settings lists the NCCL variables that a source set, by name.
func (m *machine) settings() [][2]string {
	var out [][2]string
	for _, row := range config.EnvRows(m.cfg, config.Facts{}, false) {
		if row.Set && strings.HasPrefix(row.Name, "NCCL_") {
			out = append(out, [2]string{row.Name, row.Value})
		}
	}
	return out
}
