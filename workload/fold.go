package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxSteps is the largest number of steps of a text's or a generated job's lists together: 1 GiB at 64 bytes
// a step.
const MaxSteps = 1 << 24

// EachRank is the suffix of a list's name in the text form if each of its ranks has its own list, called NAME
// and the rank; as a suffix of a communicator in such a list it means the communicator NAME and a number of
// which the rank is a member.
const EachRank = "*"

// Folded is a Program in which ranks share a list though each calls on communicators of its own, as
// the ranks of a data parallel job do.
type Folded struct {
	Program
	// Ranked reports, by list, that each of the list's ranks has its own copy, named after the list and the
	// rank. The list has the calls of its first rank.
	Ranked []bool
	// Each reports, by call, that each rank makes it on its own communicator of the family.
	Each []bool
}

// families finds the communicators with a common name and a number (tp0, tp1, …). A rank is a member of at
// most one of them.
type families struct {
	prefix []string // by communicator, "" for none
	of     map[string]map[int32]int32
}

func newFamilies(p *Program) *families {
	f := &families{prefix: make([]string, len(p.Comms)), of: map[string]map[int32]int32{}}
	whole, several := map[string]bool{}, map[string]bool{}
	for i := range p.Comms {
		whole[p.Comms[i].Name] = true
	}
	for i := range p.Comms {
		c := &p.Comms[i]
		prefix := strings.TrimRight(c.Name, "0123456789")
		if prefix == "" || prefix == c.Name || whole[prefix+EachRank] || c.Ranks == nil {
			continue
		}
		f.prefix[i] = prefix
		if f.of[prefix] == nil {
			f.of[prefix] = map[int32]int32{}
		}
		for _, r := range c.Ranks {
			if _, other := f.of[prefix][r]; other {
				several[prefix] = true
			}
			f.of[prefix][r] = int32(i)
		}
	}
	for i, prefix := range f.prefix {
		if several[prefix] {
			f.prefix[i] = ""
			delete(f.of, prefix)
		}
	}
	return f
}

// comm returns the communicator of a family that a rank is in; -1 for none.
func (f *families) comm(prefix string, rank int32) int32 {
	if i, ok := f.of[prefix][rank]; ok {
		return i
	}
	return -1
}

// own reports whether a call of a rank is on the only communicator of its family that the rank is in.
func (f *families) own(c *Call, rank int32) bool {
	prefix := f.prefix[c.Comm]
	return prefix != "" && f.comm(prefix, rank) == c.Comm
}

// Unfold expands a Folded to one list per rank. The lists of one source share the dependencies of their
// steps. It returns an error that names the list and the rank if a rank is a member of no communicator of the
// family that it calls on, or if the result exceeds MaxSteps.
func (d *Folded) Unfold() (*Program, error) {
	u := unfolder{d: d, families: newFamilies(&d.Program), of: make([][]int32, len(d.Lists)),
		marks: make([][]Mark, len(d.Lists)), calls: map[callKey]int32{}}
	q := d.Program
	q.Calls, q.Lists, q.Marks, q.Of = nil, nil, nil, slices.Clone(d.Of)
	u.q = &q
	for r, i := range d.Of {
		u.of[i] = append(u.of[i], int32(r))
	}
	for _, m := range d.Marks {
		u.marks[m.List] = append(u.marks[m.List], m)
	}
	steps := 0
	for i := range d.Lists {
		n := 1
		if d.Ranked[i] {
			n = len(u.of[i])
		}
		if steps += n * len(d.Lists[i].Steps); steps > MaxSteps {
			return nil, &Problem{List: i, Step: -1, Name: d.Lists[i].Name,
				Text: fmt.Sprintf("the lists of all ranks have more than %d steps; write fewer ranks or "+
					"steps", MaxSteps)}
		}
	}
	for i := range d.Lists {
		prefix := d.Lists[i].Name
		if !d.Ranked[i] {
			if err := u.list(i, prefix, -1); err != nil {
				return nil, err
			}
			for _, r := range u.of[i] {
				q.Of[r] = int32(len(q.Lists)) - 1
			}
			continue
		}
		for _, r := range u.of[i] {
			if err := u.list(i, prefix+strconv.Itoa(int(r)), r); err != nil {
				return nil, err
			}
			q.Of[r] = int32(len(q.Lists)) - 1
		}
	}
	return &q, nil
}

// unfolder holds the tables of Unfold.
type unfolder struct {
	d        *Folded
	q        *Program
	families *families
	of       [][]int32 // by list, the ranks
	marks    [][]Mark  // by list
	calls    map[callKey]int32
}

// list adds the list of a rank, or one that its ranks share, -1.
func (u *unfolder) list(i int, name string, rank int32) error {
	from := u.d.Lists[i].Steps
	steps := slices.Clone(from)
	known := make(map[int32]int32, 64) // calls of this list
	for k := range steps {
		if steps[k].Kind != Issue {
			continue
		}
		at := steps[k].Call
		call, ok := known[at]
		if !ok {
			c := u.d.Calls[at]
			if rank >= 0 && u.d.Each[at] {
				prefix := u.families.prefix[c.Comm]
				if c.Comm = u.families.comm(prefix, rank); c.Comm < 0 {
					return &Problem{List: i, Step: k, Name: u.d.Lists[i].Name,
						Text: fmt.Sprintf("rank %d is in no communicator %s%s", rank, prefix, EachRank)}
				}
			}
			call = u.call(&c)
			known[at] = call
		}
		steps[k].Call = call
	}
	at := int32(len(u.q.Lists))
	u.q.Lists = append(u.q.Lists, List{Name: name, Steps: steps})
	for _, m := range u.marks[i] {
		u.q.Marks = append(u.q.Marks, Mark{List: at, Step: m.Step, Name: m.Name})
	}
	return nil
}

func (u *unfolder) call(c *Call) int32 {
	splits := ""
	if c.Splits != nil {
		splits = fmt.Sprint(c.Splits)
	}
	key := callKey{c.plain(), splits}
	i, known := u.calls[key]
	if !known {
		i = int32(len(u.q.Calls))
		u.calls[key] = i
		u.q.Calls = append(u.q.Calls, *c)
	}
	return i
}

// Fold finds lists that follow each other and are equal but for the communicators, each rank's own:
// lists of one rank, whose names are one word and the number of the rank. Unfold gives the Program again.
func (p *Program) Fold() *Folded {
	f := folder{p: p, families: newFamilies(p), of: make([]int32, len(p.Lists)),
		marks: make([][]Mark, len(p.Lists))}
	for i := range f.of {
		f.of[i] = -1
	}
	for r, i := range p.Of {
		if f.of[i] >= 0 {
			f.of[i] = -2 // of several ranks
		} else if f.of[i] == -1 {
			f.of[i] = int32(r)
		}
	}
	for _, m := range p.Marks {
		f.marks[m.List] = append(f.marks[m.List], m)
	}
	d := &Folded{Program: *p, Each: make([]bool, len(p.Calls))}
	d.Lists, d.Ranked, d.Marks, d.Of = nil, nil, nil, make([]int32, len(p.Of))
	into := make([]int32, len(p.Lists)) // by list: that of d
	for i := 0; i < len(p.Lists); {
		n := f.run(i)
		at := int32(len(d.Lists))
		l := List{Name: p.Lists[i].Name, Steps: p.Lists[i].Steps}
		if n > 1 {
			l.Name, _ = f.prefix(i)
			for k := range l.Steps {
				if s := &l.Steps[k]; s.Kind == Issue && !d.Each[s.Call] {
					d.Each[s.Call] = f.families.own(&p.Calls[s.Call], f.of[i])
				}
			}
		}
		d.Lists, d.Ranked = append(d.Lists, l), append(d.Ranked, n > 1)
		for _, m := range f.marks[i] {
			d.Marks = append(d.Marks, Mark{List: at, Step: m.Step, Name: m.Name})
		}
		for k := range n {
			into[i+k] = at
		}
		i += n
	}
	for r, i := range p.Of {
		d.Of[r] = into[i]
	}
	return d
}

// folder holds the tables of Fold.
type folder struct {
	p        *Program
	families *families
	of       []int32  // by list: its rank, -1 none, -2 several
	marks    [][]Mark // by list
}

// prefix returns the name of a list without the rank's number at its end; ok is false if the name does not
// end so.
func (f *folder) prefix(i int) (string, bool) {
	if f.of[i] < 0 {
		return "", false
	}
	prefix, ok := strings.CutSuffix(f.p.Lists[i].Name, strconv.Itoa(int(f.of[i])))
	return prefix, ok && strings.TrimRight(prefix, "0123456789") == prefix
}

// run returns the number of consecutive lists from i that are equal except for their communicators; at least
// 1.
func (f *folder) run(i int) int {
	prefix, ok := f.prefix(i)
	n := 1
	for ; ok && i+n < len(f.p.Lists) && f.of[i+n] > f.of[i+n-1]; n++ {
		if other, ok := f.prefix(i + n); !ok || other != prefix || !f.equal(i, i+n) {
			break
		}
	}
	return n
}

// equal reports whether two lists differ in nothing but communicators of their ranks.
func (f *folder) equal(a, b int) bool {
	x, y := f.p.Lists[a].Steps, f.p.Lists[b].Steps
	if len(x) != len(y) || !slices.EqualFunc(f.marks[a], f.marks[b], func(m, n Mark) bool {
		return m.Step == n.Step && m.Name == n.Name
	}) {
		return false
	}
	pairs := map[int32]int32{}
	for k := range x {
		s, t := &x[k], &y[k]
		if s.Kind != t.Kind || s.Stream != t.Stream || s.Time != t.Time || s.Event != t.Event ||
			s.Work != t.Work || s.Recorded != t.Recorded || !slices.Equal(s.Deps, t.Deps) {
			return false
		}
		if s.Kind != Issue {
			continue
		}
		if other, known := pairs[s.Call]; known {
			if other != t.Call {
				return false
			}
			continue
		}
		pairs[s.Call] = t.Call
		if !f.same(&f.p.Calls[s.Call], &f.p.Calls[t.Call], f.of[a], f.of[b]) {
			return false
		}
	}
	return true
}

// same reports whether two calls of two ranks are one call, each on its rank's communicator.
func (f *folder) same(c, o *Call, a, b int32) bool {
	want := *c
	if f.families.own(c, a) {
		want.Comm = f.families.comm(f.families.prefix[c.Comm], b)
	}
	return want.Comm >= 0 && want.Equal(*o)
}
