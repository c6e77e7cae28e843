package packets

import (
	"strings"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/units"
)

// TimedFault is a fault of cables with a begin and an end, once or periodically (Every). Routes stay: frames
// to a cable that is down are lost.
type TimedFault struct {
	// A and B name the ends of the cables: switches, or ports of hosts. B empty: the
	// cable of port A.
	A, B string
	// From and To are times since the start of the run; To 0: until its end.
	From, To units.Time
	// Down: all frames are lost. Slow is the share of the rate that remains (0: all of it), Loss the share of
	// frames lost.
	Down       bool
	Slow, Loss float64
	// Storm: B pauses A continuously; without B, port A pauses its switch.
	Storm bool
	// Flap: the cable is down for the first Out of each Every; 0: it does not flap.
	Out, Every units.Time
}

// mostFlaps bounds the number of flaps of a fault without end (To 0).
const mostFlaps = 10000

// faults returns the timed faults per cable of m.net, with one entry for each flap.
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
			f.Back = t.Storm && there == (t.B == "") // without B, A is a port that pauses its switch
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

// named reports whether a fault's name is that of a vertex, or of the NIC whose port it is (name.port).
func named(vertex, name string) bool {
	return vertex == name || strings.HasPrefix(vertex, name) && vertex[len(name)] == '.'
}
