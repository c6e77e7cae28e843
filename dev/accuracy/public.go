package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Published is a table that others published, the machine that represents theirs,
// and the settings that are known of the run and bear on it.
type Published struct {
	file   string
	topo   string // of testdata/topos
	named  string // a built-in machine in place of topo, with its network and plugin
	nccl   string // release whose rules decide; "": the default
	nodes  int
	gpus   int    // of each node
	domain int    // nodes of one NVLink domain, 0: each is its own
	typ    string // of elements, as nccl-tests calls it; "": float
	env    []string
	fixes  bool   // the source of a parameter names it
	why    string // the average leaves it out, and why
}

// publics are the clean tables of NVIDIA GPUs over InfiniBand or RoCE.
var publics = slices.Concat([]Published{
	{file: "gjaion_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8, fixes: true},
	{file: "gke_a3ultra_h200_2n_all_gather", topo: "dgx-h200", nodes: 2, gpus: 8},
	{file: "oci_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8},
	{file: "oci_a100_2n_all_reduce", topo: "dgx-a100", nodes: 2, gpus: 8},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2115", topo: "dgx-a100", nodes: 2, gpus: 8, env: sophia,
		fixes: true},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2816", topo: "dgx-a100", nodes: 2, gpus: 8, env: sophia},
	{file: "vultr_b200_2n_alltoall", topo: "dgx-b200", nodes: 2, gpus: 8, typ: "uint8",
		why: "settings of its own that it does not name; another run of the report had 1.6 times as much"},
	{file: "coreweave_gb200_2racks_all_reduce", topo: "gb200-nvl72-tray", nodes: 36, gpus: 4, domain: 18},
	{file: "coreweave_gb200_20racks_all_reduce", topo: "gb200-nvl72-tray", nodes: 360, gpus: 4, domain: 18,
		fixes: true},
	{file: "coreweave_h100_sharp_all_reduce", topo: "dgx-h100", nodes: 12, gpus: 8,
		env: []string{"NCCL_COLLNET_ENABLE=1", "SIMCCL_COLLNET=1"},
		why: "SHARP; it names neither release nor algorithm"},
},
	slurm(10, 1, true, "sendrecv"),
	slurm(10, 2, true, "all_reduce"), slurm(10, 2, false, "all_gather", "reduce_scatter", "alltoall",
		"sendrecv"),
	slurm(10, 4, true, "all_reduce"), slurm(10, 4, false, "all_gather", "reduce_scatter", "alltoall",
		"sendrecv"),
	slurm(10, 8, true, "sendrecv"),
	slurm(2, 1, false, "alltoall"), slurm(2, 1, true, "sendrecv"),
	slurm(2, 2, false, "alltoall", "sendrecv"), slurm(2, 4, false, "alltoall", "sendrecv"),
	slurm(2, 8, false, "alltoall", "sendrecv"))

// hards are the tables of Polaris, a hard case: two NICs for four GPUs, at
// other PCIe roots, and through libfabric.
var hards = slices.Concat(
	argonne(2, "all_reduce", "all_gather", "alltoall"), argonne(8, "all_reduce", "all_gather", "alltoall"),
	argonne(128, "all_gather"), argonne(256, "all_reduce", "all_gather", "alltoall"),
	argonne(540, "all_reduce", "all_gather", "alltoall"))

// asides are tables outside the rule that say something all the same.
var asides = []Published{
	{file: "gjaion_h100_8n_all_reduce", topo: "dgx-h100", nodes: 8, gpus: 8,
		why: "noisy by its note; slower at 1 GiB than at 512 MiB"},
	{file: "coreweave_gb200_1rack_all_reduce", topo: "gb200-nvl72-tray", nodes: 18, gpus: 4, domain: 18,
		fixes: true, why: "one NVLink domain: no network; its sizes of 4 and 8 GiB fix multicast_eff"},
	{file: "oci_gb200_32n_all_reduce", topo: "gb200-nvl72-tray", nodes: 32, gpus: 4, domain: 16,
		why: "noisy: 184 us for 8 B, an outlier at 1 GiB"},
}

// Cloud is the tables of one cloud's network, and how far they may be off on average.
type Cloud struct {
	Name   string
	Aim    float64
	tables []Published
}

// clouds are the tables of networks beside InfiniBand. Machines are taken by name, so
// that network class and plugin are theirs, and the rules are those of the release
// that was run, as far as a table says: of 2.21.5 where that is older.
var clouds = []Cloud{
	{"AWS, EFA", 0.15, []Published{
		{file: "aws_p4d_a100_2n_all_reduce_eks", named: "aws-p4d.24xlarge", nodes: 2, gpus: 8, nccl: "2.21.5",
			env: []string{"NCCL_ALGO=Ring"}},
		{file: "aws_p5_h100_2n_all_reduce_a", named: "aws-p5.48xlarge", nodes: 2, gpus: 8, nccl: "2.22.3",
			env: keita},
		{file: "aws_p5_h100_2n_all_reduce_b", named: "aws-p5.48xlarge", nodes: 2, gpus: 8, nccl: "2.21.5",
			env: keita},
	}},
	{"Google Cloud, TCPXO", 0.15, []Published{
		{file: "gcp_a3mega_h100_2n_all_gather", named: "gcp-a3-mega", nodes: 2, gpus: 8, fixes: true},
		{file: "gke_a3mega_h100_2n_all_gather", named: "gcp-a3-mega", nodes: 2, gpus: 8},
		{file: "gcp_a3mega_h100_2n_all_reduce", named: "gcp-a3-mega", nodes: 2, gpus: 8},
	}},
	{"Google Cloud, TCPX", 0, []Published{
		{file: "gcp_a3high_h100_2n_all_gather", named: "gcp-a3-high", nodes: 2, gpus: 8, fixes: true},
	}},
	{"Google Cloud, RoCE", 0.10, []Published{
		{file: "gke_a3ultra_h200_2n_all_gather", named: "gcp-a3-ultra", nodes: 2, gpus: 8},
	}},
	{"Alps, Slingshot", 0.15, cscs(2, 4, 8, 16, 32, 64, 128, 256, 512)},
}

// cscs lists the tables of Alps by nodes.
func cscs(nodes ...int) (out []Published) {
	for _, n := range nodes {
		why := ""
		if n >= 256 {
			why = "by its note 512 nodes are unstable, and 256 nodes are slower than those at every size, " +
				"by up to a half: others' traffic, most likely"
		}
		out = append(out, Published{why: why, file: fmt.Sprintf("alps_gh200_%dn_all_reduce", n),
			named: "gh200-4-alps", nodes: n, gpus: 4, nccl: "2.23.4", env: alps, fixes: n == 4})
	}
	return out
}

// What the tables say of the environment, as far as it bears on the run.
var (
	sophia  = []string{"NCCL_CROSS_NIC=1", "NCCL_NET_GDR_LEVEL=PXB"}
	polaris = []string{"NCCL_CROSS_NIC=1", "NCCL_NET_GDR_LEVEL=PHB"}
	keita   = []string{"NCCL_BUFFSIZE=8388608", "NCCL_P2P_NET_CHUNKSIZE=524288"}
	alps    = []string{"NCCL_CROSS_NIC=0", "NCCL_NET_GDR_LEVEL=PHB"}
)

// slurm lists the tables of one cluster by operation.
func slurm(nodes, gpus int, fixes bool, ops ...string) (out []Published) {
	for _, op := range ops {
		out = append(out, Published{file: fmt.Sprintf("h100_%dn%dg_%s", nodes, gpus, op), topo: "dgx-h100",
			nodes: nodes, gpus: gpus, typ: "double", fixes: fixes})
	}
	return out
}

// argonne lists the tables of Polaris by operation, for each version of NCCL
// that was run.
func argonne(nodes int, ops ...string) (out []Published) {
	missing := []string{"128n_all_gather_nccl221", "256n_all_gather_nccl218", "256n_all_reduce_nccl218",
		"256n_alltoall_nccl218"}
	for _, op := range ops {
		for _, version := range []string{"218", "221"} {
			run := fmt.Sprintf("%dn_%s_nccl%s", nodes, op, version)
			if !slices.Contains(missing, run) {
				out = append(out, Published{file: "polaris_a100_" + run, topo: "hgx-a100-4", nodes: nodes,
					gpus: 4, env: polaris, fixes: run == "2n_all_reduce_nccl221"})
			}
		}
	}
	return out
}

// Tables lists all tables that have a machine to represent theirs: those of the rule, a hard
// case, and those outside the rule.
func Tables() []Published {
	out := slices.Concat(publics, hards, asides)
	for i := range clouds {
		for _, p := range clouds[i].tables {
			if !slices.ContainsFunc(out, func(o Published) bool { return o.file == p.file }) {
				out = append(out, p)
			}
		}
	}
	return out
}

// Name is the name of the table's file, without its ending.
func (p *Published) Name() string { return p.file }

// table is a published file.
type table struct {
	System struct {
		GPU, NIC string
		Nodes    int
	}
	Env        map[string]string
	Collective string
	Quality    string
	Version    string `json:"nccl_version"`
	RCCL       string `json:"rccl_version"`
	Rows       []row
}

type row struct {
	Bytes int64
	BusBW float64
}

// The rule is for sizes of at least large; up to huge is simulated, or the smallest
// size where a table begins above it.
const large, huge = 64 << 20, 1 << 30

// Data is where tables and topologies are read from.
type Data struct {
	Tables fs.FS // NAME.json
	Topos  fs.FS // NAME.xml
}

func (d *Data) table(name string) (*table, error) {
	data, err := fs.ReadFile(d.Tables, name+".json")
	if err != nil {
		return nil, err
	}
	out := new(table)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("%s.json: %w", name, err)
	}
	return out, nil
}

// between keeps the rows above lo and up to hi bytes, and the first in any case
// that begins above hi.
func (tab *table) between(lo, hi int64) {
	rows := tab.Rows[:0]
	for i, r := range tab.Rows {
		// All-gather and the like are rounded down to whole ranks.
		if r.Bytes > lo && (r.Bytes <= hi || i == 0) {
			rows = append(rows, r)
		}
	}
	tab.Rows = rows
}

// machine is a communicator that represents a table's, and how it is simulated.
type machine struct {
	site *scenario.Site
	cfg  sim.Config
	env  []string // all settings
}

// load joins the communicator that represents a table's. Settings of its own make
// 2.28.9 do as the version that was run.
func (p *Published) load(topos fs.FS, version string) (*machine, error) {
	m := &machine{env: p.env}
	if err := m.join(p, topos); err != nil {
		return nil, err
	}
	if newer(version) {
		m.env = append(slices.Clone(p.env), fmt.Sprintf("NCCL_NCHANNELS_PER_NET_PEER=%d",
			perPeer(m.site.Comm)))
		return m, m.join(p, topos)
	}
	return m, nil
}

// join loads equal nodes under the table's settings.
func (m *machine) join(p *Published, topos fs.FS) (err error) {
	file := p.topo + ".xml"
	if p.named != "" {
		file = p.named
	}
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: file, Count: p.nodes}},
		NVLinkDomain: p.domain,
		GPUs:         p.gpus * max(1, p.domain)}, NCCL: scenario.NCCL{Version: p.nccl,
		Env: map[string]string{}}}
	for _, set := range m.env {
		name, value, _ := strings.Cut(set, "=")
		spec.NCCL.Env[name] = value
	}
	if m.site, err = scenario.Load(&spec, scenario.Options{Files: topos}); err != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}
	m.cfg, err = m.site.SimConfig(&spec)
	m.cfg.Seed = 0 // as the page had it before scenarios, whose first seed is 1
	return err
}

// newer reports whether a version of NCCL counts the channels of send and receive in
// differently from 2.28.9.
func newer(version string) bool { return strings.HasPrefix(version, "2.29") }

// perPeer is how many channels NCCL 2.29.2 gives a peer on another node
// (graph/paths.cc:849 and 990): 14 GB/s of its NICs each, and no more than let
// all peers fit into one round.
func perPeer(c *comm.Comm) int {
	const each, fused = 14, 8 // GB/s of a channel; peers of a batch
	s := c.Searched
	bw := 0.0
	nets := s.Of(topo.NET)
	for _, n := range s.LocalNets(0) {
		bw += float64(s.Nodes[nets[n]].Net.BW)
	}
	n := 1
	for n < max(2, (int(bw)+each-1)/each) {
		n *= 2
	}
	for rounds := (c.NRanks + fused - 1) / fused; n*rounds > c.P2PChannels && n > 1; {
		n /= 2
	}
	return n
}

// Compared is one size of a published table.
type Compared struct {
	Bytes     int64
	Real, Sim float64 // bus bandwidth, GB/s
	Choice    string  // algorithm and protocol
}

// Off is the relative deviation of the simulated bandwidth.
func (c *Compared) Off() float64 { return c.Sim/c.Real - 1 }

// Compare simulates the sizes of a table that the rule is for. It also returns
// all settings of the run.
func (p *Published) Compare(ctx context.Context, d *Data) ([]Compared, []string, error) {
	tab, err := d.table(p.file)
	if err != nil {
		return nil, nil, err
	}
	tab.between(large-large/8, huge)
	return p.compareTo(ctx, d, tab)
}

// compareTo simulates the sizes of a table that has been read.
func (p *Published) compareTo(ctx context.Context, d *Data, tab *table) (out []Compared, env []string,
	err error) {
	f, err := coll.ParseFunc(tab.Collective)
	if err != nil {
		return nil, nil, fmt.Errorf("%s.json: %w", p.file, err)
	}
	typ := coll.Float32
	if p.typ != "" {
		if typ, err = coll.ParseDataType(p.typ); err != nil {
			return nil, nil, err
		}
	}
	m, err := p.load(d.Topos, tab.Version)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range tab.Rows {
		ranks := m.site.Comm.NRanks
		count, _ := (scenario.Size{Asked: units.Bytes(r.Bytes), Exact: true}).Count(f, typ, ranks)
		res, choice, err := m.run(ctx, comm.Op{Func: f, Type: typ, Count: count})
		if err != nil {
			return nil, nil, fmt.Errorf("%s, %d bytes: %w", p.file, r.Bytes, err)
		}
		_, bus := coll.Bandwidth(f, count, typ, ranks, res.Elapsed)
		out = append(out, Compared{r.Bytes, r.BusBW, bus, choice})
	}
	return out, m.env, nil
}

// run simulates an operation, launched eagerly, and says what NCCL chose.
func (m *machine) run(ctx context.Context, op comm.Op) (exec.Result, string, error) {
	pl, choice, err := m.site.Comm.Plan(op)
	if err != nil {
		return exec.Result{}, "", err
	}
	x, err := sim.New(m.cfg)
	if err != nil {
		return exec.Result{}, "", err
	}
	res, err := x.Run(ctx, exec.One(pl), trace.Discard)
	name := "send/recv"
	if !op.Func.IsP2P() {
		name = fmt.Sprintf("%v/%v", choice.Algo, choice.Proto)
	}
	return res, name, err
}
