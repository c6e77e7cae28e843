package congestion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// Crowd is the port that carries the most beyond its share, where the network could
// have spread it: of the ports that lead up from one switch, or down to one.
type Crowd struct {
	Port          string
	QueuePairs    int32  // that cross it
	Of            int32  // that cross it or those beside it
	Beside        int    // ports that would have done as well, it included
	Down          string // the switch that they lead down to; empty: they lead up
	Bytes, Spread int64  // that it carried; its share, by speed, of what all of them did
	// Rings says that each of the queue pairs is that of one ring.
	Rings bool
	// Slower is how many times as fast the fastest of those beside it is; 1: they are equal.
	Slower float64
}

// relevant is the part of what the fullest link needs for its bytes from which on a port that
// carries more than its share may be what holds an operation up.
const relevant = 0.5

// group is ports any of which would have done.
type group struct {
	pairs      int32
	bytes      units.Bytes
	ports      int
	speed, top units.GBps // of all; of the fastest
}

// Crowded finds it; ok is false where all of them carry about the same, or where other links
// are what holds the operation up.
func Crowded(links []exec.LinkLoad) (c Crowd, ok bool) {
	high := heights(links)
	full := units.Time(0)
	for i := range links {
		full = max(full, links[i].Ideal())
	}
	beside := map[string]*group{}
	each := func(do func(l *exec.LinkLoad, key, down string)) {
		for i := range links {
			l := &links[i]
			a, b, cable := ends(l)
			switch {
			case !cable || high[a] == 0 || high[b] == 0 || high[a] == high[b]:
			case high[a] < high[b]:
				do(l, a+"→", "")
			default:
				do(l, "→"+b, b)
			}
		}
	}
	each(func(l *exec.LinkLoad, key, _ string) {
		if beside[key] == nil {
			beside[key] = &group{}
		}
		g := beside[key]
		g.pairs, g.bytes, g.ports = g.pairs+l.Net.QueuePairs, g.bytes+l.Bytes, g.ports+1
		g.speed, g.top = g.speed+l.Capacity, max(g.top, l.Capacity)
	})
	worst := 1.25 // times its share, from which on it is worth a word
	each(func(l *exec.LinkLoad, key, down string) {
		g := beside[key]
		if float64(l.Ideal()) < relevant*float64(full) {
			return
		}
		if share := float64(g.bytes) * float64(l.Capacity/g.speed); g.ports > 1 &&
			float64(l.Bytes) > worst*share {
			worst, ok = float64(l.Bytes)/share, true
			c = Crowd{Port: l.Name, QueuePairs: l.Net.QueuePairs, Of: g.pairs, Beside: g.ports, Down: down,
				Bytes: int64(l.Bytes), Spread: int64(share), Slower: float64(g.top / l.Capacity)}
		}
	})
	return c, ok
}

// ends are the two ends of a cable of the network; those of hosts have a slash.
func ends(l *exec.LinkLoad) (a, b string, ok bool) {
	a, b, ok = strings.Cut(l.Name, "→")
	b, _, _ = strings.Cut(b, "#") // one of several side by side
	return a, b, ok && l.Net != nil && l.Capacity > 0
}

// heights are by switch how many cables the nearest host is away.
func heights(links []exec.LinkLoad) map[string]int {
	high := map[string]int{}
	for level, found := 1, true; found; level++ {
		found = false
		for i := range links {
			a, b, ok := ends(&links[i])
			if !ok || strings.Contains(b, "/") || high[b] > 0 {
				continue
			}
			if strings.Contains(a, "/") && level == 1 || level > 1 && high[a] == level-1 {
				high[b], found = level, true
			}
		}
	}
	return high
}

// String says it in a sentence.
func (c *Crowd) String() string {
	to := ""
	if c.Down != "" {
		to = " to " + c.Down
	}
	what := "queue pairs"
	if c.Rings {
		what = "rings"
	}
	return fmt.Sprintf("%d of %d %s share %s, one of %d equal-cost ports%s: it carried %.2f times its share",
		c.QueuePairs, c.Of, what, c.Port, c.Beside, to, float64(c.Bytes)/float64(max(1, c.Spread)))
}

// Incast is the port before a host that needs the most time for what several ports send it.
type Incast struct {
	Port, To string
	From     int        // ports that send
	Need     units.Time // for their bytes, at its speed
	Of       units.Time // the operation's time
}

// limiting is the part of an operation's time from which on what a port needs for its bytes is
// what the operation waits for.
const limiting = 0.8

// Fed finds it; ok is false where no such port needs most of an operation's time.
func Fed(links []exec.LinkLoad, elapsed units.Time) (c Incast, ok bool) {
	for i := range links {
		l := &links[i]
		_, to, cable := ends(l)
		if !cable || l.Net.Inputs < 2 || !strings.Contains(to, "/") || l.Ideal() <= c.Need ||
			float64(l.Ideal()) < limiting*float64(elapsed) {
			continue
		}
		var from []string
		for _, s := range l.Net.From {
			if !slices.Contains(from, s.From) {
				from = append(from, s.From)
			}
		}
		if len(from) > 1 {
			c, ok = Incast{Port: l.Name, To: to, From: len(from), Need: l.Ideal(), Of: elapsed}, true
		}
	}
	return c, ok
}

// String says it in a sentence.
func (c *Incast) String() string {
	return fmt.Sprintf("incast: %d ports send to %s, and %s needs %.2f of %.2f us for their bytes: another "+
		"route does not help", c.From, c.To, c.Port, c.Need.Micros(), c.Of.Micros())
}
