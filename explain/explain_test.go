package explain_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// build makes a communicator of equal nodes from one of the project's files.
func build(t testing.TB, file string, nodes int, multicast comm.Multicast, env ...string) (*comm.Comm,
	*config.Config) {
	t.Helper()
	cfg, _, err := config.Load(config.Sources{Flags: env})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", file))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, file)
	if err != nil {
		t.Fatal(err)
	}
	one, err := topo.Build(spec, cfg.Topo)
	if err != nil {
		t.Fatal(err)
	}
	tp := cfg.Topo
	tp.NRanks = nodes * one.NRanks()
	host, err := topo.Build(spec, tp)
	if err != nil {
		t.Fatal(err)
	}
	var parts []comm.Part
	for n := range nodes {
		for _, s := range host.Systems {
			parts = append(parts, comm.Part{System: s, First: int32(n * host.NRanks()), Host: int32(n)})
		}
	}
	c, err := comm.FromSystems(parts, comm.Params{Rules: rules.Default(), Search: cfg.Search,
		Connect: cfg.Connect, Tuning: cfg.Tuning, Multicast: multicast})
	if err != nil {
		t.Fatal(err)
	}
	return c, cfg
}

func ask(t testing.TB, c *comm.Comm, cfg *config.Config, f coll.Func, size units.Bytes) (*explain.Report,
	error) {
	t.Helper()
	o := comm.Op{Func: f, Type: coll.Float32, Count: coll.ExactSizes(f, size, coll.Float32, c.NRanks).Count}
	return explain.New(explain.Input{Comm: c, Op: o, Access: cfg.Topo.Access})
}

// TestStories are whole reports as a user reads them.
func TestStories(t *testing.T) {
	for _, s := range []struct {
		name, file string
		nodes      int
		multicast  comm.Multicast
		f          coll.Func
		size       units.Bytes
		env        []string
	}{
		{"h100-2n-allreduce-2M", "dgx-h100.xml", 2, comm.MulticastOff, coll.AllReduce, 2 << 20, nil},
		{"h100-2n-nvls-allreduce-1G", "dgx-h100.xml", 2, comm.MulticastOn, coll.AllReduce, 1 << 30, nil},
		{"l40s-1n-allgather-64M", "pcie-l40s-8.xml", 1, comm.MulticastOff, coll.AllGather, 64 << 20, nil},
		{"rtx4090-2n-broadcast-8", "pcie-rtx4090-8.xml", 2, comm.MulticastOff, coll.Broadcast, 8,
			[]string{"NCCL_PROTO=^LL128"}},
		{"h200x4-alltoall", "h200x4-4.xml", 1, comm.MulticastOff, coll.AllToAll, 1 << 20,
			[]string{"NCCL_P2P_DISABLE=1"}},
	} {
		c, cfg := build(t, s.file, s.nodes, s.multicast, s.env...)
		r, err := ask(t, c, cfg, s.f, s.size)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		golden.Text(t, "testdata/"+s.name+".txt", r.Text())
	}
}

// TestNoChoice: a list that leaves nothing is an error and still a report that
// says for every cell why it is off.
func TestNoChoice(t *testing.T) {
	c, cfg := build(t, "dgx-h100.xml", 1, comm.MulticastOff, "NCCL_ALGO=Tree")
	r, err := ask(t, c, cfg, coll.Broadcast, 1<<20)
	var none *tuning.NoChoiceError
	if !errors.As(err, &none) || none.Code() != 5 || r == nil || r.Choice != nil {
		t.Fatalf("got %v, %v", r, err)
	}
	for _, cell := range r.Rivals {
		if cell.Available || len(cell.Off) == 0 {
			t.Errorf("%s %s: %+v", cell.Algo, cell.Proto, cell)
		}
	}
	if !strings.Contains(r.Text(), "NCCL_ALGO=Tree") {
		t.Error("the text does not name the list")
	}
}

// TestEveryMachineExplains walks the project's machines, collectives and
// sizes: a report is complete, its winner is the fastest, its ranges hold the
// size once, and no link is fuller than it can be by more than the search's
// own rounding.
func TestEveryMachineExplains(t *testing.T) {
	files, err := os.ReadDir(golden.Root(t, "testdata", "topos"))
	if err != nil {
		t.Fatal(err)
	}
	reports := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".xml") {
			continue
		}
		for _, nodes := range []int{1, 2} {
			c, cfg := build(t, f.Name(), nodes, comm.MulticastAuto)
			for _, fn := range coll.Funcs() {
				for _, size := range []units.Bytes{0, 8, 1 << 20, 1 << 30} {
					r, err := ask(t, c, cfg, fn, size)
					if err != nil {
						t.Errorf("%s %d nodes %s %d: %v", f.Name(), nodes, fn, size, err)
						continue
					}
					reports++
					check(t, f.Name()+" "+r.Op, r)
				}
			}
		}
	}
	t.Logf("%d reports", reports)
}

func check(t *testing.T, name string, r *explain.Report) {
	t.Helper()
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if len(r.Text()) == 0 {
		t.Errorf("%s: no text", name)
	}
	if r.Choice == nil {
		if r.Note == "" {
			t.Errorf("%s: neither choice nor note", name)
		}
		return
	}
	here := 0
	for _, x := range r.Crossovers {
		if x.Here {
			here++
			if !x.Mixed && (x.Algo != r.Choice.Algo || x.Proto != r.Choice.Proto) {
				t.Errorf("%s: the range says %s %s, the choice %s %s", name, x.Algo, x.Proto, r.Choice.Algo,
					r.Choice.Proto)
			}
		}
	}
	if here != 1 || len(r.Rivals) != int(coll.NumAlgorithms)*int(coll.NumProtocols)-1 {
		t.Errorf("%s: %d ranges hold the size, %d rivals", name, here, len(r.Rivals))
	}
	for _, x := range r.Rivals {
		if x.Available && x.TimeUs < r.Choice.TimeUs {
			t.Errorf("%s: %s %s is faster than the choice", name, x.Algo, x.Proto)
		}
	}
	if r.Graph == nil || len(r.Graph.Links) == 0 {
		t.Errorf("%s: no limiting link", name)
		return
	}
	if l := r.Graph.Links[0]; l.Share > 1.25 || l.Share <= 0 {
		t.Errorf("%s: %s carries %g of %g GB/s", name, l.Name, l.LoadGBps, l.CapacityGBps)
	}
}

// TestRailsThatDecide: a channel that may not change NICs and does within a rail is named.
func TestRailsThatDecide(t *testing.T) {
	for rail, want := range map[string]string{"-1": "",
		"0": "channel 0 enters by mlx5_0 and leaves by mlx5_3: both nets have rail 0 (and 7 more channels " +
			"so)"} {
		on, err := site.OpenFor("2.30.7", site.Nodes(golden.Root(t, "testdata", "topos", "dgx-h100.xml"), 2),
			"NCCL_ALGO=Ring", "SIMCCL_NET_RAIL="+rail)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explain.New(explain.Input{Comm: on.Comm, Op: comm.Op{Func: coll.AllReduce,
			Type: coll.Float32, Count: 1 << 26}})
		if err != nil || r.Graph == nil || r.Graph.Rails != want || !strings.Contains(r.Text(), want) {
			t.Errorf("rail %s: %+v (%v), want %q", rail, r.Graph, err, want)
		}
	}
}
