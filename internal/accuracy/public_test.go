package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/internal/site"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// public is a table that others published, the machine that stands for theirs,
// and the settings that are known of the run and bear on it.
type public struct {
	file   string
	topo   string // of testdata/topos
	nodes  int
	gpus   int // of each node
	domain int // nodes of one NVLink domain, 0: each is its own
	typ    coll.DataType
	env    []string
	fixes  bool   // the source of a parameter names it
	why    string // it is only for information, and why
}

// publics are the clean tables of NVIDIA GPUs over InfiniBand or RoCE.
var publics = slices.Concat([]public{
	{file: "gjaion_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8, fixes: true},
	{file: "gke_a3ultra_h200_2n_all_gather", topo: "dgx-h200", nodes: 2, gpus: 8},
	{file: "oci_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8},
	{file: "oci_a100_2n_all_reduce", topo: "dgx-a100", nodes: 2, gpus: 8},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2115", topo: "dgx-a100", nodes: 2, gpus: 8, env: sophia, fixes: true},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2816", topo: "dgx-a100", nodes: 2, gpus: 8, env: sophia},
	{file: "vultr_b200_2n_alltoall", topo: "dgx-b200", nodes: 2, gpus: 8, typ: coll.Uint8},
	{file: "coreweave_gb200_2racks_all_reduce", topo: "gb200-nvl72-tray", nodes: 36, gpus: 4, domain: 18},
	{file: "coreweave_gb200_20racks_all_reduce", topo: "gb200-nvl72-tray", nodes: 360, gpus: 4, domain: 18, fixes: true},
	{file: "coreweave_h100_sharp_all_reduce", topo: "dgx-h100", nodes: 12, gpus: 8, env: []string{"NCCL_COLLNET_ENABLE=1", "SIMCCL_COLLNET=1"}},
},
	slurm(10, 1, true, "sendrecv"),
	slurm(10, 2, true, "all_reduce"), slurm(10, 2, false, "all_gather", "reduce_scatter", "alltoall", "sendrecv"),
	slurm(10, 4, true, "all_reduce"), slurm(10, 4, false, "all_gather", "reduce_scatter", "alltoall", "sendrecv"),
	slurm(10, 8, true, "sendrecv"),
	slurm(2, 1, false, "alltoall"), slurm(2, 1, true, "sendrecv"),
	slurm(2, 2, false, "alltoall", "sendrecv"), slurm(2, 4, false, "alltoall", "sendrecv"), slurm(2, 8, false, "alltoall", "sendrecv"))

// hards are the tables of Polaris, a hard case: two NICs for four GPUs, at
// other PCIe roots, and through libfabric.
var hards = slices.Concat(
	argonne(2, "all_reduce", "all_gather", "alltoall"), argonne(8, "all_reduce", "all_gather", "alltoall"),
	argonne(128, "all_gather"), argonne(256, "all_reduce", "all_gather", "alltoall"), argonne(540, "all_reduce", "all_gather", "alltoall"))

// asides are tables outside the rule that say something all the same.
var asides = []public{
	{file: "gjaion_h100_8n_all_reduce", topo: "dgx-h100", nodes: 8, gpus: 8, why: "noisy by its note; slower at 1 GiB than at 512 MiB"},
	{file: "coreweave_gb200_1rack_all_reduce", topo: "gb200-nvl72-tray", nodes: 18, gpus: 4, domain: 18, fixes: true, why: "one NVLink domain: no network; its sizes of 4 and 8 GiB fix multicast_eff"},
	{file: "oci_gb200_32n_all_reduce", topo: "gb200-nvl72-tray", nodes: 32, gpus: 4, domain: 16, why: "noisy: 184 us for 8 B, an outlier at 1 GiB"},
	{file: "alps_gh200_2n_all_reduce", topo: "gh200-4-alps", nodes: 2, gpus: 4, env: alps, why: "Slingshot through libfabric"},
	{file: "alps_gh200_4n_all_reduce", topo: "gh200-4-alps", nodes: 4, gpus: 4, env: alps, why: "Slingshot through libfabric"},
	{file: "alps_gh200_8n_all_reduce", topo: "gh200-4-alps", nodes: 8, gpus: 4, env: alps, why: "Slingshot through libfabric; noisy below 128 MiB"},
	{file: "alps_gh200_16n_all_reduce", topo: "gh200-4-alps", nodes: 16, gpus: 4, env: alps, why: "Slingshot through libfabric; noisy below 256 MiB"},
}

// What the tables say of the environment, as far as it bears on the run.
var (
	sophia  = []string{"NCCL_CROSS_NIC=1", "NCCL_NET_GDR_LEVEL=PXB"}
	polaris = []string{"NCCL_CROSS_NIC=1", "NCCL_NET_GDR_LEVEL=PHB"}
	alps    = []string{"NCCL_CROSS_NIC=0", "NCCL_NET_GDR_LEVEL=PHB"}
)

// slurm lists the tables of one cluster by operation.
func slurm(nodes, gpus int, fixes bool, ops ...string) (out []public) {
	for _, op := range ops {
		out = append(out, public{file: fmt.Sprintf("h100_%dn%dg_%s", nodes, gpus, op), topo: "dgx-h100", nodes: nodes, gpus: gpus, typ: coll.Float64, fixes: fixes})
	}
	return out
}

// argonne lists the tables of Polaris by operation, for each version of NCCL
// that was run.
func argonne(nodes int, ops ...string) (out []public) {
	missing := []string{"128n_all_gather_nccl221", "256n_all_gather_nccl218", "256n_all_reduce_nccl218", "256n_alltoall_nccl218"}
	for _, op := range ops {
		for _, version := range []string{"218", "221"} {
			run := fmt.Sprintf("%dn_%s_nccl%s", nodes, op, version)
			if !slices.Contains(missing, run) {
				out = append(out, public{file: "polaris_a100_" + run, topo: "hgx-a100-4", nodes: nodes, gpus: 4, env: polaris, fixes: run == "2n_all_reduce_nccl221"})
			}
		}
	}
	return out
}

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
	Rows       []struct {
		Bytes int64
		BusBW float64
	}
}

// The line is drawn from large on; up to huge is simulated, or the smallest
// size where a table begins above it.
const large, huge = 64 << 20, 1 << 30

func (p *public) read(t testing.TB) *table { return p.readFrom(t, large-large/8, huge) }

func (p *public) readFrom(t testing.TB, lo, hi int64) *table {
	out := readTable(t, golden.Shared(t, "measured", "public", p.file+".json"))
	rows := out.Rows[:0]
	for i, r := range out.Rows {
		// All-gather and the like are rounded down to whole ranks.
		if r.Bytes > lo && (r.Bytes <= hi || i == 0) {
			rows = append(rows, r)
		}
	}
	out.Rows = rows
	return out
}

func readTable(t testing.TB, file string) *table {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := new(table)
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

// machine builds the communicator that stands for the table's, and adds to the
// settings what makes 2.28.9 do as the version run did.
func (p *public) machine(t testing.TB, version string) (*comm.Comm, []*topo.System) {
	c := p.join(t)
	if newer(version) {
		p.env = append(slices.Clone(p.env), fmt.Sprintf("NCCL_NCHANNELS_PER_NET_PEER=%d", perPeer(c)))
		c = p.join(t)
	}
	systems := make([]*topo.System, c.NNodes)
	for n, ranks := range c.NodeRanks {
		systems[n] = c.Cluster.Locate(int(ranks[0])).System
	}
	return c, systems
}

// join loads the nodes under the table's settings.
func (p *public) join(t testing.TB) *comm.Comm {
	m := site.Nodes(golden.Root(t, "testdata", "topos", p.topo+".xml"), p.nodes)
	m.GPUs, m.NVLinkDomain = p.gpus*max(p.domain, 1), p.domain
	return site.Load(t, m, p.env...).Comm
}

// newer tells versions of NCCL that count the channels of send and receive in
// another way than 2.28.9.
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

// compared is one size of a public table.
type compared struct {
	bytes     int64
	real, sim float64 // bus bandwidth
	choice    string
}

func (p *public) compare(t testing.TB) []compared { return p.compareTo(t, p.read(t)) }

// compareTo simulates the sizes of a table that has been read.
func (p *public) compareTo(t testing.TB, tab *table) []compared {
	f, err := coll.ParseFunc(tab.Collective)
	if err != nil {
		t.Fatal(err)
	}
	typ := p.typ
	if typ == 0 {
		typ = coll.Float32
	}
	c, systems := p.machine(t, tab.Version)
	var out []compared
	for _, r := range tab.Rows {
		op := comm.Op{Func: f, Type: typ, Count: coll.ExactSizes(f, units.Bytes(r.Bytes), typ, c.NRanks).Count}
		res, choice := simulateOne(t, c, systems, op)
		_, bus := coll.Bandwidth(f, op.Count, typ, c.NRanks, res.Elapsed)
		name := "send/recv"
		if f < coll.SendRecv {
			name = fmt.Sprintf("%v/%v", choice.Algo, choice.Proto)
		}
		out = append(out, compared{r.Bytes, r.BusBW, bus, name})
	}
	return out
}

// simulateOne runs an operation, launched eagerly.
func simulateOne(t testing.TB, c *comm.Comm, systems []*topo.System, op comm.Op) (exec.Result, tuning.Choice) {
	pl, choice, err := c.Plan(op)
	if err != nil {
		t.Fatalf("%v %d: %v", op.Func, op.Count, err)
	}
	x, err := sim.New(sim.Config{Comm: c.Comm, Systems: systems})
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Run(context.Background(), exec.One(pl), trace.Discard)
	if err != nil {
		t.Fatalf("%v %d: %v", op.Func, op.Count, err)
	}
	return res, choice
}

// TestShowPublic prints public tables beside simulated ones: PUBLIC=prefix,…
func TestShowPublic(t *testing.T) {
	pick := os.Getenv("PUBLIC")
	if pick == "" {
		t.Skip("a look at the data, by PUBLIC=prefix,…")
	}
	for _, p := range slices.Concat(publics, hards, asides) {
		for _, x := range strings.Split(pick, ",") {
			if !strings.HasPrefix(p.file, x) {
				continue
			}
			for _, c := range p.compare(t) {
				fmt.Printf("%-40s %12d %-18s real %7.2f sim %7.2f %+6.1f%%\n", p.file, c.bytes, c.choice, c.real, c.sim, 100*(c.sim/c.real-1))
			}
		}
	}
}
