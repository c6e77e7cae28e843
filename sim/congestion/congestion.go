// Package congestion sums up what happened at the ports of a network that was
// simulated frame by frame.
//
// In: the loads of links. Out: pauses, marks, what was sent again, the deepest queues.
// It knows nothing of how they came about.
package congestion

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/exec"
)

// Facts are of one operation.
type Facts struct {
	// PausedUs is the longest that one port was not allowed to send, PausedPort that
	// port; where none was, 0 and empty.
	PausedUs   float64 `json:"paused_us"`
	PausedPort string  `json:"paused_port"`
	Pauses     int64   `json:"pauses"`            // pause frames that stopped a port
	Marked     int64   `json:"marked"`            // frames with a mark of congestion
	Resent     int64   `json:"resent"`            // frames sent again
	Dropped    int64   `json:"dropped"`           // frames lost, or without room
	Trimmed    int64   `json:"trimmed,omitempty"` // frames cut to their headers for lack of room
	// Watchdogs is how often a switch dropped a queue that was paused for too long,
	// WatchdogPorts where, the most often first.
	Watchdogs     int64    `json:"watchdogs,omitempty"`
	WatchdogPorts []string `json:"watchdog_ports,omitempty"`
	// Ports are the five with the deepest queues, of those that several inputs fed.
	Ports []Port `json:"ports"`
	// Stopped are the twelve ports that were paused for the longest, by when they were
	// paused first.
	Stopped []Stopped `json:"stopped"`
	// Held is head-of-line blocking, the five that waited for the longest.
	Held []Held `json:"held"`
	// Deadlocks are cycles of ports that paused each other until a watchdog dropped what waited,
	// the first first.
	Deadlocks []Deadlock `json:"deadlocks,omitempty"`
}

// Deadlock is switches each of which may not send to the next, the last not to the first.
type Deadlock struct {
	AtUs  float64  `json:"at_us"` // when it was seen first, after the run began
	Nodes []string `json:"nodes"`
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
	// From are the twelve port pairs that sent the most over it; FromAll counts them.
	From    []Stream `json:"from"`
	FromAll int      `json:"from_all"`
}

// Stream is what a port of a host sent another over a crowded port.
type Stream struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

// Stopped is a port that its neighbour paused.
type Stopped struct {
	Name   string  `json:"name"`
	Us     float64 `json:"us"`
	Frames int64   `json:"frames"` // that paused it
	// when the first came, after the run began; of a port that waits for credits: 0
	FirstUs float64 `json:"first_us"`
	// it waited for credits of the other end and was not paused
	Credits   bool  `json:"credits,omitempty"`
	Watchdogs int64 `json:"watchdogs,omitempty"` // times that the watchdog dropped what waited there
	// the neighbour's port whose queue was the deepest most of that time; empty: not known
	Behind string `json:"behind"`
}

// Held is messages that waited for a queue that they are not in: head-of-line blocking.
type Held struct {
	From   string  `json:"from"` // the port that sends them
	To     string  `json:"to"`
	At     string  `json:"at"`     // the paused port where they waited
	Behind string  `json:"behind"` // the port that others of that port go to
	Us     float64 `json:"us"`
}

// most is how many ports are listed.
const (
	most        = 5
	mostFrom    = 12
	mostStopped = 12
)

// Of sums up links; nil where their network was not simulated frame by frame.
func Of(links []exec.LinkLoad) *Facts {
	f := &Facts{Ports: []Port{}, Stopped: []Stopped{}, Held: []Held{}}
	known := false
	type dog struct {
		port  string
		times int64
	}
	var dogs []dog
	for i := range links {
		l := &links[i]
		c := l.Net
		if c == nil {
			continue
		}
		known = true
		f.Pauses, f.Marked, f.Resent, f.Dropped = f.Pauses+c.Pauses, f.Marked+c.Marks, f.Resent+c.Resent,
			f.Dropped+c.Drops
		f.Trimmed += c.Trims
		if f.Watchdogs += c.Watchdogs; c.Watchdogs > 0 {
			dogs = append(dogs, dog{l.Name, c.Watchdogs})
		}
		if us := c.Paused.Micros(); us > f.PausedUs {
			f.PausedUs, f.PausedPort = us, l.Name
		}
		if c.Pauses > 0 || c.Paused > 0 {
			f.Stopped = append(f.Stopped, Stopped{l.Name, c.Paused.Micros(), c.Pauses, c.First.Micros(),
				c.Credits, c.Watchdogs, c.Behind})
		}
		for _, h := range c.Held {
			f.Held = append(f.Held, Held{h.From, h.To, l.Name, h.Behind, h.Time.Micros()})
		}
		for _, d := range c.Deadlocks {
			f.Deadlocks = append(f.Deadlocks, Deadlock{d.At.Micros(), d.Nodes})
		}
		if c.Inputs > 1 {
			f.Ports = append(f.Ports, portOf(l))
		}
	}
	if !known {
		return nil
	}
	slices.SortStableFunc(dogs, func(a, b dog) int { return cmp.Compare(b.times, a.times) })
	for _, d := range dogs[:min(mostStopped, len(dogs))] {
		f.WatchdogPorts = append(f.WatchdogPorts, d.port)
	}
	slices.SortStableFunc(f.Ports, func(a, b Port) int { return cmp.Compare(b.PeakBytes, a.PeakBytes) })
	f.Ports = f.Ports[:min(most, len(f.Ports))]
	slices.SortStableFunc(f.Stopped, func(a, b Stopped) int { return cmp.Compare(b.Us, a.Us) })
	f.Stopped = f.Stopped[:min(mostStopped, len(f.Stopped))]
	slices.SortStableFunc(f.Stopped, func(a, b Stopped) int { return cmp.Compare(a.FirstUs, b.FirstUs) })
	slices.SortStableFunc(f.Held, func(a, b Held) int { return cmp.Compare(b.Us, a.Us) })
	f.Held = f.Held[:min(most, len(f.Held))]
	slices.SortStableFunc(f.Deadlocks, func(a, b Deadlock) int { return cmp.Compare(a.AtUs, b.AtUs) })
	return f
}

func portOf(l *exec.LinkLoad) Port {
	c := l.Net
	p := Port{l.Name, c.Inputs, c.QueuePairs, int64(c.Peak), c.Paused.Micros(), c.Marks, int64(l.Bytes),
		[]Stream{}, len(c.From)}
	for _, s := range c.From[:min(mostFrom, len(c.From))] {
		p.From = append(p.From, Stream{s.From, s.To, int64(s.Bytes)})
	}
	return p
}

// Lines says in words what happened.
func (f *Facts) Lines() []string {
	out := []string{f.total()}
	for i := range f.Ports {
		if f.Ports[i].PeakBytes > 0 {
			out = append(out, f.Ports[i].line())
		}
	}
	for i := range f.Stopped[:min(most, len(f.Stopped))] {
		out = append(out, f.Stopped[i].line())
	}
	for i := range f.Held {
		out = append(out, f.Held[i].line())
	}
	for i := range f.Deadlocks[:min(most, len(f.Deadlocks))] {
		out = append(out, f.Deadlocks[i].line())
	}
	return out
}

// Brief is the first line of each kind.
func (f *Facts) Brief() []string {
	out := []string{f.total()}
	if len(f.Ports) > 0 && f.Ports[0].PeakBytes > 0 {
		out = append(out, f.Ports[0].line())
	}
	if len(f.Stopped) > 0 {
		out = append(out, f.Stopped[0].line())
	}
	if len(f.Held) > 0 {
		out = append(out, f.Held[0].line())
	}
	if len(f.Deadlocks) > 0 {
		out = append(out, f.Deadlocks[0].line())
	}
	return out
}

func (f *Facts) total() string {
	s := fmt.Sprintf("%d frames marked, %d pause frames, %d retransmitted, %d lost", f.Marked, f.Pauses,
		f.Resent, f.Dropped)
	if f.Trimmed > 0 {
		s += fmt.Sprintf(", %d trimmed", f.Trimmed)
	}
	if f.Watchdogs > 0 {
		s += fmt.Sprintf(", %d queues dropped by the watchdog of %s", f.Watchdogs, named(f.WatchdogPorts))
	}
	return s
}

func (p *Port) line() string {
	s := fmt.Sprintf("%s: %d inputs, %d queue pairs, peak queue %s, %d marks", p.Name, p.Inputs, p.QueuePairs,
		Amount(p.PeakBytes), p.Marked)
	if p.PausedUs > 0 {
		s += fmt.Sprintf(", paused %.2f us", p.PausedUs)
	}
	return s + p.senders()
}

func (s *Stopped) line() string {
	if s.Credits {
		return fmt.Sprintf("%s waited %.2f us for credits", s.Name, s.Us)
	}
	behind := ""
	if s.Behind != "" {
		behind = ", behind the queue of " + s.Behind
	}
	if s.Watchdogs > 0 {
		behind += fmt.Sprintf("; the watchdog dropped its queue %d times", s.Watchdogs)
	}
	return fmt.Sprintf("%s was paused for %.2f us, first at %.2f us%s", s.Name, s.Us, s.FirstUs, behind)
}

func (d *Deadlock) line() string {
	return fmt.Sprintf("deadlock at %.2f us, ports paused each other in a cycle until a watchdog dropped "+
		"what waited: %s > %s", d.AtUs, strings.Join(d.Nodes, " > "), d.Nodes[0])
}

func (h *Held) line() string {
	return fmt.Sprintf("head-of-line blocking: %s→%s waited %.2f us on %s for the queue of %s, which it "+
		"does not use", h.From, h.To, h.Us, h.At, h.Behind)
}

// senders names who sends over a crowded port.
func (p *Port) senders() string {
	var from []string
	for _, s := range p.From {
		if !slices.Contains(from, s.From) {
			from = append(from, s.From)
		}
	}
	switch {
	case len(from) == 0:
		return ""
	case len(p.From) < p.FromAll && len(from) <= most:
		return fmt.Sprintf(", from %s and others", strings.Join(from, ", "))
	}
	return ", from " + named(from)
}

// Amount is a number of bytes in words, with three digits.
func Amount(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if x := float64(n) / u.size; x >= 1 {
			return fmt.Sprintf("%.*f %s", max(0, 2-int(math.Log10(x))), x, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// named lists the first of some ports.
func named(ports []string) string {
	if len(ports) > most {
		return strings.Join(ports[:most], ", ") + " and others"
	}
	return strings.Join(ports, ", ")
}
