package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/fabric"
)

// wild is a scenario of packets by chance: options that go together and some that do
// not.
func wild(r *rand.Rand) Spec {
	one := func(v ...string) string { return v[r.IntN(len(v))] }
	s := small(one("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
		"sendrecv", "gather", "scatter"), one("8", "64K", "1M"))
	s.Machine.Nodes, s.Machine.GPUs = []Nodes{{Topo: "a.xml", Count: 2 + r.IntN(2)}}, 1+r.IntN(2)
	s.Network = Network{Model: one("packet", "hybrid"), Fabric: one("", "net.json", "meta", "spectrum-x",
		"infiniband-ndr"), CC: one("", "", "", "none", "swift", "nscc", "dctcp"),
		Class: one("", "", "roce", "infiniband")}
	s.Workload.Buffers, s.Workload.Group, s.Workload.Cycles = one("", "", "registered", "windows"), r.IntN(3),
		r.IntN(2)
	s.Workload.Unalign, s.Workload.CTAPolicy = r.IntN(2), r.IntN(3)
	s.Engine = Engine{Fold: one("", "", "", "", "auto", "auto", "off", "off", "exact"), Skip: one("", "off"),
		Jitter: one("", "off"), Launch: one("", "graph"),
		Blocking: max(0, r.IntN(16)-13), NoProof: r.IntN(2) == 0, CPUTime: r.IntN(6) == 0}
	if r.IntN(3) == 0 {
		s.Engine.Processes, s.Engine.Threads = 1, 1
	}
	if r.IntN(3) == 0 {
		s.NCCL.Env = map[string]string{"NCCL_IB_QPS_PER_CONNECTION": one("2", "4"),
			"NCCL_IB_SPLIT_DATA_ON_QPS": one("0", "1")}
	}
	if r.IntN(4) == 0 {
		s.Network.Faults = []string{one("nic=node0/2:slow=4", "nic=node1/0:loss=0.001",
			"nic=node0/0:storm@5-50", "rank=1:slow=1.5", "nic=node1/0:slow=2@10-40")}
	}
	if s.Engine.Launch == "graph" {
		s.Engine.Blocking, s.Engine.CPUTime = 0, false
	}
	if r.IntN(8) == 0 {
		s.Engine.Fidelity = one("step", "flow", "alpha")
	}
	s.Seed = uint64(r.IntN(3))
	return s
}

// TestWildPackets: whatever goes with packets, the same bits come out on one processor
// and on two, with folds and skips left to simccl and switched off; what does not go is
// refused by type, and nothing panics.
func TestWildPackets(t *testing.T) {
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 3, Nets: 8, Gbit: 400, PerLeaf: 1,
		Oversub: 4, Latency: 0.3, Routing: fabric.ECMP})
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"a.xml": {Data: builtin.DGXH100()}, "net.json": {Data: n.Format()}}
	rows := func(s Spec, workers int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		r, err := Run(context.Background(), s, Options{Files: files, Workers: workers})
		if err != nil {
			if !typed(err) {
				t.Errorf("%+v: %v (%T)", s, err, err)
			}
			return "refused: " + err.Error()
		}
		text, err := json.Marshal(r.Rows)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	chance, refused, most := rand.New(rand.NewPCG(22, 6)), 0, 40
	for range most {
		s := wild(chance)
		a := rows(s, 1)
		if b := rows(s, 2); a != b {
			t.Errorf("%+v: on one processor\n%s\non two\n%s", s, a, b)
		}
		if a[:7] == "refused" {
			refused++
			continue
		}
		if s.Network.Model == "packet" {
			s.Engine.Fold, s.Engine.Skip = "off", "off"
			if b := rows(s, 1); a != b {
				t.Errorf("%+v: \n%s\nwithout folds and skips\n%s", s, a, b)
			}
		}
	}
	if refused == 0 || refused > most*3/4 {
		t.Errorf("%d of %d are refused", refused, most)
	}
	t.Logf("%d of %d are refused", refused, most)
}

// TestFlowsKnowNoPackets: what a fabric file says of packets changes nothing where links
// are shared as flows, not a byte.
func TestFlowsKnowNoPackets(t *testing.T) {
	for _, op := range []string{"all_reduce", "alltoall"} {
		var got [2]string
		for i, fabric := range []string{"net.json", "thin.json"} {
			r, err := framed(t, func(s *Spec) {
				s.Network.Fabric, s.Network.Model, s.Workload.Op = fabric, "", op
			})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(r.Rows)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = string(text)
		}
		if got[0] != got[1] {
			t.Errorf("%s:\n%s\nwith packets in the file\n%s", op, got[0], got[1])
		}
	}
}

// typed says that an error has a type of its kind.
func typed(err error) bool {
	var field *FieldError
	var input *fail.Error
	var stall *sim.StallError
	var config *sim.ConfigError
	var op *OperationError
	return errors.As(err, &op) || errors.As(err, &field) || errors.As(err, &input) ||
		errors.As(err, &stall) || errors.As(err, &config)
}
