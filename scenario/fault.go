package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// fault is one injected fault: of a rank or a port, of the cables between two switches
// or ends A and B, or a device that is absent.
type fault struct {
	sim.Fault
	A, B string // empty unless the fault is of cables
	// Absent: the job was restarted without the device. Kind is nic, gpu, nvswitch, rail
	// or leaf.
	Absent bool
	Kind   string
	// Node is the node of a device, -1 for all; Name its name, number or bus id. Both
	// are of devices that are absent, and of NICs by name.
	Node int
	Name string
	// Timed is of faults that frames alone meet: nil for others.
	Timed *sim.TimedFault
}

// factor is by how much a cable is slower, 0 for down.
func (f *fault) factor() float64 {
	if f.Down {
		return 0
	}
	return f.Slow
}

var errFault = fmt.Errorf("write rank=3:slow=1.5, nic=node0/mlx5_2:slow=4, nic=node0/2:slow=4 (node0/2.1: "+
	"the first port of a fused NIC) or link=leaf0~spine1:down; "+
	"a fault is slow=FACTOR from 1 to %g, down, and for NICs and links latency=MICROSECONDS up to %g and "+
	"loss=SHARE of packets below 1; "+
	"with --network packet also storm (the NIC, or the second end, pauses its neighbor), flap=20/100 (down "+
	"for 20 of each 100 us), and when, in us of the run: link=leaf0~spine1:down@100-300; "+
	"a job that was restarted without a device is nic=node0/mlx5_2:absent, gpu=node0/3:absent, "+
	"nvswitch=0:absent, rail=3:absent or leaf=leaf3:absent, without the node on all",
	sim.MaxSlow, sim.MaxLater.Micros())

// parseFault reads "nic=node0/2:loss=0.001". The error is the grammar.
func parseFault(text string) (*fault, error) {
	if what, ok := strings.CutSuffix(text, ":absent"); ok {
		return parseAbsent(what)
	}
	what, how, _ := strings.Cut(text, ":")
	kind, name, _ := strings.Cut(what, "=")
	f := &fault{Fault: sim.Fault{Rank: -1, Slow: 1}, Kind: kind, Node: -1}
	switch kind {
	case "rank":
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 {
			return nil, errFault
		}
		f.Rank = n
	case "nic":
		if end, ok := fabric.ParseEnd(name); ok {
			f.Host, f.Net, f.Port = end.Host, end.Net, end.Port
		} else if !f.place(name) {
			return nil, errFault
		}
	case "link":
		var ok bool
		if f.A, f.B, ok = strings.Cut(name, "~"); !ok || f.A == "" || f.B == "" {
			return nil, errFault
		}
	default:
		return nil, errFault
	}
	how, when, timed := strings.Cut(how, "@")
	parts := strings.Split(how, ":")
	if timed || strings.HasPrefix(how, "storm") || strings.HasPrefix(how, "flap") {
		if len(parts) != 1 || f.Rank >= 0 || !f.timed(how, when, timed) {
			return nil, errFault
		}
		return f, nil
	}
	for _, part := range parts {
		if !f.effect(part) {
			return nil, errFault
		}
	}
	return f, nil
}

// timed reads "flap=20/100" and "100-300" into f.Timed.
func (f *fault) timed(how, when string, given bool) bool {
	t := &sim.TimedFault{A: f.A, B: f.B}
	if given {
		from, to, ended := strings.Cut(when, "-")
		var ok, ok2 bool
		t.From, ok = micros(from)
		if ok2 = true; ended {
			t.To, ok2 = micros(to)
		}
		if !ok || !ok2 || ended && t.To <= t.From {
			return false
		}
	}
	switch name, value, valued := strings.Cut(how, "="); {
	case name == "storm" && !valued:
		t.Storm = true
	case name == "flap":
		out, every, _ := strings.Cut(value, "/")
		var ok, ok2 bool
		t.Out, ok = micros(out)
		t.Every, ok2 = micros(every)
		if !ok || !ok2 || t.Out <= 0 || t.Out >= t.Every {
			return false
		}
	case name == "latency" || !f.effect(how):
		return false
	}
	if t.Down, t.Loss = f.Down, f.Loss; f.Slow > 1 {
		t.Slow = 1 / f.Slow
	}
	f.Fault = sim.Fault{Rank: -1, Slow: 1, Host: f.Host, Net: f.Net, Port: f.Port}
	f.Timed = t
	return true
}

// micros reads a time in microseconds, up to a thousand seconds.
func micros(text string) (units.Time, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return units.FromMicros(v), err == nil && v >= 0 && v <= 1e9
}

// parseAbsent reads "gpu=node0/3".
func parseAbsent(what string) (*fault, error) {
	f := &fault{Fault: sim.Fault{Rank: -1, Slow: 1}, Absent: true, Node: -1}
	var name string
	f.Kind, name, _ = strings.Cut(what, "=")
	switch f.Kind {
	case "nic", "gpu", "nvswitch":
		if f.place(name) {
			return f, nil
		}
	case "rail":
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			f.Name = name
			return f, nil
		}
	case "leaf":
		if f.Name = name; name != "" {
			return f, nil
		}
	}
	return nil, errFault
}

// place reads "node0/NAME", or NAME for all nodes.
func (f *fault) place(s string) bool {
	f.Name = s
	if node, name, ok := strings.Cut(s, "/"); ok {
		n, err := strconv.Atoi(strings.TrimPrefix(node, "node"))
		if err != nil || n < 0 || !strings.HasPrefix(node, "node") {
			return false
		}
		f.Node, f.Name = n, name
	}
	return f.Name != ""
}

// effect reads one "loss=0.001" into f.
func (f *fault) effect(part string) bool {
	key, value, _ := strings.Cut(part, "=")
	v, err := strconv.ParseFloat(value, 64)
	switch {
	case key == "down" && value == "":
		f.Down = true
	case key == "loss" && err == nil && v >= 0 && v < 1 && f.Rank < 0:
		f.Loss = v
	case key == "slow" && err == nil && v >= 1 && v <= sim.MaxSlow:
		f.Slow = v
	case key == "latency" && err == nil && v >= 0 && v <= sim.MaxLater.Micros() && f.Rank < 0:
		f.Later = units.FromMicros(v)
	default:
		return false
	}
	return true
}

// addFault adds a fault to the simulator's configuration, or to the fabric's cables. One
// that is absent was taken out before.
func addFault(cfg *sim.Config, cl *fabric.Cluster, text string) error {
	f, err := parseFault(text)
	if err == nil && f.Timed != nil {
		cfg.Kernels = 1 // of several operations in a row only some would meet it
	}
	switch {
	case err != nil:
		return err
	case f.Absent:
		return nil
	case f.Timed != nil && cfg.Packets == nil:
		return fmt.Errorf("begins and ends, or is of frames: write --network packet, or a fault without @, " +
			"storm and flap")
	case f.Name != "":
		ports, err := f.ports(cl)
		for _, e := range ports {
			own := f.Fault
			own.Host, own.Net, own.Port = e.Host, e.Net, e.Port
			f.port(cfg, own)
		}
		return err
	case f.A == "":
		f.port(cfg, f.Fault)
	case f.Timed != nil:
		if cfg.Fabric.Degrade(f.A, f.B, 1, 0) == 0 {
			return fmt.Errorf("the network has no cable between %s and %s", f.A, f.B)
		}
		cfg.Packets.Timed = append(cfg.Packets.Timed, *f.Timed)
	case cfg.Fabric == nil:
		return fmt.Errorf("without a fabric there are no links between the nodes")
	case cfg.Fabric.Degrade(f.A, f.B, f.factor(), f.Later)+cfg.Fabric.Lose(f.A, f.B, f.Loss) == 0:
		return fmt.Errorf("the network has no cable between %s and %s", f.A, f.B)
	}
	return nil
}

func (f *fault) port(cfg *sim.Config, own sim.Fault) {
	cfg.Faults = append(cfg.Faults, own)
	if f.Timed != nil && own.Rank < 0 {
		t := *f.Timed
		if t.A = fmt.Sprintf("node%d/%d", own.Host, own.Net); own.Port > 0 {
			t.A += fmt.Sprintf(".%d", own.Port)
		}
		cfg.Packets.Timed = append(cfg.Packets.Timed, t)
	}
}

// ports are the NICs that a name, or a number, means on its node or on all.
func (f *fault) ports(cl *fabric.Cluster) ([]fabric.End, error) {
	var out []fabric.End
	var known []string
	for h := range cl.NHosts() {
		if f.Node >= 0 && h != f.Node {
			continue
		}
		known = nil
		for i, n := range nets(cl.Host(h)) {
			if n.Name == f.Name || strconv.Itoa(i) == f.Name {
				out = append(out, fabric.End{Host: h, Net: i})
			}
			known = append(known, n.Name)
			for p, port := range n.Fused {
				if port == f.Name {
					out = append(out, fabric.End{Host: h, Net: i, Port: p + 1})
				}
			}
		}
	}
	switch {
	case f.Node >= cl.NHosts():
		return nil, fmt.Errorf("there is no node%d: nodes are node0 to node%d", f.Node, cl.NHosts()-1)
	case len(out) == 0:
		return nil, fmt.Errorf("no NIC %s: %s", f.Name, list(known))
	}
	return out, nil
}

// LinkName is what a link of a result is called: of a NIC that a fault slows its name in place of its number.
func (s *Site) LinkName(name string) string {
	var host, net int
	var way string
	if n, _ := fmt.Sscanf(name, "node%d/%d slow %s", &host, &net, &way); n < 3 || host >= s.Cluster.NHosts() {
		return name
	}
	if all := nets(s.Cluster.Host(host)); net < len(all) {
		return fmt.Sprintf("node%d/%s slow %s", host, all[net].Name, way)
	}
	return name
}

// nets are the NICs of a host, in the order in which faults and fabrics count them.
func nets(h *topo.Host) []*topo.NetInfo {
	s := h.Systems[0]
	var out []*topo.NetInfo
	for _, id := range s.Of(topo.NET) {
		out = append(out, s.Nodes[id].Net)
	}
	return out
}

// list says which names there are.
func list(names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return "write one of " + strings.Join(names, ", ")
}
