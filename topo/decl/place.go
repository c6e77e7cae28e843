package decl

import (
	"fmt"
	"iter"
	"strings"
)

// Place is the position of an element in its tree. The number among its siblings is
// counted once, while descending, so that naming every element of a tree costs no
// more than the tree is large.
type Place struct {
	Elem *Element
	Up   *Place // nil at the root
	nth  int    // among siblings of the same name, from 0
}

// RootPlace returns the place of a tree's root.
func RootPlace(e *Element) *Place { return &Place{Elem: e} }

// Children yields the places of the element's children in document order.
func (p *Place) Children() iter.Seq[*Place] {
	return func(yield func(*Place) bool) {
		count := map[string]int{}
		for _, c := range p.Elem.Children {
			n := count[c.Name]
			count[c.Name]++
			if !yield(&Place{Elem: c, Up: p, nth: n}) {
				return
			}
		}
	}
}

// Walk calls f for p and every place below it in document order.
func (p *Place) Walk(f func(*Place)) {
	f(p)
	for c := range p.Children() {
		c.Walk(f)
	}
}

// String formats the place as a path, "system/cpu[0]/pci[1]", as PathOf does.
func (p *Place) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *Place) write(b *strings.Builder) {
	if p.Up == nil {
		b.WriteString(p.Elem.Name)
		return
	}
	p.Up.write(b)
	fmt.Fprintf(b, "/%s[%d]", p.Elem.Name, p.nth)
}
