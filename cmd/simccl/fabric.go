package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// readNetwork reads the file of --fabric; nil without one.
func (m *machineFlags) readNetwork(a *app) (*fabric.Network, error) {
	if m.fabric == "" {
		return nil, nil
	}
	data, err := a.read(m.fabric, maxNetwork)
	if err != nil {
		return nil, err
	}
	n, err := fabric.ParseNetwork(data, m.fabric)
	return n, input(err)
}

func (r *runFlags) checkFidelity() error {
	switch r.fidelity {
	case "", "flow":
	case "step":
		if r.machine.fabric != "" {
			return usage("--fidelity step has an ideal network; leave --fabric out, or write flow")
		}
	case "alpha":
		if r.machine.fabric != "" || len(r.faults) > 0 {
			return usage("--fidelity alpha is a formula that knows no network and no faults; leave --fabric and --fault out")
		}
	default:
		return usage("--fidelity %s: write alpha, step or flow", r.fidelity)
	}
	return nil
}

// formula gives an operation the time of NCCL's own model, latency and bytes
// over bandwidth.
func (s *sweep) formula(o outcome, sink trace.Sink) (outcome, error) {
	if sink != trace.Discard {
		return outcome{}, notYet("--fidelity alpha with a trace", "a formula has no events; write step")
	}
	o.result = exec.Result{Elapsed: units.FromMicros(float64(o.choice.TimeUs)), Finish: make([]units.Time, s.m.comm.NRanks), Wrong: -1,
		Account: exec.Account{Method: exec.Formula}}
	if s.m.comm.NRanks == 1 {
		return outcome{}, notYet("--fidelity alpha of one rank", "NCCL copies and has no formula for it; write step")
	}
	if o.result.Elapsed <= 0 {
		return outcome{}, notYet("--fidelity alpha for "+s.fn.TestName(), "NCCL has no formula for send and receive")
	}
	for i := range o.result.Finish {
		o.result.Finish[i] = o.result.Elapsed
	}
	return o, nil
}

// between fills in the network between the nodes and what is wrong with it.
func (r *runFlags) between(m *machine, cfg *sim.Config) error {
	var bound *fabric.Fabric
	if m.network != nil {
		var err error
		if bound, err = m.network.Bind(sim.Ports(m.cluster), r.seed); err != nil {
			return input(fmt.Errorf("%s: %w", r.machine.fabric, err))
		}
	}
	for _, text := range r.faults {
		f, err := parseFault(text)
		if err != nil {
			return err
		}
		if f.a == "" {
			cfg.Faults = append(cfg.Faults, f.Fault)
			continue
		}
		if bound == nil {
			return usage("--fault %s: without --fabric there are no links between the nodes", text)
		}
		if bound.Degrade(f.a, f.b, f.factor(), f.Later)+bound.Lose(f.a, f.b, f.Loss) == 0 {
			return usage("--fault %s: the network has no cable between %s and %s", text, f.a, f.b)
		}
	}
	cfg.Fabric = bound
	if s := m.cfg.IB.Service; s != nil {
		cfg.RC = sim.Reliability{Timeout: units.Some(int(s.Timeout)), Retries: units.Some(int(s.Retry))}
	}
	cfg.QPs, cfg.SplitData = m.cfg.IB.QPs.Or(0), m.cfg.IB.SplitData
	set := &m.cfg.Socket
	cfg.Sockets = sim.Sockets{Threads: set.Threads, PerThread: set.SocksPerThread, MinTask: set.MinTask, Inline: set.Inline}
	cfg.TwoWrites = units.Some(units.Bytes(m.cfg.IB.ARThreshold.Or(8192)))
	if m.cfg.IB.Adaptive.Or(1) == 0 {
		cfg.TwoWrites = units.Some[units.Bytes](-1)
	}
	return nil
}

// fault is one --fault: of a rank or port, or of the cables between a and b.
type fault struct {
	sim.Fault
	a, b string
}

// factor is by how much a cable is slower, 0 for down.
func (f *fault) factor() float64 {
	if f.Down {
		return 0
	}
	return f.Slow
}

func parseFault(text string) (*fault, error) {
	what, how, _ := strings.Cut(text, ":")
	kind, name, _ := strings.Cut(what, "=")
	f := &fault{Fault: sim.Fault{Rank: -1, Slow: 1}}
	wrong := func() error {
		return usage("--fault %s: write rank=3:slow=1.5, nic=node0/2:slow=4 (node0/2.1: the first port of a fused NIC) or link=leaf0~spine1:down; what is wrong is slow=FACTOR from 1 to %g, down, and of nics and links latency=MICROSECONDS up to %g and loss=SHARE of packets below 1", text, sim.MaxSlow, sim.MaxLater.Micros())
	}
	switch kind {
	case "rank":
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 {
			return nil, wrong()
		}
		f.Rank = n
	case "nic":
		end, ok := fabric.ParseEnd(name)
		if !ok {
			return nil, wrong()
		}
		f.Host, f.Net, f.Port = end.Host, end.Net, end.Port
	case "link":
		var ok bool
		if f.a, f.b, ok = strings.Cut(name, "~"); !ok || f.a == "" || f.b == "" {
			return nil, wrong()
		}
	default:
		return nil, wrong()
	}
	for _, part := range strings.Split(how, ":") {
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
			return nil, wrong()
		}
	}
	return f, nil
}

func newTopoFabric(a *app) *cobra.Command {
	p := fabric.Layout{}
	routing := string(fabric.ECMP)
	var kinds []string
	for _, k := range fabric.Kinds() {
		kinds = append(kinds, fmt.Sprintf("  %-11s %s", k[0], k[1]))
	}
	c := &cobra.Command{Use: "fabric KIND", Short: "Lay out a network between nodes, for --fabric",
		Long: "fabric writes a network between nodes as a file for --fabric (docs/FABRIC.md). KIND is\n" + strings.Join(kinds, "\n"),
		Example: "  simccl topo fabric rail --hosts 16 --nets 8 > rail.json\n" +
			"  simccl topo fabric leaf-spine --hosts 4 --nets 8 --per-leaf 1 --oversub 2 > thin.json\n  simccl run all_reduce --nodes 4 --fabric thin.json --sizes 1M --columns +limit",
		Args: exactly("KIND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Kind, p.Routing = args[0], fabric.Routing(routing)
			if p.Routing != fabric.ECMP && p.Routing != fabric.Adaptive && p.Routing != fabric.Static {
				return usage("--routing %s: write ecmp, adaptive or static", routing)
			}
			if p.Oversub == 0 {
				return usage("--oversub 0: 1 does not block, 2 is 2:1")
			}
			if p.Kind != "planes" && cmd.Flags().Changed("planes") {
				return usage("--planes is for the kind planes; %s has one", p.Kind)
			}
			n, err := fabric.Generate(p)
			var bad *fabric.LayoutError
			if errors.As(err, &bad) {
				return usage("%v", err)
			}
			if err != nil {
				return err
			}
			_, err = a.out.Write(n.Format())
			return err
		}}
	f := c.Flags()
	f.IntVar(&p.Hosts, "hosts", 2, "number of hosts `N`")
	f.IntVar(&p.Nets, "nets", 8, "nets `N` of a host")
	f.IntVar(&p.Ports, "ports", 1, "ports `N` of a net that NCCL fuses of several")
	f.Float64Var(&p.Gbit, "gbit", 400, "speed of a port in `GBIT`/s")
	f.IntVar(&p.PerLeaf, "per-leaf", 0, "hosts `N` of a leaf, or of a group of rail leaves or pod (default all)")
	f.IntVar(&p.Spines, "spines", 0, "spines or cores `N` (default as many as the leaves' ports ask for)")
	f.IntVar(&p.Radix, "radix", 0, "ports `N` of a switch (default as many as needed)")
	f.IntVar(&p.Planes, "planes", 2, "planes `N`, for planes")
	f.Float64Var(&p.Oversub, "oversub", 1, "speed of a leaf's ports to hosts over that of its uplinks `X`")
	f.Float64Var(&p.Latency, "latency-us", 0.3, "latency `US` that a cable between switches adds, its switch included")
	f.StringVar(&routing, "routing", routing, "ecmp, adaptive or static")
	return c
}
