package fabric

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/jsonfile"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/topo"
)

// MaxBytes bounds a fabric file: 100,000 ports take some 30 MB.
const MaxBytes = 64 << 20

// Bounds on what a fabric file declares, as a few bytes of it can declare many
// wires with long names: {"count": 65536} is 131,072 of them.
const (
	maxCables = 1 << 21
	maxName   = 256
)

// Network is the content of a fabric file: switches, and cables between switches and host ports.
// docs/FABRIC.md specifies the file.
type Network struct {
	Name    string
	Routing Routing
	Packets *Packets // nil where the file says nothing of them
	// Hosts are the names of the hosts and of their nets, where a site's files have them: node3 is
	// Hosts[3].
	Hosts    []Host
	Switches []Switch
	Cables   []Cable
	Nets     []topo.NetRail // rails and planes of the nets of every host
}

// Host is the name of a host, and of its nets in order.
type Host struct {
	Name string   `json:"name"`
	Nets []string `json:"nets,omitempty"`
}

// Switch is a switch. Radix is its number of ports, 0 for as many as needed.
type Switch struct {
	Name  string `json:"name"`
	Radix int    `json:"radix,omitempty"`

	at int64 // offset in the file
}

// Cable joins two ends, each a switch's name or a host's port: node0/2 is the
// third net of the first host, node0/2.1 the first port of that net where NCCL
// fuses several. Both directions have the same speed.
type Cable struct {
	A    string  `json:"a"`
	B    string  `json:"b"`
	Gbit float64 `json:"gbit"` // Gbit/s, each direction
	// added to the latency of the NIC, which covers two cables and one switch
	Latency float64 `json:"latency_us,omitempty"`
	Count   int     `json:"count,omitempty"` // parallel cables, 1 where it is absent

	at int64
}

// Routing is the rule by which switches choose among routes of equal length.
type Routing string

// Routings.
const (
	ECMP     Routing = "ecmp"     // by a hash of each queue pair's 5-tuple
	Adaptive Routing = "adaptive" // each queue pair where fewest others are
	Static   Routing = "static"   // by the destination port, as InfiniBand's tables do
)

// FormatError is an error of a fabric file with its position.
type FormatError = fail.FileError

// ParseNetwork reads a fabric file; name is for errors, which are FormatErrors.
func ParseNetwork(data []byte, name string) (*Network, error) {
	if len(data) > MaxBytes {
		return nil, &FormatError{File: name, Line: 1, Col: 1, Problem: fmt.Sprintf("%d bytes, more than %d",
			len(data), MaxBytes), Hint: "describe a smaller network"}
	}
	r := &reader{jsonfile.New(data, name)}
	n := &Network{Routing: ECMP}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, r.Fail(0, `write {"switches": […], "cables": […]}`, "a fabric file is one JSON object")
	}
	if err := r.object(func(key string, at int64) error { return r.field(n, key, at) }); err != nil {
		return nil, err
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	if err := r.check(n); err != nil {
		return nil, err
	}
	return n, nil
}

// reader parses a fabric file.
type reader struct{ *jsonfile.Reader }

// object reads an object each of whose members is there once.
func (r *reader) object(member func(key string, at int64) error) error {
	seen := map[string]bool{}
	return r.Object(func(key string, at int64) error {
		if seen[key] {
			return r.Fail(at, "write one", "there are two %s here", termtext.Quote(key, 40))
		}
		seen[key] = true
		return member(key, at)
	})
}

// number reads a number and fails on null.
func (r *reader) number(key string) (float64, error) {
	from, v := r.Next(), (*float64)(nil)
	if err := r.Decode(&v); err != nil || v != nil {
		if err != nil {
			return 0, err
		}
		return *v, nil
	}
	return 0, r.Fail(from, "", "%s null: write a number, or leave it out", key)
}

// field reads one member of the top-level object.
func (r *reader) field(n *Network, key string, at int64) error {
	from := r.Next()
	switch key {
	case "name":
		return r.Decode(&n.Name)
	case "routing":
		err := r.Decode(&n.Routing)
		if err == nil && n.Routing != ECMP && n.Routing != Adaptive && n.Routing != Static {
			return r.Fail(from, "write ecmp, adaptive or static", "routing %s",
				termtext.Quote(string(n.Routing), 0))
		}
		return err
	case "packets":
		return r.packets(n)
	case "hosts":
		return r.List(func(at int64) error {
			var h Host
			err := r.Decode(&h)
			if n.Hosts = append(n.Hosts, h); err == nil && (h.Name == "" || len(h.Name) > maxName) {
				return r.Fail(at, `write {"name": "gpu001", "nets": ["mlx5_0"]}`, "a host's name of %d bytes",
					len(h.Name))
			}
			return err
		})
	case "switches":
		return r.List(func(at int64) error {
			s := Switch{at: at}
			err := r.Decode(&s)
			n.Switches = append(n.Switches, s)
			return err
		})
	case "nets":
		return r.List(func(at int64) error { return r.net(n, at) })
	case "cables":
		return r.List(func(at int64) error {
			c := Cable{at: at}
			err := r.Decode(&c)
			c.Count = cmp.Or(c.Count, 1)
			n.Cables = append(n.Cables, c)
			return err
		})
	}
	return r.Fail(at, "known are name, routing, packets, nets, hosts, switches, cables", "unknown member %q",
		key)
}

// maxNet bounds the number of a net, of a rail and of a plane: NCCL marks the planes of
// virtual NICs by bit 14 (transport/net_ib/init.cc:96 of v2.30.7).
const maxNet = 1<<14 - 1

// net reads the rail and the plane of a net.
func (r *reader) net(n *Network, at int64) error {
	var v struct{ Net, Rail, Plane *int }
	if err := r.Decode(&v); err != nil {
		return err
	}
	number := func(p *int, absent int) (int, bool) {
		if p == nil {
			return absent, true
		}
		return *p, *p >= 0 && *p <= maxNet
	}
	var ok [3]bool
	var out topo.NetRail
	out.Net, ok[0] = number(v.Net, -1)
	out.Rail, ok[1] = number(v.Rail, -1)
	out.Plane, ok[2] = number(v.Plane, -1)
	const hint = `write for example {"net": 0, "rail": 0, "plane": 0}; rail or plane may be left out`
	switch {
	case out.Net < 0 || ok != [3]bool{true, true, true}:
		return r.Fail(at, hint, "a net, its rail and its plane are numbers from 0 to %d", maxNet)
	case slices.ContainsFunc(n.Nets, func(o topo.NetRail) bool { return o.Net == out.Net }):
		return r.Fail(at, "write one", "net %d has two entries", out.Net)
	}
	n.Nets = append(n.Nets, out)
	return nil
}

// check finds errors that need more than one value, such as a cable of an unknown switch or a port with two
// cables.
func (r *reader) check(n *Network) error {
	ports := map[string]int{}
	cables := 0
	known := map[string]bool{}
	hosts := map[string]bool{}
	for _, h := range n.Hosts {
		if hosts[h.Name] {
			return r.Fail(0, "", "there are two hosts %s", termtext.Short(h.Name, 0))
		}
		hosts[h.Name] = true
	}
	for i := range n.Switches {
		s := &n.Switches[i]
		if len(s.Name) > maxName {
			return r.Fail(s.at, "names like leaf0", "a switch name of %d bytes, more than %d", len(s.Name),
				maxName)
		}
		switch _, host := ParseEnd(s.Name); {
		case s.Name == "" || host:
			return r.Fail(s.at, "names like leaf0; node0/0 is a host's port", "switch name %s",
				termtext.Quote(s.Name, 0))
		case known[s.Name]:
			return r.Fail(s.at, "", "there are two switches %s", termtext.Short(s.Name, 0))
		case s.Radix < 0:
			return r.Fail(s.at, "leave it out for as many ports as needed", "radix %d", s.Radix)
		}
		known[s.Name] = true
	}
	for i := range n.Cables {
		c := &n.Cables[i]
		if c.Gbit <= 0 || c.Gbit > 1e6 || c.Latency < 0 || c.Latency > 1e6 || c.Count < 1 || c.Count > 1<<16 {
			return r.Fail(c.at,
				"gbit is the speed of one direction, like 400; count from 1; latency_us from 0",
				"cable %s to %s of %g Gbit/s, %g us, count %d", termtext.Short(c.A, 0),
				termtext.Short(c.B, 0), c.Gbit, c.Latency, c.Count)
		}
		if c.A == c.B {
			return r.Fail(c.at, "", "cable from %s to itself", termtext.Short(c.A, 0))
		}
		if cables += c.Count; cables > maxCables {
			return r.Fail(c.at, "describe a smaller network", "more than %d cables, all counts together",
				maxCables)
		}
		for _, end := range []string{c.A, c.B} {
			ports[end] += c.Count
			if _, host := ParseEnd(end); host {
				if ports[end] > 1 {
					return r.Fail(c.at, "a port has one cable; count is for cables between switches",
						"port %s is cabled more than once", termtext.Short(end, 0))
				}
			} else if !known[end] {
				return r.Fail(c.at, "declare it under switches, or write a port as node0/0", "no switch %s",
					termtext.Quote(end, 0))
			}
		}
	}
	for i := range n.Switches {
		if s := &n.Switches[i]; s.Radix > 0 && ports[s.Name] > s.Radix {
			return r.Fail(s.at, "", "switch %s has %d ports and %d cables", s.Name, s.Radix, ports[s.Name])
		}
	}
	return nil
}

// End is a port of a host: all of a net where Port is 0, else one of the ports
// of a fused net, numbered from 1.
type End struct{ Host, Net, Port int }

// ParseEnd parses "node3/2" or "node3/2.1"; ok is false for any other text, such as "node03/2".
func ParseEnd(s string) (e End, ok bool) {
	n, _ := fmt.Sscanf(s, "node%d/%d.%d", &e.Host, &e.Net, &e.Port)
	return e, n >= 2 && e.Host >= 0 && e.Net >= 0 && e.Port >= 0 && s == e.String()
}

// String formats an end as fabric files do: node3/2, or node3/2.1 for a port of a fused net.
func (e End) String() string {
	if e.Port > 0 {
		return fmt.Sprintf("node%d/%d.%d", e.Host, e.Net, e.Port)
	}
	return fmt.Sprintf("node%d/%d", e.Host, e.Net)
}

// Format writes the file that ParseNetwork reads: one switch or cable a line.
func (n *Network) Format() []byte {
	var b bytes.Buffer
	line := func(v any) string {
		s, _ := json.Marshal(v)
		return string(s)
	}
	fmt.Fprintf(&b, "{\n  \"name\": %s,\n  \"routing\": %s,\n", line(n.Name), line(n.Routing))
	if n.Packets != nil {
		fmt.Fprintf(&b, "  \"packets\": %s,\n", n.Packets.line())
	}
	if len(n.Hosts) > 0 {
		b.WriteString("  \"hosts\": [")
		for i, h := range n.Hosts {
			fmt.Fprintf(&b, "%s\n    %s", comma(i), line(h))
		}
		b.WriteString("\n  ],\n")
	}
	if len(n.Nets) > 0 {
		b.WriteString("  \"nets\": [")
		for i, v := range n.Nets {
			fmt.Fprintf(&b, "%s\n    %s", comma(i), line(v))
		}
		b.WriteString("\n  ],\n")
	}
	b.WriteString("  \"switches\": [")
	for i, s := range n.Switches {
		fmt.Fprintf(&b, "%s\n    %s", comma(i), line(s))
	}
	b.WriteString("\n  ],\n  \"cables\": [")
	for i, c := range n.Cables {
		if c.Count == 1 {
			c.Count = 0
		}
		fmt.Fprintf(&b, "%s\n    %s", comma(i), line(c))
	}
	b.WriteString("\n  ]\n}\n")
	return b.Bytes()
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}
