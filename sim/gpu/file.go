package gpu

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/jsonfile"
	"github.com/simccl/simccl/internal/parallel"
)

// Source is the origin of a value.
type Source string

// Sources, from the surest on.
const (
	Measured  Source = "measured"         // fitted to measured times of such a machine
	Published Source = "published tables" // fitted to times of such machines that others published
	SpecSheet Source = "spec sheet"       // what the vendor states
	Estimated Source = "estimated"        // derived from another class
)

// Origin is a parameter's source and its relative uncertainty (one standard
// deviation; 0.05 for 5 %).
type Origin struct {
	Source      Source  `json:"source"`
	Uncertainty float64 `json:"uncertainty"`
	Note        string  `json:"note,omitempty"`
}

// Regime is how well a class predicted times of an operation that it was not fitted to:
// from From to To bytes, over Ranks GPUs; of a network class, over NodesFrom to NodesTo nodes.
type Regime struct {
	Op        string  `json:"operation"`
	Ranks     int     `json:"ranks,omitempty"`
	NodesFrom int     `json:"nodes_from,omitempty"`
	NodesTo   int     `json:"nodes_to,omitempty"`
	From      int64   `json:"from_bytes"`
	To        int64   `json:"to_bytes"`
	Points    int     `json:"points"`
	Mean      float64 `json:"mean_error"`     // of |simulated/measured - 1|
	Bias      float64 `json:"bias,omitempty"` // the mean with its sign; 0 also where it is not known
	Max       float64 `json:"max_error"`
}

// format is the first member of a class file.
const format = "simccl machine class"

//go:embed classes/*.json
var classFiles embed.FS

// Names lists the classes that are built in.
func Names() []string {
	entries, err := classFiles.ReadDir("classes")
	if err != nil {
		return nil // cannot be: the directory is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// named keeps the built-in classes that were asked for: to parse one takes as long as a short simulation.
var named parallel.Cache[string, Class]

// Named returns a class that is built in. The caller may write to it.
func Named(name string) (Class, error) {
	c, err := named.Get(name, func() (Class, error) {
		file := path.Join("classes", name+".json")
		data, err := classFiles.ReadFile(file)
		if err != nil {
			return Class{}, fmt.Errorf("no machine class %q is built in; there are %s", name,
				strings.Join(Names(), ", "))
		}
		return Parse(data, file)
	})
	c.Origins, c.Regimes, c.Between = maps.Clone(c.Origins), slices.Clone(c.Regimes), slices.Clone(c.Between)
	return c, err
}

// Parse reads a class file; name is for errors, which are *jsonfile.Errors. A
// file names every parameter of Quantities by its value, or takes those it
// leaves out from a class that is built in ("base"), of which it may also give
// multiples ("times"). Late ones may be missing without a base, too.
func Parse(data []byte, name string) (Class, error) {
	r := &reader{Reader: jsonfile.New(data, name), all: Quantities(), seen: map[string]bool{}}
	r.class.Origins = map[string]Origin{}
	if err := r.Object(r.member); err != nil {
		return Class{}, err
	}
	if err := r.End(); err != nil {
		return Class{}, err
	}
	return r.class, r.complete()
}

// reader fills in a class from its file.
type reader struct {
	*jsonfile.Reader
	class Class
	all   []Quantity
	seen  map[string]bool
}

func (r *reader) member(key string, at int64) error {
	from := r.Next()
	if r.seen["/"+key] {
		return r.Fail(at, "", "%s is there twice", key)
	}
	r.seen["/"+key] = true
	c := &r.class
	switch key {
	case "format":
		var f string
		if err := r.Decode(&f); err != nil || f == format {
			return err
		}
		return r.Fail(from, "write "+format, "format %q", f)
	case "name":
		return r.Decode(&c.Name)
	case "machine":
		return r.Decode(&c.Machine)
	case "source":
		if err := r.Decode(&c.Source); err != nil {
			return err
		}
		return r.source(c.Source, from)
	case "uncertainty":
		if err := r.Decode(&c.Uncertainty); err != nil || c.Uncertainty > 0 && c.Uncertainty <= 10 {
			return err
		}
		return r.Fail(from, "write 0.05 for 5 %", "uncertainty %g", c.Uncertainty)
	case "base":
		return r.inherit(from)
	case "regimes":
		return r.Decode(&c.Regimes)
	case "parameters":
		return r.Object(r.parameter)
	}
	return r.Fail(at, "known are format, name, machine, source, uncertainty, base, regimes, parameters",
		"unknown member %q", key)
}

func (r *reader) source(s Source, at int64) error {
	if known(s) {
		return nil
	}
	return r.Fail(at, "write measured, published tables, spec sheet or estimated", "source %q", s)
}

func known(s Source) bool { return s.Times() || s == SpecSheet || s == Estimated }

// Times reports whether values were fitted to times of such machines.
func (s Source) Times() bool { return s == Measured || s == Published }

// inherit takes all parameters of another class.
func (r *reader) inherit(at int64) error {
	if err := r.Decode(&r.class.Base); err != nil {
		return err
	}
	if r.seen["/parameters"] {
		return r.Fail(at, "", "base comes after the parameters; write it before them")
	}
	b, err := Named(r.class.Base)
	if err != nil {
		return r.Fail(at, "", "base: %v", err)
	}
	for _, q := range r.all {
		*q.At(&r.class) = *q.At(&b)
		r.class.Origins[q.Name] = b.Origins[q.Name]
	}
	return nil
}

// entry is a parameter in a file.
type entry struct {
	Value *float64 `json:"value,omitempty"`
	Times *float64 `json:"times,omitempty"`
	Unit  string   `json:"unit,omitempty"`
	Origin
}

func (r *reader) parameter(key string, at int64) error {
	i := slices.IndexFunc(r.all, func(q Quantity) bool { return q.Name == key })
	if i < 0 {
		return r.Fail(at, "", "no parameter is called %q", key)
	}
	if r.seen[key] {
		return r.Fail(at, "", "%s is there twice", key)
	}
	r.seen[key] = true
	q, from := &r.all[i], r.Next()
	var e entry
	if err := r.Decode(&e); err != nil {
		return err
	}
	if err := r.source(e.Source, from); err != nil {
		return err
	}
	v := q.At(&r.class)
	switch {
	case (e.Value == nil) == (e.Times == nil):
		return r.Fail(from, "", "%s needs a value, or a multiple of the base's as times", key)
	case e.Times != nil && r.class.Base == "":
		return r.Fail(from, "name the base before the parameters", "%s is a multiple of nothing", key)
	case e.Times != nil:
		*v *= *e.Times
	case e.Unit != q.Unit:
		return r.Fail(from, "", "%s is in %s, not in %q", key, q.Unit, e.Unit)
	default:
		*v = *e.Value
	}
	if err := q.check(*v); err != nil {
		return r.Fail(from, "", "%v", err)
	}
	if e.Uncertainty < 0 || e.Uncertainty > 10 {
		return r.Fail(from, "write 0.05 for 5 %", "uncertainty %g of %s", e.Uncertainty, key)
	}
	r.class.Origins[key] = e.Origin
	return nil
}

// complete fails where something is missing.
func (r *reader) complete() error {
	for _, key := range []string{"format", "name", "source", "uncertainty"} {
		if !r.seen["/"+key] {
			return r.Fail(0, "", "%s is missing", key)
		}
	}
	for _, q := range r.all {
		switch o := r.class.Origins[q.Name]; {
		case r.seen[q.Name]:
		case q.Like != "" && r.seen[q.Like]:
			i := slices.IndexFunc(r.all, func(l Quantity) bool { return l.Name == q.Like })
			*q.At(&r.class), o = *r.all[i].At(&r.class), r.class.Origins[q.Like]
			r.class.Origins[q.Name] = Origin{Estimated, max(o.Uncertainty, r.class.Uncertainty),
				"as " + q.Like}
		case r.class.Base == "" && q.Late:
			b := NVSwitch90()
			*q.At(&r.class) = *q.At(&b)
			o = b.Origins[q.Name]
			r.class.Origins[q.Name] = Origin{Estimated, max(o.Uncertainty, r.class.Uncertainty),
				"as " + b.Name}
		case r.class.Base == "":
			return r.Fail(0, "write it, or name a base that has it", "parameter %s is missing", q.Name)
		case o.Source.Times(): // of another machine
			r.class.Origins[q.Name] = Origin{Estimated, max(o.Uncertainty, r.class.Uncertainty),
				"as " + r.class.Base}
		}
	}
	return nil
}

// Format writes the file that Parse reads: a parameter a line, all of them by
// value; a class with a base can also be read where there are more.
func (c *Class) Format() []byte { return c.FormatOf(func(Quantity) bool { return true }) }

// FormatOf is Format with those parameters alone that keep returns true for.
func (c *Class) FormatOf(keep func(Quantity) bool) []byte {
	var b bytes.Buffer
	line := func(v any) string {
		s, _ := json.Marshal(v) // strings and numbers, which cannot fail
		return string(s)
	}
	fmt.Fprintf(&b, "{\n  \"format\": %s,\n  \"name\": %s,\n  \"machine\": %s,\n  \"source\": %s,\n"+
		"  \"uncertainty\": %s,",
		line(format), line(c.Name), line(c.Machine), line(c.Source), line(c.Uncertainty))
	if c.Base != "" {
		fmt.Fprintf(&b, "\n  \"base\": %s,", line(c.Base))
	}
	for i, g := range c.Regimes {
		fmt.Fprintf(&b, "%s\n    %s", [...]string{"\n  \"regimes\": [", ","}[min(i, 1)], line(g))
	}
	if len(c.Regimes) > 0 {
		b.WriteString("\n  ],")
	}
	b.WriteString("\n  \"parameters\": {")
	comma := ""
	for _, q := range Quantities() {
		if !keep(q) {
			continue
		}
		b.WriteString(comma)
		comma = ","
		fmt.Fprintf(&b, "\n    %s: %s", line(q.Name),
			line(entry{Value: q.At(c), Unit: q.Unit, Origin: c.Origins[q.Name]}))
	}
	b.WriteString("\n  }\n}\n")
	return b.Bytes()
}

// Network is what joins the nodes of a run.
type Network uint8

// Networks.
const (
	NoNetwork Network = iota
	RDMA
	Sockets
)

// Summary says in a line what a class is and how sure it is, of times that such a
// network takes part in.
func (c *Class) Summary(n Network) string {
	s := fmt.Sprintf("machine class %s: %s, times within about %.0f %%%s", c.Name, c.Source,
		100*c.Uncertainty,
		c.bySize())
	key, name := "nic_wire", "NICs"
	if n == Sockets {
		key, name = "tcp_wire", "TCP sockets"
	}
	if n == RDMA && c.Network != "" {
		name = "NICs of " + c.Network
	}
	if n != NoNetwork {
		s += " inside a node"
		if o := c.Origins[key]; o.Source != Measured {
			s += fmt.Sprintf("; %s %s, within about %.0f %%", name, o.Source, 100*o.Uncertainty)
		}
	}
	if c.Machine != "" {
		s += " (" + c.Machine + ")"
	}
	return s
}

// bySize says how well a class that has regimes predicted small and large operations that no fit saw.
func (c *Class) bySize() string {
	var off [2]float64
	var n [2]int
	for _, g := range c.Regimes {
		k := 0
		if g.From >= 1<<20 {
			k = 1
		}
		off[k], n[k] = off[k]+g.Mean*float64(g.Points), n[k]+g.Points
	}
	if c.Source != Published || n[0] == 0 || n[1] == 0 {
		return ""
	}
	return fmt.Sprintf(" (held out: %.1f %% below 1 MiB, %.1f %% from there)",
		100*off[0]/float64(n[0]), 100*off[1]/float64(n[1]))
}
