package fabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Network is what a fabric file says: switches and the cables between them and
// the ports of hosts. docs/FABRIC.md describes the file.
type Network struct {
	Name     string
	Routing  Routing
	Switches []Switch
	Cables   []Cable
}

// Switch is a switch. Radix is its number of ports, 0 for as many as needed.
type Switch struct {
	Name  string `json:"name"`
	Radix int    `json:"radix,omitempty"`

	at int64 // offset in the file
}

// Cable joins two ends, each a switch's name or a host's port as node0/2 (the
// third net of the first host). Both directions have the same speed.
type Cable struct {
	A       string  `json:"a"`
	B       string  `json:"b"`
	Gbit    float64 `json:"gbit"`                 // Gbit/s, each direction
	Latency float64 `json:"latency_us,omitempty"` // beside what the NIC's own latency covers: two cables and one switch
	Count   int     `json:"count,omitempty"`      // parallel cables, 1 where it is absent

	at int64
}

// Routing is how switches choose among equally short ways.
type Routing string

// Routings.
const (
	ECMP     Routing = "ecmp"     // by a hash of each queue pair's 5-tuple
	Adaptive Routing = "adaptive" // each queue pair where fewest others are
	Static   Routing = "static"   // by the destination port, as InfiniBand's tables do
)

// FormatError is a fault of a fabric file.
type FormatError struct {
	File      string
	Line, Col int // from 1
	Problem   string
	Hint      string // what to write instead
}

func (e *FormatError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// reader walks the top object of a file, keeping places.
type reader struct {
	file string
	data []byte
	dec  *json.Decoder
}

func (r *reader) fail(at int64, hint, format string, args ...any) error {
	at = min(max(at, 0), int64(len(r.data)))
	before := r.data[:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	return &FormatError{File: r.file, Line: line, Col: int(at) - bytes.LastIndexByte(before, '\n'), Problem: fmt.Sprintf(format, args...), Hint: hint}
}

// next is the offset of the value to come.
func (r *reader) next() int64 {
	at := r.dec.InputOffset()
	for at < int64(len(r.data)) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[at]) >= 0 {
		at++
	}
	return at
}

// syntax gives an error of the decoder its place; from is where the value began.
func (r *reader) syntax(err error, from int64) error {
	var s *json.SyntaxError
	var t *json.UnmarshalTypeError
	switch {
	case errors.As(err, &s):
		return r.fail(s.Offset-1, "", "not JSON: %v", err)
	case errors.As(err, &t):
		return r.fail(from, "", "%s: %s where %v is expected", t.Field, t.Value, t.Type)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return r.fail(int64(len(r.data)), "", "the file ends too early")
	}
	return r.fail(from, "", "%v", err)
}

// ParseNetwork reads a fabric file; name is for errors, which are FormatErrors.
func ParseNetwork(data []byte, name string) (*Network, error) {
	r := &reader{file: name, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.DisallowUnknownFields()
	n := &Network{Routing: ECMP}
	if t, err := r.dec.Token(); err != nil || t != json.Delim('{') {
		return nil, r.fail(0, `write {"switches": […], "cables": […]}`, "a fabric file is one JSON object")
	}
	for r.dec.More() {
		if err := r.field(n); err != nil {
			return nil, err
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, r.syntax(err, r.next())
	}
	if at := r.next(); at < int64(len(data)) {
		return nil, r.fail(at, "", "something follows the object")
	}
	if err := r.check(n); err != nil {
		return nil, err
	}
	return n, nil
}

// field reads one member of the top object.
func (r *reader) field(n *Network) error {
	at := r.next()
	key, err := r.dec.Token()
	if err != nil {
		return r.syntax(err, at)
	}
	from := r.next()
	switch key {
	case "name":
		err = r.dec.Decode(&n.Name)
	case "routing":
		err = r.dec.Decode(&n.Routing)
		if err == nil && n.Routing != ECMP && n.Routing != Adaptive && n.Routing != Static {
			return r.fail(from, "write ecmp, adaptive or static", "routing %q", n.Routing)
		}
	case "switches":
		return r.list(func(at int64) error {
			s := Switch{at: at}
			err := r.dec.Decode(&s)
			n.Switches = append(n.Switches, s)
			return err
		})
	case "cables":
		return r.list(func(at int64) error {
			c := Cable{at: at}
			err := r.dec.Decode(&c)
			if c.Count == 0 {
				c.Count = 1
			}
			n.Cables = append(n.Cables, c)
			return err
		})
	default:
		return r.fail(at, "known are name, routing, switches, cables", "unknown member %v", key)
	}
	if err != nil {
		return r.syntax(err, from)
	}
	return nil
}

func (r *reader) list(one func(at int64) error) error {
	at := r.next()
	if t, err := r.dec.Token(); err != nil || t != json.Delim('[') {
		return r.fail(at, "", "a list [ … ] is expected")
	}
	for r.dec.More() {
		at := r.next()
		if err := one(at); err != nil {
			return r.syntax(err, at)
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return r.syntax(err, r.next())
	}
	return nil
}

// check finds what no single value shows.
func (r *reader) check(n *Network) error {
	ports := map[string]int{}
	known := map[string]bool{}
	for i := range n.Switches {
		s := &n.Switches[i]
		switch _, _, host := parsePort(s.Name); {
		case s.Name == "" || host:
			return r.fail(s.at, "names like leaf0; node0/0 is a host's port", "switch name %q", s.Name)
		case known[s.Name]:
			return r.fail(s.at, "", "there are two switches %s", s.Name)
		case s.Radix < 0:
			return r.fail(s.at, "leave it out for as many ports as needed", "radix %d", s.Radix)
		}
		known[s.Name] = true
	}
	for i := range n.Cables {
		c := &n.Cables[i]
		if c.Gbit <= 0 || c.Gbit > 1e6 || c.Latency < 0 || c.Latency > 1e6 || c.Count < 1 || c.Count > 1<<16 {
			return r.fail(c.at, "gbit is the speed of one direction, like 400; count from 1; latency_us from 0", "cable %s to %s of %g Gbit/s, %g us, count %d", c.A, c.B, c.Gbit, c.Latency, c.Count)
		}
		if c.A == c.B {
			return r.fail(c.at, "", "cable from %s to itself", c.A)
		}
		for _, end := range []string{c.A, c.B} {
			ports[end] += c.Count
			if _, _, host := parsePort(end); host {
				if ports[end] > 1 {
					return r.fail(c.at, "a port has one cable; count is for cables between switches", "port %s is cabled more than once", end)
				}
			} else if !known[end] {
				return r.fail(c.at, "declare it under switches, or write a port as node0/0", "no switch %q", end)
			}
		}
	}
	for i := range n.Switches {
		if s := &n.Switches[i]; s.Radix > 0 && ports[s.Name] > s.Radix {
			return r.fail(s.at, "", "switch %s has %d ports and %d cables", s.Name, s.Radix, ports[s.Name])
		}
	}
	return nil
}

// parsePort reads node3/2.
func parsePort(s string) (host, net int, ok bool) {
	var rest string
	n, _ := fmt.Sscanf(s, "node%d/%d%s", &host, &net, &rest)
	return host, net, n == 2 && host >= 0 && net >= 0 && s == portName(host, net)
}

func portName(host, net int) string { return fmt.Sprintf("node%d/%d", host, net) }

// Format writes the file that ParseNetwork reads: one switch or cable a line.
func (n *Network) Format() []byte {
	var b bytes.Buffer
	line := func(v any) string {
		s, _ := json.Marshal(v)
		return string(s)
	}
	fmt.Fprintf(&b, "{\n  \"name\": %s,\n  \"routing\": %s,\n  \"switches\": [", line(n.Name), line(n.Routing))
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
