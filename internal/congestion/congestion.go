// Package congestion sums up what happened at the ports of a network that was
// simulated frame by frame.
//
// In: the loads of links. Out: pauses, marks, what was sent again, the deepest queues.
// It knows nothing of how they came about.
package congestion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// Facts are of one operation.
type Facts struct {
	// PausedUs is the longest that one port was not allowed to send, PausedPort that
	// port; where none was, 0 and empty.
	PausedUs   float64 `json:"paused_us"`
	PausedPort string  `json:"paused_port"`
	Pauses     int64   `json:"pauses"`  // pause frames that stopped a port
	Marked     int64   `json:"marked"`  // frames with a mark of congestion
	Resent     int64   `json:"resent"`  // frames sent again
	Dropped    int64   `json:"dropped"` // frames lost, or without room
	// Ports are the five with the deepest queues, of those that several inputs fed.
	Ports []Port `json:"ports"`
}

// Port is where a link begins.
type Port struct {
	Name       string  `json:"name"`
	Inputs     int32   `json:"inputs"`      // that fed it
	QueuePairs int32   `json:"queue_pairs"` // whose messages crossed it
	PeakBytes  int64   `json:"peak_bytes"`
	PausedUs   float64 `json:"paused_us"`
	Marked     int64   `json:"marked"`
	Bytes      int64   `json:"bytes"`
}

// most is how many ports are listed.
const most = 5

// Of sums up links; nil where their network was not simulated frame by frame.
func Of(links []exec.LinkLoad) *Facts {
	f := &Facts{Ports: []Port{}}
	known := false
	for i := range links {
		l := &links[i]
		c := l.Net
		if c == nil {
			continue
		}
		known = true
		f.Pauses, f.Marked, f.Resent, f.Dropped = f.Pauses+c.Pauses, f.Marked+c.Marks, f.Resent+c.Resent, f.Dropped+c.Drops
		if us := c.Paused.Micros(); us > f.PausedUs {
			f.PausedUs, f.PausedPort = us, l.Name
		}
		if c.Inputs > 1 {
			f.Ports = append(f.Ports, Port{l.Name, c.Inputs, c.QueuePairs, int64(c.Peak), c.Paused.Micros(), c.Marks, int64(l.Bytes)})
		}
	}
	if !known {
		return nil
	}
	slices.SortStableFunc(f.Ports, func(a, b Port) int { return cmp.Compare(b.PeakBytes, a.PeakBytes) })
	f.Ports = f.Ports[:min(most, len(f.Ports))]
	return f
}

// Crowd is the port that carries the most beyond its share, where the network could
// have spread it: of the ports that lead from one switch to switches.
type Crowd struct {
	Port          string
	QueuePairs    int32 // that cross it
	Of            int32 // that cross it or those beside it
	Beside        int   // ports that lead from the same switch to switches, it included
	Bytes, Spread int64 // that it carried; its share of what all of them did
}

// Crowded finds it; ok is false where all of them carry about the same.
func Crowded(links []exec.LinkLoad) (c Crowd, ok bool) {
	type group struct {
		pairs int32
		bytes units.Bytes
		ports int
	}
	from := map[string]*group{}
	each := func(do func(l *exec.LinkLoad, at string)) {
		for i := range links {
			l := &links[i]
			if a, b, cut := strings.Cut(l.Name, "→"); l.Net != nil && cut && !strings.Contains(a, "/") && !strings.Contains(b, "/") && l.Capacity > 0 {
				do(l, a)
			}
		}
	}
	each(func(l *exec.LinkLoad, at string) {
		if from[at] == nil {
			from[at] = &group{}
		}
		g := from[at]
		g.pairs, g.bytes, g.ports = g.pairs+l.Net.QueuePairs, g.bytes+l.Bytes, g.ports+1
	})
	worst := 1.25 // times its share, from which on it is worth a word
	each(func(l *exec.LinkLoad, at string) {
		g := from[at]
		if share := float64(g.bytes) / float64(g.ports); g.ports > 1 && float64(l.Bytes) > worst*share {
			worst, ok = float64(l.Bytes)/share, true
			c = Crowd{Port: l.Name, QueuePairs: l.Net.QueuePairs, Of: g.pairs, Beside: g.ports, Bytes: int64(l.Bytes), Spread: int64(share)}
		}
	})
	return c, ok
}

// String says it in a sentence.
func (c *Crowd) String() string {
	return fmt.Sprintf("%d of %d queue pairs share %s, one of %d ports that lead on: it carried %.2f times its share", c.QueuePairs, c.Of, c.Port, c.Beside, float64(c.Bytes)/float64(max(1, c.Spread)))
}
