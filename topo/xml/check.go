package topoxml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
)

// NCCL's parser limits (xml.h:17-19, topo.h:226).
const (
	ncclElements = 256
	rcclElements = 8192 // graph/topo.h:241 of RCCL 2.30.4
	ncclAttrs    = 16
	ncclChildren = 128 // before 2.29.7
	newChildren  = 640 // since 2.29.7 (graph/xml.h:20)
	ncclChars    = 255
)

// valueKind is the form that NCCL requires of an attribute's value.
type valueKind uint8

const (
	text valueKind = iota
	integer
	integerOrEmpty // NCCL itself writes "" where sysfs is silent
	hexadecimal
	decimal
	busID
)

// known lists the attributes of each element that NCCL reads (topo.cc:356-690) or writes in dumps.
var known = map[string]map[string]valueKind{
	"system": {"version": integer, "name": text},
	"cpu": {"numaid": integerOrEmpty, "host_hash": hexadecimal, "affinity": text, "arch": text,
		"vendor":   text,
		"familyid": integer, "modelid": integer},
	"pci": {"busid": busID, "class": text, "vendor": integer, "device": integer, "subsystem_vendor": integer,
		"subsystem_device": integer, "link_speed": text, "link_width": integerOrEmpty},
	"gpu": {"dev": integer, "sm": integer, "rank": text, "gdr": integer, "mlopart": integer,
		"name": text},
	"nvlink":  {"target": busID, "count": integer, "tclass": text},
	"c2c":     {"bw": integer, "count": integer},
	"pcilink": {"target": busID},
	"nic":     {},
	"net": {"name": text, "dev": integer, "latency": decimal, "speed": integer, "port": integer,
		"guid":    hexadecimal,
		"maxconn": integer, "gdr": integer, "coll": integer, "keep": integer,
		"net": integer, "gin": integer}, // the last two since NCCL 2.29; 2.28 passes over them
}

// inside lists where an element has a meaning; NCCL skips it, with all below
// it, anywhere else (xml.cc:326-377).
var inside = map[string][]string{
	"cpu": {"system"}, "pci": {"cpu", "pci"}, "gpu": {"pci"}, "nic": {"pci", "cpu"}, "net": {"nic"},
	"nvlink": {"gpu"}, "c2c": {"gpu"}, "pcilink": {"pci"},
}

// required lists what NCCL cannot continue without and this program has no source
// for either.
var required = map[string][]string{"system": {"version"}, "cpu": {"numaid"}, "pci": {"busid"}}

type checker struct {
	spec *topo.Spec
	v    *vocabulary
	root *decl.Place
	errs Errors
	warn warner
}

// lib returns the name of the library that the file is for.
func (c *checker) lib() string { return c.v.rules.Library.String() }

// warner collects warnings. It keeps at most shownRepeated of those that differ only in position, the last of
// which states how many more there are, and at most shownWarnings in all.
type warner struct {
	list     []*Error
	repeated map[string]*repeated
	more     int // warnings beyond shownWarnings
}

// repeated counts warnings that differ only in position.
type repeated struct {
	n    int
	last *Error
}

const (
	shownRepeated = 10
	shownWarnings = 1000
)

func (w *warner) add(what string, e func() *Error) {
	a := w.repeated[what]
	switch {
	case a == nil && len(w.list) >= shownWarnings:
		w.more++
		return
	case a == nil:
		if w.repeated == nil {
			w.repeated = map[string]*repeated{}
		}
		a = &repeated{}
		w.repeated[what] = a
	}
	if a.n++; a.n <= shownRepeated {
		a.last = e()
		w.list = append(w.list, a.last)
	}
}

// end adds to the last kept warning of each kind the number of omitted ones, and returns the list.
func (w *warner) end(root *topo.Element) []*Error {
	count := make(map[*Error]int, len(w.repeated))
	for _, a := range w.repeated { //lint:sorted each changes its own warning
		count[a.last] = a.n - shownRepeated
	}
	for _, e := range w.list {
		if n := count[e]; n > 0 {
			e.Problem += fmt.Sprintf(" (and %d more of this kind)", n)
		}
	}
	if w.more > 0 {
		w.list = append(w.list, &Error{Pos: root.Origin, Path: root.Name,
			Problem: fmt.Sprintf("%d more warnings", w.more), Hint: "see to the first ones"})
	}
	return w.list
}

func (c *checker) fail(p *decl.Place, attr, problem, hint string) {
	c.errs = append(c.errs, ErrorAt(p.Elem, p.String(), attr, problem, hint))
}

// complain warns of an element or of one of its attributes.
func (c *checker) complain(p *decl.Place, attr, problem, hint string) {
	c.warn.add(strings.Join([]string{p.Elem.Name, attr, problem}, " "), func() *Error {
		return ErrorAt(p.Elem, p.String(), attr, problem, hint)
	})
}

// ErrorAt returns an error at an element's attribute, or at the element itself where attr is
// empty or absent; path is the element's place in the file.
func ErrorAt(e *topo.Element, path, attr, problem, hint string) *Error {
	out := &Error{Pos: e.AttrOrigin(attr), Path: path, Problem: problem, Hint: hint}
	if v, ok := e.Get(attr); ok {
		out.Attr = attr + "=" + termtext.Quote(v, 0)
	} else {
		out.Attr = attr
	}
	return out
}

func (c *checker) run(marks []mark, data []byte, name string) {
	count := 0
	root := decl.RootPlace(c.spec.Root)
	c.root = root
	c.visit(root, &count)
	if count > c.v.elements {
		c.complain(root, "", fmt.Sprintf("%d elements, %s reads at most %d and fails", count,
			c.v.rules.Name(), c.v.elements), "remove what the ranks do not use")
	}
	const one = "put one blank between attributes"
	for _, m := range marks {
		if at := strings.IndexAny(m.raw, "\n\t\r"); at >= 0 {
			c.tag(m, at, "a line end or tab inside a tag: "+c.lib()+"'s parser fails on it", one)
		} else if at := strings.Index(m.raw, "  "); at >= 0 {
			c.tag(m, at, "two blanks inside a tag: "+c.lib()+"'s parser fails on it", one)
		}
	}
	for _, m := range marks {
		if at := strings.Index(m.raw, "='"); at >= 0 && c.v.rules.Library == rules.NCCL {
			c.tag(m, at, "single quotes: "+c.lib()+" before 2.27.3 reads on to the next double one",
				`write attribute="value"`)
		}
	}
	if strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), 64)]), " \n\r\ufeff"), "<?") {
		c.warn.add("declaration", func() *Error {
			return &Error{Pos: topo.Origin{File: name, Line: 1, Col: 1},
				Problem: "an XML declaration: " + c.lib() + "'s parser fails on it",
				Hint:    "start with <system>"}
		})
	}
	c.spec.Warnings = c.warn.end(c.spec.Root)
}

// tag warns of how a tag is written, at an offset into its text.
func (c *checker) tag(m mark, at int, problem, hint string) {
	c.warn.add(m.name+" "+problem, func() *Error {
		return &Error{Pos: advance(m.pos, m.raw[:at]), Path: m.name, Problem: problem, Hint: hint}
	})
}

// visit checks an element and its subtree, unless NCCL skips the element.
func (c *checker) visit(p *decl.Place, count *int) {
	e := p.Elem
	attrs, ok := c.v.known[e.Name]
	if !ok || !c.rightPlace(p) {
		c.complain(p, "", c.lib()+" skips this element and all inside it",
			"see NCCL_TOPO_DUMP_FILE for what is allowed here")
		return
	}
	*count++
	if len(e.Attrs) > ncclAttrs {
		c.complain(p, "", fmt.Sprintf("%d attributes, %s reads %d", len(e.Attrs), c.lib(), ncclAttrs),
			"remove those that "+c.lib()+" does not know")
	}
	if n := len(e.Children); n > ncclChildren {
		where := fmt.Sprintf("%s before 2.29.7 fails with more than %d", c.lib(), ncclChildren)
		if n > newChildren {
			where = fmt.Sprintf("%s fails with more than %d", c.lib(), newChildren)
		}
		c.complain(p, "", fmt.Sprintf("%d children, %s", n, where), "put some below another <pci>")
	}
	for _, name := range c.v.required[e.Name] {
		if _, ok := e.Get(name); !ok {
			c.fail(p, name, "is missing", fmt.Sprintf("write <%s %s=\"...\"", e.Name, name))
		}
	}
	for i, a := range e.Attrs {
		if slices.ContainsFunc(e.Attrs[:i], func(b decl.Attr) bool { return b.Name == a.Name }) {
			c.complain(p, a.Name, "given twice: "+c.lib()+
				" reads the first, and takes such elements of several "+
				"ranks for different ones", "remove one")
			continue
		}
		c.value(p, a, attrs)
	}
	if e.Name == "system" {
		c.version()
	}
	for s := range p.Children() {
		c.visit(s, count)
	}
}

func (c *checker) rightPlace(p *decl.Place) bool {
	if p.Elem.Name == "system" {
		return p.Up == nil
	}
	return p.Up != nil && slices.Contains(c.v.inside[p.Elem.Name], p.Up.Elem.Name)
}

// value checks one attribute: that it is known and that its value is of the attribute's kind.
func (c *checker) value(p *decl.Place, a decl.Attr, attrs map[string]valueKind) {
	kind, ok := attrs[a.Name]
	if !ok {
		if a.Name != "keep" {
			c.complain(p, a.Name, c.lib()+" does not know this attribute", "it is kept and has no effect")
		}
		return
	}
	if len(a.Value) > ncclChars {
		c.complain(p, a.Name, fmt.Sprintf("longer than the %d characters %s reads", ncclChars, c.lib()),
			"shorten it")
	}
	if strings.ContainsAny(a.Value, "&<>\"\n") {
		c.complain(p, a.Name, c.lib()+" does not decode XML entities", "use plain characters")
	}
	switch kind {
	case integerOrEmpty:
		if a.Value == "" {
			return
		}
		fallthrough
	case integer:
		if _, whole := cnum.Int(a.Value); !whole {
			c.fail(p, a.Name, "not an integer", "write "+SuggestInt(a.Value))
		}
	case hexadecimal:
		h := strings.TrimPrefix(strings.TrimPrefix(a.Value, "0x"), "0X")
		if _, err := strconv.ParseUint(h, 16, 64); err != nil {
			c.fail(p, a.Name, "not a hexadecimal number of 64 bits", "write for example 0x1a2b3c4d")
		}
	case decimal:
		if _, err := strconv.ParseFloat(a.Value, 32); err != nil {
			c.fail(p, a.Name, "not a number", "write for example 0")
		}
	case busID:
		if a.Value == "" || strings.Trim(a.Value, "0123456789abcdefABCDEF:.") != "" {
			c.fail(p, a.Name, "not a PCI address", "write for example 0000:1b:00.0")
		}
	}
}

// SuggestInt returns the first number in an invalid value as a suggestion, or "a number".
func SuggestInt(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' })
	if i < 0 {
		return "a number"
	}
	j := i
	for j < len(s) && s[j] >= '0' && s[j] <= '9' {
		j++
	}
	return termtext.Short(s[i:j], 0)
}
