package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
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
}

// publics are the clean tables of NVIDIA GPUs over InfiniBand or RoCE, and one
// hard case. No parameter belongs to one of them alone.
var publics = slices.Concat([]public{
	{file: "gjaion_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8},
	{file: "gke_a3ultra_h200_2n_all_gather", topo: "dgx-h200", nodes: 2, gpus: 8},
	{file: "oci_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8},
	{file: "oci_a100_2n_all_reduce", topo: "dgx-a100", nodes: 2, gpus: 8},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2115", topo: "dgx-a100", nodes: 2, gpus: 8, env: sophia},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2816", topo: "dgx-a100", nodes: 2, gpus: 8, env: sophia},
	{file: "vultr_b200_2n_alltoall", topo: "dgx-b200", nodes: 2, gpus: 8, typ: coll.Uint8},
	{file: "coreweave_gb200_2racks_all_reduce", topo: "gb200-nvl72-tray", nodes: 36, gpus: 4, domain: 18},
	{file: "coreweave_gb200_20racks_all_reduce", topo: "gb200-nvl72-tray", nodes: 360, gpus: 4, domain: 18},
},
	slurm(10, 1, "sendrecv"),
	slurm(10, 2, "all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"),
	slurm(10, 4, "all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"),
	slurm(10, 8, "sendrecv"),
	slurm(2, 1, "alltoall", "sendrecv"), slurm(2, 2, "alltoall", "sendrecv"),
	slurm(2, 4, "alltoall", "sendrecv"), slurm(2, 8, "alltoall", "sendrecv"),
	[]public{
		{file: "polaris_a100_2n_all_reduce_nccl221", topo: hard, nodes: 2, gpus: 4, env: polaris},
		{file: "polaris_a100_2n_all_gather_nccl221", topo: hard, nodes: 2, gpus: 4, env: polaris},
		{file: "polaris_a100_2n_alltoall_nccl221", topo: hard, nodes: 2, gpus: 4, env: polaris},
		{file: "polaris_a100_8n_all_reduce_nccl221", topo: hard, nodes: 8, gpus: 4, env: polaris},
	})

// hard is the machine of the hard case.
const hard = "hgx-a100-4"

// What the tables say of the environment, as far as it bears on the run.
var (
	sophia  = []string{"NCCL_CROSS_NIC=1", "NCCL_NET_GDR_LEVEL=PXB"}
	polaris = []string{"NCCL_CROSS_NIC=1", "NCCL_NET_GDR_LEVEL=PHB"}
)

// slurm lists the tables of one cluster by operation.
func slurm(nodes, gpus int, ops ...string) (out []public) {
	for _, op := range ops {
		out = append(out, public{file: fmt.Sprintf("h100_%dn%dg_%s", nodes, gpus, op), topo: "dgx-h100", nodes: nodes, gpus: gpus, typ: coll.Float64})
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
	file := golden.Root(t, "testdata", "topos", p.topo+".xml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, filepath.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	nodes, gpus := p.nodes, p.gpus
	if p.domain > 0 {
		if spec, err = topo.Join(spec, p.domain); err != nil {
			t.Fatal(err)
		}
		nodes, gpus = p.nodes/p.domain, p.gpus*p.domain
	}
	c := p.join(t, spec, nodes, gpus)
	if newer(version) {
		p.env = append(slices.Clone(p.env), fmt.Sprintf("NCCL_NCHANNELS_PER_NET_PEER=%d", perPeer(c)))
		c = p.join(t, spec, nodes, gpus)
	}
	systems := make([]*topo.System, c.NNodes)
	for n, ranks := range c.NodeRanks {
		systems[n] = c.Cluster.Locate(int(ranks[0])).System
	}
	return c, systems
}

// join joins equal nodes under the table's settings.
func (p *public) join(t testing.TB, spec *topo.Spec, nodes, gpus int) *comm.Comm {
	cfg, _, err := config.Load(config.Sources{Flags: p.env})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Topo.GPUs = units.Some(gpus)
	cl, err := fabric.NewUniform(spec, nodes, cfg.Topo)
	if err != nil {
		t.Fatal(err)
	}
	c, err := comm.New(cl, cfg.Comm())
	if err != nil {
		t.Fatal(err)
	}
	return c
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

func (p *public) compare(t testing.TB) []compared {
	tab := p.read(t)
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
		pl, choice, err := c.Plan(op)
		if err != nil {
			t.Fatalf("%s %d: %v", p.file, r.Bytes, err)
		}
		x, err := sim.New(sim.Config{Comm: c.Comm, Systems: systems})
		if err != nil {
			t.Fatal(err)
		}
		res, err := x.Run(context.Background(), pl, trace.Discard)
		if err != nil {
			t.Fatalf("%s %d: %v", p.file, r.Bytes, err)
		}
		_, bus := coll.Bandwidth(f, op.Count, typ, c.NRanks, res.Elapsed)
		name := "send/recv"
		if f < coll.SendRecv {
			name = fmt.Sprintf("%v/%v", choice.Algo, choice.Proto)
		}
		out = append(out, compared{r.Bytes, r.BusBW, bus, name})
	}
	return out
}

// TestShowPublic prints public tables beside simulated ones: PUBLIC=prefix,…
func TestShowPublic(t *testing.T) {
	pick := os.Getenv("PUBLIC")
	if pick == "" {
		t.Skip("a look at the data, by PUBLIC=prefix,…")
	}
	for i := range publics {
		p := &publics[i]
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
