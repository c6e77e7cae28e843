package netpreset

import (
	"errors"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// Models are the words for how a network is simulated.
func Models() []string { return []string{"flow", "packet", "hybrid"} }

// File is a fabric file.
type File struct {
	Name    string
	Data    []byte
	Network *fabric.Network // nil: none
}

// Choice is how a network is simulated: Model is one of Models() or empty, CC a congestion
// control and Balance one of Balances() in place of the file's.
type Choice struct{ Model, CC, Balance string }

// Balances are the words for how frames choose their routes.
func Balances() []string { return []string{"queue-pair", "flowlet", "packet"} }

// Attach fills in what a network that is simulated frame by frame needs. Without a
// file all ports hang on one switch, which is what the ideal network is, too.
// Errors are those of the file with their places, and of usage.
func Attach(cfg *sim.Config, cl *fabric.Cluster, f File, as Choice) error {
	switch as.Model {
	case "", "flow":
		return nil
	case "packet", "hybrid":
	default:
		return fail.Usage("--network %s: write one of %s", as.Model, strings.Join(Models(), ", "))
	}
	net := f.Network
	if net == nil {
		net = fabric.Crossbar(speeds(cl))
		var err error
		if cfg.Fabric, err = net.Bind(sim.Ports(cl), cfg.Seed); err != nil {
			return err
		}
	}
	set, err := Of(net, as, cfg.Seed, cfg.RC)
	var p *fabric.PacketsError
	switch {
	case err == nil && as.Model == "hybrid" && set.Routing.Balance != packet.Hashed:
		return fail.Usage("--network hybrid: frames of this fabric choose their routes one by one, and no " +
			"link shows where queues form; write packet")
	case err == nil:
		set.Hybrid = as.Model == "hybrid"
		cfg.Packets = set
		return nil
	case !errors.As(err, &p):
		return err
	case (p.Key == "cc" || p.Key == "ecn") && as.CC != "":
		return fail.Usage("--cc: %s", p.Problem)
	case p.Key == "balance" && as.Balance != "":
		return fail.Usage("--balance: %s", p.Problem)
	}
	return fail.Input(net.Placed(f.Data, f.Name, p))
}

// speeds lists by host and net the speeds of its ports in Gbit/s.
func speeds(cl *fabric.Cluster) [][][]float64 {
	out := make([][][]float64, cl.NHosts())
	for h := range out {
		s := cl.Host(h).Systems[0]
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
