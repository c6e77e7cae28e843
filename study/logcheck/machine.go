package logcheck

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// fromPrint are settings that are not applied again: the system print shows
// what they left, or they name files of the machine that wrote the log.
var fromPrint = ncclog.Pattern(`^NCCL_(DEBUG.*|TOPO_FILE|TOPO_DUMP_FILE|GRAPH_DUMP_FILE|GRAPH_DUMP_FILE_RANK|CONF_FILE|HOSTID|SOCKET_IFNAME|IB_HCA|NET|NET_PLUGIN|TUNER_PLUGIN|PROFILER_PLUGIN|ENV_PLUGIN|COMM_ID|CUDA_PATH)$`)

// machine is what a communicator of a log ran on.
type machine struct {
	spec  scenario.Machine
	files memory
	notes []string
	sm    int // compute capability
}

// nodesOf groups a communicator's logged ranks by node: each system print
// names the ranks of its node.
func nodesOf(log *ncclog.Log, c *ncclog.Communicator, rule *rules.Ruleset) ([]*printed, error) {
	var nodes []*printed
	var firstErr error
	known := map[int]bool{}
	for _, r := range c.Ranks {
		if known[r.Rank] {
			continue
		}
		p, err := readPrint(r.Lines)
		if err != nil {
			if firstErr == nil {
				firstErr = err
			}
			continue
		}
		if p == nil {
			continue
		}
		if err := p.place(c, r); err != nil {
			return nil, err
		}
		if p.gpus[r.Rank] == nil {
			continue
		}
		for g := range p.gpus {
			known[g] = true
		}
		p.describe(r, log.Network, rule.Topo.FuseAlone)
		nodes = append(nodes, p)
	}
	if len(nodes) == 0 {
		return nil, firstErr
	}
	slices.SortFunc(nodes, func(a, b *printed) int { return a.first() - b.first() })
	return nodes, nil
}

func (p *printed) first() int { return slices.Min(p.ranks()) }

func (p *printed) ranks() []int {
	var out []int
	for r := range p.gpus {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}

// describe adds to NETs what other lines of the rank say: names and GPU Direct.
// NCCL reports NETs in the order of their numbers; alone is rules.Topo.FuseAlone.
func (p *printed) describe(r *ncclog.Rank, network string, alone bool) {
	direct := false
	for _, route := range r.Routes {
		direct = direct || route.GDR
	}
	for i, n := range p.nets {
		dev := n.Int("dev", -1)
		name := "net" + strconv.Itoa(dev)
		at := dev
		if alone && dev >= len(r.Nets) {
			at -= len(r.Nets) // the virtual NIC of one port has the port's name
		}
		if at >= 0 && at < len(r.Nets) {
			name = r.Nets[at]
		}
		gdr, said := r.GDR[name]
		if !said {
			gdr = direct
		}
		n.Attrs = slices.Insert(n.Attrs, 0, decl.Attr{Name: "name", Value: name})
		n.Set("maxconn", map[bool]string{true: "65536", false: "131072"}[network == "Socket"])
		if strings.Contains(network, "Libfabric") {
			n.Set("latency", "75") // aws-ofi-nccl reports it for every EFA device (param.h: OFI_NCCL_NET_LATENCY)
		}
		n.Set("gdr", map[bool]string{true: "1", false: "0"}[gdr])
		p.nets[i] = n
	}
}

// topology is the file of a node whose GPUs have compute capability sm.
func (p *printed) topology(r *rules.Topo, sm int) []byte {
	p.counts(r, sm)
	for i, rank := range p.ranks() {
		g := p.gpus[rank]
		g.Set("dev", strconv.Itoa(i))
		g.Set("sm", strconv.Itoa(sm))
		g.Set("rank", strconv.Itoa(i))
		g.Set("gdr", "1")
	}
	return topoxml.Write(p.root)
}

// fromLog makes the machine of a communicator from system prints.
func fromLog(c *ncclog.Communicator, nodes []*printed, r *rules.Ruleset, sm int) (*machine, error) {
	m := &machine{files: memory{}}
	at := 0
	for i, n := range nodes {
		ranks := n.ranks()
		if ranks[0] != at && i > 0 && ranks[0] > at {
			// Nodes between whose ranks logged nothing are like the one before.
			size := len(nodes[i-1].gpus)
			missing := (ranks[0] - at) / size
			if missing*size != ranks[0]-at {
				return nil, &ShapeError{c.ID, fmt.Sprintf("ranks %d to %d logged nothing and are not whole nodes", at, ranks[0]-1)}
			}
			m.spec.Nodes[len(m.spec.Nodes)-1].Count += missing
			m.notes = append(m.notes, fmt.Sprintf("ranks %d to %d logged nothing; their nodes are taken to equal the one before", at, ranks[0]-1))
			at = ranks[0]
		}
		if ranks[0] != at || ranks[len(ranks)-1] != at+len(ranks)-1 {
			return nil, &ShapeError{c.ID, fmt.Sprintf("a node has ranks %v; simccl numbers ranks node by node", ranks)}
		}
		at += len(ranks)
		name := "log.node" + strconv.Itoa(i) + ".xml"
		m.files[name] = n.topology(&r.Topo, sm)
		m.spec.Nodes = append(m.spec.Nodes, scenario.Nodes{Topo: name, Count: 1})
	}
	if rest := c.NRanks - at; rest > 0 {
		last := &m.spec.Nodes[len(m.spec.Nodes)-1]
		size := len(nodes[len(nodes)-1].gpus)
		if rest%size != 0 {
			return nil, &ShapeError{c.ID, fmt.Sprintf("ranks %d to %d logged nothing and are not whole nodes", at, c.NRanks-1)}
		}
		last.Count += rest / size
		m.notes = append(m.notes, fmt.Sprintf("ranks %d to %d logged nothing; their nodes are taken to equal the last that did", at, c.NRanks-1))
	}
	return m, nil
}

// ShapeError says that a communicator's ranks lie on nodes in a way that
// simccl does not lay out.
type ShapeError struct{ Comm, Problem string }

func (e *ShapeError) Error() string { return "communicator " + e.Comm + ": " + e.Problem }

// candidates are the compute capabilities that a log allows, the likeliest
// first: that of the GPU's name, else those whose NVLinks divide the printed
// bandwidths.
func candidates(log *ncclog.Log, nodes []*printed, r *rules.Topo) []int {
	for _, name := range log.GPUs {
		if sm := smOf(name); sm > 0 {
			return []int{sm}
		}
	}
	var out []int
	// One of each class that the rules distinguish: Hopper, Ampere, Blackwell,
	// Volta, sm_86 (NVLinks of 12 GB/s), Pascal.
	for _, sm := range []int{90, 80, 100, 70, 86, 60} {
		whole, some := true, false
		for _, n := range nodes {
			some = some || len(n.rates) > 0
			whole = whole && n.counts(r, sm)
		}
		if whole || !some {
			out = append(out, sm)
		}
	}
	if len(out) == 0 {
		out = []int{90}
	}
	return out
}

// models are compute capabilities by a word of the GPU's name (CUDA programming
// guide, table of compute capabilities).
var models = []struct {
	word string
	sm   int
}{{"GB300", 103}, {"B300", 103}, {"GB200", 100}, {"B200", 100}, {"B100", 100}, {"RTX PRO 6000 Blackwell", 120}, {"RTX 50", 120},
	{"GH200", 90}, {"H200", 90}, {"H100", 90}, {"H800", 90}, {"H20", 90},
	{"RTX 40", 89}, {"RTX 6000 Ada", 89}, {"L40", 89}, {"L20", 89}, {"L4", 89},
	{"A100", 80}, {"A800", 80}, {"A30", 80}, {"A40", 86}, {"A10", 86}, {"A6000", 86}, {"A5000", 86}, {"A4000", 86}, {"RTX 30", 86}, {"A16", 86}, {"A2", 86},
	{"V100", 70}, {"TITAN V", 70}, {"T4", 75}, {"RTX 20", 75}, {"RTX 8000", 75}, {"P100", 60}, {"P40", 61}}

func smOf(name string) int {
	for _, m := range models {
		if strings.Contains(name, m.word) {
			return m.sm
		}
	}
	return 0
}

// settings are the log's variables as NAME=VALUE, without those whose effect
// the system print shows.
func settings(log *ncclog.Log) (env, left []string) {
	for _, s := range log.Settings {
		if fromPrint().MatchString(s.Name) {
			continue
		}
		if s.Name == "NCCL_GRAPH_FILE" {
			left = append(left, s.Name)
			continue
		}
		env = append(env, s.Name+"="+s.Value)
	}
	return env, left
}

// load makes the communicator of a machine under settings and a release.
func (m *machine) load(version string, env []string, cast ncclog.Known) (*scenario.Site, error) {
	m.spec.Multicast = map[ncclog.Known]string{ncclog.Unknown: "auto", ncclog.No: "off", ncclog.Yes: "on"}[cast]
	opt := scenario.Options{Files: m.files, Settings: config.Sources{NoEnv: true, Flags: env}}
	return scenario.Load(&scenario.Spec{Machine: m.spec, NCCL: scenario.NCCL{Version: version}}, opt)
}

// memory is a file system of bytes by name.
type memory map[string][]byte

// Open implements fs.FS.
func (m memory) Open(name string) (fs.File, error) {
	data, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memoryFile{Reader: bytes.NewReader(data), name: name, size: int64(len(data))}, nil
}

type memoryFile struct {
	*bytes.Reader
	name string
	size int64
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *memoryFile) Close() error               { return nil }
func (f *memoryFile) Name() string               { return f.name }
func (f *memoryFile) Size() int64                { return f.size }
func (f *memoryFile) Mode() fs.FileMode          { return 0o444 }
func (f *memoryFile) ModTime() (t time.Time)     { return t }
func (f *memoryFile) IsDir() bool                { return false }
func (f *memoryFile) Sys() any                   { return nil }
