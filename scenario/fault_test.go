package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
)

// hosts are n DGX H100.
func hosts(t *testing.T, n int) ([]fabric.Member, *fabric.Cluster) {
	t.Helper()
	const name = "dgx-h100.xml"
	data, err := os.ReadFile(filepath.Join("../testdata/topos", name))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		t.Fatal(err)
	}
	members := []fabric.Member{{Spec: spec, Count: n}}
	cl, err := fabric.New(members, topo.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	return members, cl
}

// TestAbsent: what is named goes, on the node that is named or on all, and nothing else.
func TestAbsent(t *testing.T) {
	members, cl := hosts(t, 4)
	second := nets(cl.Host(1))[2].Name
	for _, x := range []struct {
		fault  string
		counts []int // nodes of each member that comes back
		gpus   []int
		nets   []int
	}{
		{"nic=node1/" + second, []int{1, 1, 2}, []int{8, 8, 8}, []int{8, 7, 8}},
		{"nic=node1/2", []int{1, 1, 2}, []int{8, 8, 8}, []int{8, 7, 8}},
		{"nic=" + second, []int{4}, []int{8}, []int{7}},
		{"rail=7", []int{4}, []int{8}, []int{7}},
		{"gpu=node0/5", []int{1, 3}, []int{7, 8}, []int{8, 8}},
		{"gpu=GPU5", []int{4}, []int{7}, []int{8}},
		{"nvswitch=1", []int{4}, []int{8}, []int{8}},
	} {
		out, parents, err := absencesOf([]string{x.fault + ":absent"}).remove(members, cl, nil)
		if err != nil || len(out) != len(x.counts) || len(parents) != len(out) {
			t.Errorf("%s: %d members, %v", x.fault, len(out), err)
			continue
		}
		for i, m := range out {
			if g, n := len(m.Spec.Root.All("gpu")), len(m.Spec.Root.All("net")); m.Count != x.counts[i] ||
				g != x.gpus[i] || n != x.nets[i] {
				t.Errorf("%s: member %d has %d nodes of %d GPUs and %d NICs", x.fault, i, m.Count, g, n)
			}
		}
		if was, is := len(members[0].Spec.Root.All("nvlink")),
			len(out[0].Spec.Root.All("nvlink")); strings.HasPrefix(x.fault, "nvswitch") && is != was*3/4 {
			t.Errorf("%s: of %d NVLinks %d are left", x.fault, was, is)
		}
	}
	if n := len(members[0].Spec.Root.All("net")); n != 8 {
		t.Errorf("the topology itself has %d NICs now", n)
	}
}

// TestLeaf: NICs behind a leaf go with it, and the cables of others keep their NICs.
func TestLeaf(t *testing.T) {
	members, cl := hosts(t, 2)
	const text = `{"switches": [{"name": "leaf0"}, {"name": "leaf1"}], "cables": [
		{"a": "node0/0", "b": "leaf0", "gbit": 400}, {"a": "node0/1", "b": "leaf1", "gbit": 400}, {"a": "node0/2.1", "b": "leaf0", "gbit": 400},
		{"a": "node0/2.2", "b": "leaf1", "gbit": 400}, {"a": "node1/3", "b": "leaf1", "gbit": 400}]}`
	net, err := fabric.ParseNetwork([]byte(text), "net.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := absencesOf([]string{"leaf=leaf1:absent"}).remove(members, cl, net); err == nil ||
		!strings.Contains(err.Error(), "node1 reaches the network through it alone") {
		t.Errorf("a leaf with all NICs of a node: %v", err)
	}
	a := absencesOf([]string{"leaf=leaf0:absent"})
	out, _, err := a.remove(members, cl, net)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 2 || len(out[0].Spec.Root.All("net")) != 7 || len(out[1].Spec.Root.All("net")) != 8 {
		t.Errorf("%d members, %d NICs on the first", len(out), len(out[0].Spec.Root.All("net")))
	}
	a.rewire(net)
	var ends []string
	for _, c := range net.Cables {
		ends = append(ends, c.A+"~"+c.B)
	}
	if got := strings.Join(ends, " "); got != "node0/0~leaf1 node0/1.2~leaf1 node1/3~leaf1" ||
		len(net.Switches) != 1 {
		t.Errorf("cables %s", got)
	}
}

// TestNames: a NIC's name is the number that it has; what is not there is named with
// what is.
func TestNames(t *testing.T) {
	members, cl := hosts(t, 2)
	name := nets(cl.Host(0))[3].Name
	for text, want := range map[string]int{"nic=node1/" + name + ":down": 1, "nic=node1/3:down": 1, "nic=" +
		name + ":slow=2": 2} {
		var cfg sim.Config
		if err := addFault(&cfg, cl, text); err != nil || len(cfg.Faults) != want ||
			cfg.Faults[want-1].Net != 3 ||
			cfg.Faults[want-1].Host != 1 {
			t.Errorf("%s: %+v, %v", text, cfg.Faults, err)
		}
	}
	var cfg sim.Config
	for text, want := range map[string]string{"nic=node0/eth7:down": "write one of mlx5_0",
		"nic=node9/mlx5_0:down": "nodes are node0 to node1", "nic=:down": "write rank=3",
		"nic=x/y:down": "write rank=3"} {
		if err := addFault(&cfg, cl, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{"gpu=9": "write one of 0, 1",
		"nic=node0/eth7": "write one of mlx5_0", "leaf=leaf0": "without a fabric",
		"nvswitch=9": "there is none such"} {
		if _, _, err := absencesOf([]string{text + ":absent"}).remove(members, cl, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"rank=3:absent", "rail=x:absent", "gpu=:absent", "gpu=n0/3:absent"} {
		if _, err := parseFault(text); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// TestTimed: faults that begin and end, or come again.
func TestTimed(t *testing.T) {
	us := units.Microsecond
	for text, want := range map[string]sim.TimedFault{
		"link=a~b:down@100-300":  {A: "a", B: "b", Down: true, From: 100 * us, To: 300 * us},
		"link=a~b:slow=4@5":      {A: "a", B: "b", Slow: 0.25, From: 5 * us},
		"nic=node0/2:storm":      {Storm: true},
		"nic=node0/2:flap=20/90": {Out: 20 * us, Every: 90 * us},
	} {
		if f, err := parseFault(text); err != nil || f.Timed == nil || *f.Timed != want {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
	for _, text := range []string{"rank=3:storm", "link=a~b:down@", "link=a~b:down@3-2", "link=a~b:flap=9/8",
		"link=a~b:flap=0/8", "link=a~b:storm=2", "link=a~b:latency=2@3", "link=a~b:slow=2:down@3",
		"link=a~b:@3"} {
		if _, err := parseFault(text); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// TestSlowedNICsAreNamed: the link that holds a slow NIC to its speed has the NIC's name; others keep theirs.
func TestSlowedNICsAreNamed(t *testing.T) {
	_, cl := hosts(t, 2)
	s := &Site{Cluster: cl}
	second := nets(cl.Host(1))[2].Name
	for name, want := range map[string]string{"node1/2 slow in": "node1/" + second + " slow in",
		"node1/99 slow in": "node1/99 slow in", "node7/0 slow out": "node7/0 slow out",
		"node0 GPU0→NVSwitch": "node0 GPU0→NVSwitch", "leaf0→node0/0": "leaf0→node0/0"} {
		if got := s.LinkName(name); got != want {
			t.Errorf("%s is called %q, want %q", name, got, want)
		}
	}
}
