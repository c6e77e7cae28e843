package decl

import (
	"slices"

	"github.com/simccl/simccl/internal/cnum"
)

// SetParents sets the parent of every element below e, so that Parent works, and returns e.
func (e *Element) SetParents() *Element {
	for _, c := range e.Children {
		c.parent = e
		c.SetParents()
	}
	return e
}

// Parent returns the element that contains e, as of the last SetParents or Append; nil at the root, or if
// neither was called.
func (e *Element) Parent() *Element { return e.parent }

// Chain lists e and all above it, outermost first, as Parent has them.
func (e *Element) Chain() []*Element {
	var up []*Element
	for ; e != nil; e = e.parent {
		up = append(up, e)
	}
	slices.Reverse(up)
	return up
}

// Append adds c as the last child of e and sets its parent.
func (e *Element) Append(c *Element) {
	c.parent = e
	e.Children = append(e.Children, c)
}

// Find returns the first element at or below e, in document order, that has a name and satisfies ok; a nil ok
// accepts every element (xml.h xmlFindTag, xmlFindTagKv). It returns nil if there is none.
func (e *Element) Find(name string, ok func(*Element) bool) *Element {
	if e.Name == name && (ok == nil || ok(e)) {
		return e
	}
	for _, c := range e.Children {
		if f := c.Find(name, ok); f != nil {
			return f
		}
	}
	return nil
}

// All lists the elements of a name at and below e in document order.
func (e *Element) All(name string) []*Element { return e.appendAll(name, nil) }

func (e *Element) appendAll(name string, list []*Element) []*Element {
	if e.Name == name {
		list = append(list, e)
	}
	for _, c := range e.Children {
		list = c.appendAll(name, list)
	}
	return list
}

// BusID is NCCL's integer of the nearest bus id at or above e, as Parent has
// it; 0 without one.
func (e *Element) BusID() int64 {
	for ; e != nil; e = e.parent {
		if v, ok := e.Get("busid"); ok {
			return cnum.BusID(v)
		}
	}
	return 0
}

// Fuse adds to e the elements and attributes of src that e lacks, level by level, as NCCL merges the trees of
// a host's ranks. Two elements are the same if name, form and all attributes are equal (xml.cc:277,
// xml.cc:291).
func (e *Element) Fuse(src *Element) {
	for _, s := range src.Children {
		if d := e.sameChild(s); d != nil {
			d.Fuse(s)
			continue
		}
		e.Children = append(e.Children, s)
	}
}

func (e *Element) sameChild(s *Element) *Element {
	for _, c := range e.Children {
		if c.Name == s.Name && c.Open == s.Open && len(c.Attrs) == len(s.Attrs) && sameAttrs(c, s) {
			return c
		}
	}
	return nil
}

func sameAttrs(a, b *Element) bool {
	for i := range b.Attrs {
		if v, ok := a.Get(b.Attrs[i].Name); !ok || v != b.Attrs[i].Value {
			return false
		}
	}
	return true
}
