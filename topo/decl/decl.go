// Package decl represents what a source (a file, or the probes of a running machine) declares about a host: a
// tree of elements with attributes and origins, in the vocabulary of NCCL's topology files. Its counterpart
// is NCCL's graph/xml.h.
//
// What it must not know: XML syntax, and what NCCL concludes from a declaration (topo).
package decl

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
)

// Origin is the source of a declaration: a position in a file, or the name of the probe that found it (Line
// is 0).
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

	// Ports are the speeds in Mb/s of the ports that a net was fused of, in order;
	// nil where a source says only their sum.
	Ports []int

	parent *Element // set by SetParents
}

// Spec is a blueprint of one host, or of all hosts of one multi-node NVLink
// domain: what a source declared, before NCCL's rules are applied.
type Spec struct {
	Name     string   // file or probe
	Root     *Element // the <system> element
	Warnings []*Error // values that NCCL would read differently
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
		n, _ := cnum.Int(v)
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
	return cnum.Hex(v), true
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

// SetDefault appends an attribute unless the element already has it.
func (e *Element) SetDefault(name, value string) {
	if _, ok := e.Get(name); !ok {
		e.Attrs = append(e.Attrs, Attr{Name: name, Value: value})
	}
}

// Unset removes an attribute; it does nothing if the element does not have it.
func (e *Element) Unset(name string) {
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
