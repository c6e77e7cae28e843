package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// Fault is one injected fault: of a rank or a port, or of the cables between two
// switches or ends A and B.
type Fault struct {
	sim.Fault
	A, B string // empty unless the fault is of cables
}

// factor is by how much a cable is slower, 0 for down.
func (f *Fault) factor() float64 {
	if f.Down {
		return 0
	}
	return f.Slow
}

// errFault is the grammar of a fault.
var errFault = fmt.Errorf("write rank=3:slow=1.5, nic=node0/2:slow=4 (node0/2.1: the first port of a fused NIC) or link=leaf0~spine1:down; "+
	"a fault is slow=FACTOR from 1 to %g, down, and for NICs and links latency=MICROSECONDS up to %g and loss=SHARE of packets below 1",
	sim.MaxSlow, sim.MaxLater.Micros())

// ParseFault reads "nic=node0/2:loss=0.001". The error is the grammar.
func ParseFault(text string) (*Fault, error) {
	what, how, _ := strings.Cut(text, ":")
	kind, name, _ := strings.Cut(what, "=")
	f := &Fault{Fault: sim.Fault{Rank: -1, Slow: 1}}
	switch kind {
	case "rank":
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 {
			return nil, errFault
		}
		f.Rank = n
	case "nic":
		end, ok := fabric.ParseEnd(name)
		if !ok {
			return nil, errFault
		}
		f.Host, f.Net, f.Port = end.Host, end.Net, end.Port
	case "link":
		var ok bool
		if f.A, f.B, ok = strings.Cut(name, "~"); !ok || f.A == "" || f.B == "" {
			return nil, errFault
		}
	default:
		return nil, errFault
	}
	for _, part := range strings.Split(how, ":") {
		if !f.effect(part) {
			return nil, errFault
		}
	}
	return f, nil
}

// effect reads one "loss=0.001" into f.
func (f *Fault) effect(part string) bool {
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
