package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// Origin is where a declaration comes from: a place in a file, or the probe
// that found it (then Line is 0).
type Origin struct {
	File      string
	Line, Col int
}

// String prints "file:line:col", or the file or probe alone.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Col)
}

// Attr is one attribute of an Element as it was declared.
type Attr struct {
	Name, Value string
	Origin      Origin
}

// Element is one declared thing: system, cpu, pci, gpu, nvlink, c2c, pcilink,
// nic or net by Name; anything else is kept but has no meaning. Attribute and
// child order are the source's.
type Element struct {
	Name     string
	Attrs    []Attr
	Children []*Element
	// Open reports that the source had separate start and end tags; NCCL never
	// takes an open and a self-closed element for the same one (xml.h:207).
	Open   bool
	Origin Origin

	up *Element // set by adopt, in working copies only
	// mbps are the speeds of the ports that a net was fused of; nil where a source
	// says only their sum.
	mbps []int
}

// Spec is a blueprint of one host, or of all hosts of one multi-node NVLink
// domain: what a source declared, before NCCL's rules are applied.
type Spec struct {
	Name     string   // file or probe
	Root     *Element // the <system> element
	Warnings []*Error // what NCCL would take otherwise than written
}

// Get returns an attribute's text and whether it is declared.
func (e *Element) Get(name string) (string, bool) {
	for i := range e.Attrs {
		if e.Attrs[i].Name == name {
			return e.Attrs[i].Value, true
		}
	}
	return "", false
}

// Int returns an attribute read as C's strtol with base 0 reads it, truncated
// to 32 bits as NCCL's ints are, or def where it is not declared.
func (e *Element) Int(name string, def int) int {
	if v, ok := e.Get(name); ok {
		n, _ := CInt(v)
		return int(int32(n))
	}
	return def
}

// Hex returns an attribute read in base 16, and whether it is declared.
func (e *Element) Hex(name string) (uint64, bool) {
	v, ok := e.Get(name)
	if !ok {
		return 0, false
	}
	return cHex(v), true
}

// AttrOrigin returns where an attribute was declared, or the element's origin.
func (e *Element) AttrOrigin(name string) Origin {
	for i := range e.Attrs {
		if e.Attrs[i].Name == name && e.Attrs[i].Origin != (Origin{}) {
			return e.Attrs[i].Origin
		}
	}
	return e.Origin
}

// Set replaces an attribute in place or appends it.
func (e *Element) Set(name, value string) {
	for i := range e.Attrs {
		if e.Attrs[i].Name == name {
			e.Attrs[i].Value = value
			return
		}
	}
	e.Attrs = append(e.Attrs, Attr{Name: name, Value: value})
}

// setDefault appends an attribute that is not declared yet.
func (e *Element) setDefault(name, value string) {
	if _, ok := e.Get(name); !ok {
		e.Attrs = append(e.Attrs, Attr{Name: name, Value: value})
	}
}

// unset removes an attribute.
func (e *Element) unset(name string) {
	for i := range e.Attrs {
		if e.Attrs[i].Name == name {
			e.Attrs = append(e.Attrs[:i:i], e.Attrs[i+1:]...)
			return
		}
	}
}

// Child returns the first child of a name, or nil.
func (e *Element) Child(name string) *Element {
	for _, c := range e.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Walk calls f for e and everything below it in document order, with the
// elements above it, outermost first.
func (e *Element) Walk(f func(e *Element, above []*Element)) {
	var rec func(e *Element, above []*Element)
	rec = func(e *Element, above []*Element) {
		f(e, above)
		above = append(above, e)
		for _, c := range e.Children {
			rec(c, above)
		}
	}
	rec(e, nil)
}

// Clone copies e and everything below it.
func (e *Element) Clone() *Element {
	c := *e
	c.Attrs = append([]Attr(nil), e.Attrs...)
	c.Children = make([]*Element, len(e.Children))
	for i, s := range e.Children {
		c.Children[i] = s.Clone()
	}
	return &c
}

// PathOf names an element by its place: "system/cpu[0]/pci[1]", counting
// siblings of the same name from 0.
func PathOf(e *Element, above []*Element) string {
	var b strings.Builder
	for i, a := range above {
		if i == 0 {
			b.WriteString(a.Name)
		}
		next := e
		if i+1 < len(above) {
			next = above[i+1]
		}
		n := 0
		for _, c := range a.Children {
			if c == next {
				break
			}
			if c.Name == next.Name {
				n++
			}
		}
		fmt.Fprintf(&b, "/%s[%d]", next.Name, n)
	}
	if len(above) == 0 {
		return e.Name
	}
	return b.String()
}

// CInt reads a number as C's strtol with base 0: leading blanks, a sign, 0x or
// 0 for base 16 or 8, and it stops at the first character that does not fit.
// ok reports whether the whole of s was one number.
func CInt(s string) (n int64, ok bool) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg, t = t[0] == '-', t[1:]
	}
	base := uint64(10)
	switch {
	case len(t) > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X') && digit(t[2]) < 16:
		base, t = 16, t[2:]
	case len(t) > 0 && t[0] == '0':
		base = 8
	}
	v, rest := digits(t, base, 1<<63-1)
	n = int64(v)
	if neg {
		n = -n
	}
	return n, len(rest) == 0 && len(t) > 0
}

// cHex reads as C's strtoull with base 16.
func cHex(s string) uint64 {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	if len(t) > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X') && digit(t[2]) < 16 {
		t = t[2:]
	}
	v, _ := digits(t, 16, 1<<64-1)
	return v
}

// digits reads the leading digits of a base, saturating at limit.
func digits(t string, base, limit uint64) (v uint64, rest string) {
	for t != "" {
		d := digit(t[0])
		if d >= base {
			break
		}
		if v > (limit-d)/base {
			v = limit
		} else {
			v = v*base + d
		}
		t = t[1:]
	}
	return v, t
}

func digit(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case c >= 'a' && c <= 'f':
		return uint64(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return uint64(c-'A') + 10
	}
	return 99
}

// BusID packs a PCI address "dddd:bb:dd.f" into NCCL's integer: its hex digits
// in order, stopping at the first other character (utils.cc:30).
func BusID(s string) int64 {
	var hex []byte
	for i := 0; i < len(s) && len(hex) < 16; i++ {
		if s[i] == '.' || s[i] == ':' {
			continue
		}
		if digit(s[i]) >= 16 {
			break
		}
		hex = append(hex, s[i])
	}
	v, _ := digits(string(hex), 16, 1<<63-1)
	return int64(v)
}

// BusIDText prints NCCL's integer as a PCI address (utils.cc:25).
func BusIDText(id int64) string {
	return fmt.Sprintf("%04x:%02x:%02x.%01x", uint64(id)>>20, uint64(id)&0xff000>>12, uint64(id)&0xff0>>4, uint64(id)&0xf)
}

// cFloat reads the leading number of s as C's strtof does, 0 without one.
func cFloat(s string) float32 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	for n := len(s); n > 0; n-- {
		if v, err := strconv.ParseFloat(s[:n], 32); err == nil {
			return float32(v)
		}
	}
	return 0
}
