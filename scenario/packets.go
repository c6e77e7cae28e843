package scenario

import (
	"errors"

	"github.com/simccl/simccl/internal/packetnet"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// packets fills in what a network that is simulated frame by frame needs. Without a
// fabric all ports hang on one switch, which is what the ideal network is, too.
func (m *Site) packets(spec *Spec, cfg *sim.Config) error {
	if spec.Network.Model == "" || spec.Network.Model == "flow" {
		return nil
	}
	net := m.Network
	if net == nil {
		net = fabric.Crossbar(m.portSpeeds())
		var err error
		if cfg.Fabric, err = net.Bind(sim.Ports(m.Cluster), spec.seed()); err != nil {
			return err
		}
	}
	set, err := packetnet.Of(net, spec.Network.CC, spec.seed(), cfg.RC)
	var p *fabric.PacketsError
	switch {
	case err == nil:
		set.Hybrid = spec.Network.Model == "hybrid"
		cfg.Packets = set
		return nil
	case !errors.As(err, &p):
		return err
	case p.Key == "cc" && spec.Network.CC != "":
		return &FieldError{Path: "network.cc", Value: spec.Network.CC, Problem: p.Problem}
	}
	return bad(net.Placed(m.fabric, spec.Network.Fabric, p))
}

// portSpeeds lists by host and net the speeds of its ports in Gbit/s.
func (m *Site) portSpeeds() [][][]float64 {
	out := make([][][]float64, m.Cluster.NHosts())
	for h := range out {
		s := m.Cluster.Host(h).Systems[0]
		for _, id := range s.Of(topo.NET) {
			n := s.Nodes[id].Net
			k := max(1, len(n.Fused))
			ports := make([]float64, k)
			for i := range ports {
				if ports[i] = float64(n.BW) * 8 / float64(k); len(n.PortBW) == k {
					ports[i] = float64(n.PortBW[i]) * 8
				}
			}
			out[h] = append(out[h], ports)
		}
	}
	return out
}
