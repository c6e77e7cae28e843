package packets

import (
	"strings"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/units"
)

// TimedFault is a fault of cables that begins and ends, or comes again and again, while
// frames are on their way; routes stay.
type TimedFault struct {
	// A and B name the ends of the cables: switches, or ports of hosts. B empty: the
	// cable of port A.
	A, B string
	// From and To are times of the run; To 0: to its end.
	From, To units.Time
	// Down: what arrives is lost. Slow is the share of the rate that is left, 0 for all,
	// Loss that of frames lost.
	Down       bool
	Slow, Loss float64
	// Storm: B pauses A all the time; without B, the port pauses its switch.
	Storm bool
	// Flap: the cable is down for the first Out of each Every; 0: it does not flap.
	Out, Every units.Time
}

// mostFlaps is how often a cable flaps at most.
const mostFlaps = 10000

// faults are the timed faults by cable of the frames' network.
func (m *Model) faults() (out []packet.Fault) {
	for i := range m.set.Timed {
		t := &m.set.Timed[i]
		for k := range m.net.Cables {
			c := &m.net.Cables[k]
			a, b := m.nodes[c.A].Name, m.nodes[c.B].Name
			there, back := named(a, t.A) && (t.B == "" || named(b, t.B)), named(b, t.A) &&
				(t.B == "" || named(a, t.B))
			if !there && !back {
				continue
			}
			f := packet.Fault{Cable: k, From: t.From, To: t.To, Down: t.Down, Slow: t.Slow, Loss: t.Loss,
				Storm: t.Storm}
			f.Back = t.Storm && there == (t.B == "") // it is A that pauses, where A is a port
			if t.Every == 0 {
				out = append(out, f)
				continue
			}
			f.Down = true
			for n := units.Time(0); n < mostFlaps; n++ {
				f.From = t.From + n*t.Every
				if f.To = f.From + t.Out; t.To > 0 {
					f.To = min(f.To, t.To)
				}
				if f.From >= f.To {
					break
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// named says that a vertex is what a fault names: itself, or one of a net's ports.
func named(vertex, name string) bool {
	return vertex == name || strings.HasPrefix(vertex, name) && vertex[len(name)] == '.'
}
