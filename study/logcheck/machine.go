package logcheck

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
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

// fromPrint matches settings that are not applied again: their effect is in the system print, or they name
// files of the logged machine.
var fromPrint = ncclog.Pattern(
	`^NCCL_(DEBUG.*|TOPO_FILE|TOPO_DUMP_FILE|GRAPH_DUMP_FILE|GRAPH_DUMP_FILE_RANK|CONF_FILE|HOSTID|SOCKET_IFNAME|IB_HCA|NET|NET_PLUGIN|TUNER_PLUGIN|PROFILER_PLUGIN|ENV_PLUGIN|COMM_ID|CUDA_PATH)$`)

// machine is the reconstructed machine of a logged communicator: a Spec, its topology files in memory, and
// notes on assumptions.
type machine struct {
	spec  scenario.Machine
	files memory
	notes []string
	sm    int // compute capability
}

// printsOf returns the nodes of a communicator, from system prints, each of which names the ranks of its
// node. Of several prints of a node it takes the one with the most lines.
func (f *finder) printsOf(r *rules.Ruleset, g guess) ([]*printed, error) {
	var nodes []*printed
	var firstErr error
	known := map[int]bool{}
	ranks := slices.Clone(f.c.Ranks)
	slices.SortStableFunc(ranks, func(a, b *ncclog.Rank) int { return len(f.tree[b]) - len(f.tree[a]) })
	for _, k := range ranks {
		if known[k.Rank] && !k.Unknown() {
			continue
		}
		p, err := readPrint(f.tree[k], k.Lines)
		if err != nil {
			if firstErr == nil {
				firstErr = err
			}
			continue
		}
		if p == nil {
			continue
		}
		if err := p.place(f.c, k); err != nil {
			return nil, err
		}
		if k.Unknown() {
			k.Rank = p.first()
		}
		if p.gpus[k.Rank] == nil {
			continue
		}
		for n := range p.gpus {
			known[n] = true
		}
		p.describe(f, k, &r.Topo, g)
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

// The latencies that aws-ofi-nccl reports for EFA devices, in microseconds (param.h: OFI_NCCL_NET_LATENCY):
// of older instances, and of P5en and P6.
const efaLatency, efaLatencyP6 = 75, 35

// describe adds to NETs the attributes in lines of the host's ranks: names, GPUDirect and latency; attributes
// in no line are taken from the guess. Virtual NICs are split into their ports.
func (p *printed) describe(f *finder, r *ncclog.Rank, rules *rules.Topo, g guess) {
	network := f.in.Log.Network
	names, able := map[int]string{}, map[string]bool{}
	filled, direct := r.Nets, false
	for _, k := range f.c.Ranks {
		if k != r && k.Host() != r.Host() {
			continue
		}
		maps.Copy(names, k.Names)
		maps.Copy(able, k.GDR)
		if len(k.Nets) > len(filled) {
			filled = k.Nets
		}
		for _, route := range k.Routes {
			direct = direct || route.GDR
		}
	}
	for i, n := range p.nets {
		dev := n.Int("dev", -1)
		name := names[dev]
		at := dev
		if rules.FuseAlone && dev >= len(filled) {
			at -= len(filled) // the virtual NIC of one port has the port's name
		}
		if name == "" && at >= 0 && at < len(filled) {
			name = filled[at]
		}
		if name == "" {
			name = "net" + strconv.Itoa(dev)
		}
		gdr, said := able[name]
		if !said {
			gdr, said = able[strconv.Itoa(dev)]
		}
		if !said && direct {
			gdr, said = true, true
		}
		if !said {
			p.open = true
			gdr = f.direct[g[qDirect]]
		}
		n.Attrs = slices.Insert(n.Attrs, 0, decl.Attr{Name: "name", Value: name})
		n.Set("maxconn", map[bool]string{true: "65536", false: "131072"}[network == "Socket"])
		if latency := f.latency[g[qLatency]]; latency > 0 {
			n.Set("latency", strconv.Itoa(latency))
		}
		n.Set("gdr", map[bool]string{true: "1", false: "0"}[gdr])
		p.nets[i] = n
	}
	p.unfuse(rules)
}

// topology returns the file of a node whose GPUs have compute capability sm.
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

// fromLog builds the machine of a communicator from system prints.
func fromLog(c *ncclog.Communicator, nodes []*printed, r *rules.Ruleset, sm int) (*machine, error) {
	m := &machine{files: memory{}}
	at := 0
	for i, n := range nodes {
		ranks := n.ranks()
		before := 0 // nodes like this one, where it is the first that logged something
		if ranks[0] > at {
			// Nodes between whose ranks logged nothing are like the one before.
			size := len(nodes[max(0, i-1)].gpus)
			missing := (ranks[0] - at) / size
			if missing*size != ranks[0]-at {
				return nil,
					&ShapeError{c.ID, fmt.Sprintf("ranks %d to %d logged nothing and are not whole nodes", at,
						ranks[0]-1)}
			}
			if i == 0 {
				before = missing
				m.notes = append(m.notes,
					fmt.Sprintf("ranks %d to %d logged nothing; their nodes are taken to equal the first "+
						"that did", at, ranks[0]-1))
			} else {
				m.spec.Nodes[len(m.spec.Nodes)-1].Count += missing
				m.notes = append(m.notes,
					fmt.Sprintf("ranks %d to %d logged nothing; their nodes are taken to equal the one "+
						"before", at, ranks[0]-1))
			}
			at = ranks[0]
		}
		if ranks[0] != at || ranks[len(ranks)-1] != at+len(ranks)-1 {
			return nil,
				&ShapeError{c.ID, fmt.Sprintf("a node has ranks %v; simccl numbers ranks node by node",
					ranks)}
		}
		at += len(ranks)
		name := "log.node" + strconv.Itoa(i) + ".xml"
		m.files[name] = n.topology(&r.Topo, sm)
		m.spec.Nodes = append(m.spec.Nodes, scenario.Nodes{Topo: name, Count: 1 + before})
	}
	if rest := c.NRanks - at; rest > 0 {
		last := &m.spec.Nodes[len(m.spec.Nodes)-1]
		size := len(nodes[len(nodes)-1].gpus)
		if rest%size != 0 {
			return nil, &ShapeError{c.ID, fmt.Sprintf("ranks %d to %d logged nothing and are not whole nodes",
				at, c.NRanks-1)}
		}
		last.Count += rest / size
		m.notes = append(m.notes,
			fmt.Sprintf("ranks %d to %d logged nothing; their nodes are taken to equal the last that did", at,
				c.NRanks-1))
	}
	return m, nil
}

// ShapeError reports a distribution of a communicator's ranks over nodes that simccl cannot build.
type ShapeError struct{ Comm, Problem string }

func (e *ShapeError) Error() string { return "communicator " + e.Comm + ": " + e.Problem }

// candidates returns the compute capabilities that are possible according to the log, most likely first: that
// of the GPU's name, else those whose NVLink bandwidth divides the printed bandwidths.
func candidates(log *ncclog.Log, nodes []*printed, r *rules.Topo) []int {
	for _, name := range log.GPUs {
		if sm := smOf(name); sm > 0 {
			return []int{sm}
		}
	}
	var out []int
	// One of each class that the rules distinguish: Hopper, Ampere, Blackwell, Blackwell
	// Ultra (no LL128 before 2.27), Volta, sm_86 (NVLinks of 12 GB/s), Ada, RTX Blackwell,
	// Pascal.
	for _, sm := range []int{90, 80, 100, 103, 70, 86, 89, 120, 60} {
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
}{{"GB300", 103}, {"B300", 103}, {"GB200", 100}, {"B200", 100}, {"B100", 100},
	{"RTX PRO 6000 Blackwell", 120}, {"RTX 50", 120},
	{"GH200", 90}, {"H200", 90}, {"H100", 90}, {"H800", 90}, {"H20", 90},
	{"RTX 40", 89}, {"RTX 6000 Ada", 89}, {"L40", 89}, {"L20", 89}, {"L4", 89},
	{"A100", 80}, {"A800", 80}, {"A30", 80}, {"A40", 86}, {"A10", 86}, {"A6000", 86}, {"A5000", 86},
	{"A4000", 86}, {"RTX 30", 86}, {"A16", 86}, {"A2", 86},
	{"V100", 70}, {"TITAN V", 70}, {"T4", 75}, {"RTX 20", 75}, {"RTX 8000", 75}, {"P100", 60}, {"P40", 61}}

func smOf(name string) int {
	for _, m := range models {
		if strings.Contains(name, m.word) {
			return m.sm
		}
	}
	return 0
}

// settings returns the log's variables as NAME=VALUE, except those whose effect is already in the system
// print, which left lists.
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

// load lays out the communicator of a machine with settings and a release's rules.
func (m *machine) load(r *rules.Ruleset, env []string, cast ncclog.Known) (*scenario.Site, error) {
	m.spec.Multicast = map[ncclog.Known]string{ncclog.Unknown: "auto", ncclog.No: "off",
		ncclog.Yes: "on"}[cast]
	opt := scenario.Options{Files: m.files, Settings: config.Sources{Rules: r, NoEnv: true, Flags: env}}
	return scenario.Load(&scenario.Spec{Machine: m.spec}, opt)
}

// memory is a file system of named contents.
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
