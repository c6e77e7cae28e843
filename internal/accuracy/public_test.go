package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// public is a table that others published, and the machine that stands for
// theirs.
type public struct {
	file  string
	topo  string // of testdata/topos
	nodes int
	gpus  int // of each node
	cast  comm.Multicast
	typ   coll.DataType
}

// publics are the clean tables of NVIDIA GPUs over InfiniBand or RoCE, and one
// hard case. No parameter belongs to one of them alone.
var publics = []public{
	{file: "gjaion_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8, cast: comm.MulticastAuto},
	{file: "oci_h100_2n_all_reduce", topo: "dgx-h100", nodes: 2, gpus: 8, cast: comm.MulticastAuto},
	{file: "oci_a100_2n_all_reduce", topo: "dgx-a100", nodes: 2, gpus: 8},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2115", topo: "dgx-a100", nodes: 2, gpus: 8},
	{file: "sophia_dgxa100_2n_all_reduce_env6_2816", topo: "dgx-a100", nodes: 2, gpus: 8},
	{file: "h100_10n2g_all_reduce", topo: "dgx-h100", nodes: 10, gpus: 2, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n2g_all_gather", topo: "dgx-h100", nodes: 10, gpus: 2, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n2g_reduce_scatter", topo: "dgx-h100", nodes: 10, gpus: 2, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n2g_alltoall", topo: "dgx-h100", nodes: 10, gpus: 2, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n4g_all_reduce", topo: "dgx-h100", nodes: 10, gpus: 4, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n4g_all_gather", topo: "dgx-h100", nodes: 10, gpus: 4, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n4g_reduce_scatter", topo: "dgx-h100", nodes: 10, gpus: 4, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n4g_alltoall", topo: "dgx-h100", nodes: 10, gpus: 4, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n1g_sendrecv", topo: "dgx-h100", nodes: 10, gpus: 1, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n2g_sendrecv", topo: "dgx-h100", nodes: 10, gpus: 2, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n4g_sendrecv", topo: "dgx-h100", nodes: 10, gpus: 4, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_10n8g_sendrecv", topo: "dgx-h100", nodes: 10, gpus: 8, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n1g_alltoall", topo: "dgx-h100", nodes: 2, gpus: 1, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n2g_alltoall", topo: "dgx-h100", nodes: 2, gpus: 2, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n4g_alltoall", topo: "dgx-h100", nodes: 2, gpus: 4, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n8g_alltoall", topo: "dgx-h100", nodes: 2, gpus: 8, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n1g_sendrecv", topo: "dgx-h100", nodes: 2, gpus: 1, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n2g_sendrecv", topo: "dgx-h100", nodes: 2, gpus: 2, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n4g_sendrecv", topo: "dgx-h100", nodes: 2, gpus: 4, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "h100_2n8g_sendrecv", topo: "dgx-h100", nodes: 2, gpus: 8, cast: comm.MulticastAuto, typ: coll.Float64},
	{file: "polaris_a100_2n_all_reduce_nccl221", topo: "hgx-a100-4", nodes: 2, gpus: 4},
	{file: "polaris_a100_2n_all_gather_nccl221", topo: "hgx-a100-4", nodes: 2, gpus: 4},
	{file: "polaris_a100_2n_alltoall_nccl221", topo: "hgx-a100-4", nodes: 2, gpus: 4},
	{file: "polaris_a100_8n_all_reduce_nccl221", topo: "hgx-a100-4", nodes: 8, gpus: 4},
}

// table is a published file.
type table struct {
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

func (p *public) read(t testing.TB) *table {
	data, err := os.ReadFile(golden.Shared(t, "measured", "public", p.file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	out := new(table)
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("%s: %v", p.file, err)
	}
	rows := out.Rows[:0]
	for i, r := range out.Rows {
		// All-gather and the like are rounded down to whole ranks.
		if r.Bytes > large-large/8 && (r.Bytes <= huge || i == 0) {
			rows = append(rows, r)
		}
	}
	out.Rows = rows
	return out
}

// machine builds the communicator that stands for the table's.
func (p *public) machine(t testing.TB) (*comm.Comm, []*topo.System) {
	file := golden.Root(t, "testdata", "topos", p.topo+".xml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, filepath.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	cl, err := fabric.NewUniform(spec, p.nodes, topo.Params{GPUs: units.Some(p.gpus)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := comm.New(cl, comm.Params{Multicast: p.cast})
	if err != nil {
		t.Fatal(err)
	}
	systems := make([]*topo.System, c.NNodes)
	for n, ranks := range c.NodeRanks {
		systems[n] = cl.Locate(int(ranks[0])).System
	}
	return c, systems
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
	c, systems := p.machine(t)
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
