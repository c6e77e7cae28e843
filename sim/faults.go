package sim

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/sim/internal/packets"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/topo"
)

// Values that a user sets of the network; see package param.
type (
	// Sockets are how connections over TCP are split.
	Sockets = param.Sockets
	// Reliability is how lost packets are repeated.
	Reliability = param.Reliability
	// Fault is a defect of a rank or of a port.
	Fault = param.Fault
	// TimedFault is a defect of cables that begins and ends, of Packets.
	TimedFault = packets.TimedFault
)

// Bounds of a Fault.
const (
	MaxSlow  = param.MaxSlow
	MaxLater = param.MaxLater
)

// slowness lists by how much each rank is slower than it should be; nil where
// none is.
func (c *Config) slowness() []float64 {
	var out []float64
	for _, t := range c.Faults {
		if t.Rank < 0 || t.Slow == 1 {
			continue
		}
		if out == nil {
			out = make([]float64, c.Comm.NRanks)
			for i := range out {
				out[i] = 1
			}
		}
		out[t.Rank] *= t.Slow
	}
	return out
}

// down lists the ranks whose processes have ended; nil where none has.
func (c *Config) down() []bool {
	var out []bool
	for _, t := range c.Faults {
		if t.Rank < 0 || !t.Down {
			continue
		}
		if out == nil {
			out = make([]bool, c.Comm.NRanks)
		}
		out[t.Rank] = true
	}
	return out
}

// checkFaults refuses faults of what is not there.
func (c *Config) checkFaults() error {
	for _, f := range c.Faults {
		switch {
		case f.Rank >= c.Comm.NRanks:
			return &ConfigError{"Faults", fmt.Sprintf("rank %d; ranks are 0 to %d", f.Rank, c.Comm.NRanks-1)}
		case !(f.Slow >= 1 && f.Slow <= MaxSlow):
			return &ConfigError{"Faults", fmt.Sprintf("slower by %g; factors are 1 to %g", f.Slow, MaxSlow)}
		case f.Later < 0 || f.Later > MaxLater:
			return &ConfigError{"Faults", fmt.Sprintf("%v later; at most %v", f.Later, MaxLater)}
		case !(f.Loss >= 0 && f.Loss <= 1):
			return &ConfigError{"Faults", fmt.Sprintf("a loss of %g; from 0 to 1", f.Loss)}
		case f.Rank < 0:
			n := c.fusedPorts(f.Host, f.Net)
			if n == 0 {
				return &ConfigError{"Faults",
					fmt.Sprintf("net %d of node %d: there is none; simccl topo show lists them", f.Net,
						f.Host)}
			}
			if f.Port != 0 && (n < 2 || f.Port < 0 || f.Port > n) {
				return &ConfigError{"Faults",
					fmt.Sprintf("port %d of net %d of node %d, which has %d; ports of fused nets are "+
						"numbered from 1", f.Port, f.Net, f.Host, n)}
			}
		}
	}
	return nil
}

// fusedPorts is the number of ports of a host's net.
func (c *Config) fusedPorts(host, net int) int {
	r := slices.Index(c.Comm.HostOf, int32(host))
	if r < 0 {
		return 0
	}
	s := c.Systems[c.Comm.NodeOf[r]]
	nets := s.Of(topo.NET)
	if net < 0 || net >= len(nets) {
		return 0
	}
	return max(1, len(s.Nodes[nets[net]].Net.Fused))
}
