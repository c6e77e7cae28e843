package gpu

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/jsonfile"
)

// NetworkClass holds the quantities of one kind of network between nodes that replace
// a machine class's: what its NICs, its plugin and its switches cost. Machine classes
// have those of InfiniBand.
type NetworkClass struct {
	Name string
	// Network is what the numbers were taken on, or are thought to hold for.
	Network string
	// Source is the weakest of what they rest on, Uncertainty the relative uncertainty
	// of a message's time, 0.3 for 30 %.
	Source      Source
	Uncertainty float64
	// Regimes are how far simulated times between nodes were from published ones.
	Regimes []Regime

	parameters []parameter
}

// parameter is a quantity that a network class replaces.
type parameter struct {
	name   string
	value  float64
	origin Origin
}

// networkFormat is the first member of a network class's file.
const networkFormat = "simccl network class"

//go:embed networks/*.json
var networkFiles embed.FS

// NetworkNames lists the network classes that are built in.
func NetworkNames() []string {
	entries, err := networkFiles.ReadDir("networks")
	if err != nil {
		return nil // cannot be: the directory is part of the program
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names
}

// NetworkNamed returns a network class that is built in.
func NetworkNamed(name string) (*NetworkClass, error) {
	file := path.Join("networks", name+".json")
	data, err := networkFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("no network class %q is built in; there are %s", name,
			strings.Join(NetworkNames(), ", "))
	}
	return ParseNetwork(data, file)
}

// ParseNetwork reads the file of a network class; name is for errors, which are
// *jsonfile.Errors. It has quantities of NICs alone, each by value.
func ParseNetwork(data []byte, name string) (*NetworkClass, error) {
	r := &networkReader{Reader: jsonfile.New(data, name), class: new(NetworkClass), seen: map[string]bool{}}
	if err := r.Object(r.member); err != nil {
		return nil, err
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	for _, key := range []string{"format", "name", "source", "uncertainty"} {
		if !r.seen[key] {
			return nil, r.Fail(0, "", "%s is missing", key)
		}
	}
	return r.class, nil
}

// networkReader fills in a network class from its file.
type networkReader struct {
	*jsonfile.Reader
	class *NetworkClass
	seen  map[string]bool
}

func (r *networkReader) member(key string, at int64) error {
	from := r.Next()
	if r.seen[key] {
		return r.Fail(at, "", "%s is there twice", key)
	}
	r.seen[key] = true
	c := r.class
	switch key {
	case "format":
		var f string
		if err := r.Decode(&f); err != nil || f == networkFormat {
			return err
		}
		return r.Fail(from, "write "+networkFormat, "format %q", f)
	case "name":
		return r.Decode(&c.Name)
	case "network":
		return r.Decode(&c.Network)
	case "source":
		if err := r.Decode(&c.Source); err != nil || known(c.Source) {
			return err
		}
		return r.Fail(from, "write measured, spec sheet or estimated", "source %q", c.Source)
	case "uncertainty":
		if err := r.Decode(&c.Uncertainty); err != nil || c.Uncertainty > 0 && c.Uncertainty <= 10 {
			return err
		}
		return r.Fail(from, "write 0.05 for 5 %", "uncertainty %g", c.Uncertainty)
	case "regimes":
		return r.regimes(from)
	case "parameters":
		return r.Object(r.parameter)
	}
	return r.Fail(at, "known are format, name, network, source, uncertainty, regimes, parameters",
		"unknown member %q", key)
}

func (r *networkReader) regimes(from int64) error {
	if err := r.Decode(&r.class.Regimes); err != nil {
		return err
	}
	for _, g := range r.class.Regimes {
		if g.Op == "" || g.NodesFrom < 2 || g.NodesTo < g.NodesFrom || g.To < g.From || g.Mean < 0 {
			return r.Fail(from, "write operation, nodes_from, nodes_to, from_bytes, to_bytes, points, "+
				"mean_error and max_error of each", "a regime of %q that cannot be", g.Op)
		}
	}
	return nil
}

func (r *networkReader) parameter(key string, at int64) error {
	from := r.Next()
	all := networkQuantities()
	i := slices.IndexFunc(all, func(q Quantity) bool { return q.Name == key })
	if i < 0 {
		return r.Fail(at, "a network has those that begin with nic_ and sharp_",
			"no parameter of a network is called %q", key)
	}
	if slices.ContainsFunc(r.class.parameters, func(p parameter) bool { return p.name == key }) {
		return r.Fail(at, "", "%s is there twice", key)
	}
	var e entry
	if err := r.Decode(&e); err != nil {
		return err
	}
	q := &all[i]
	switch {
	case !known(e.Source):
		return r.Fail(from, "write measured, spec sheet or estimated", "source %q", e.Source)
	case e.Value == nil || e.Times != nil:
		return r.Fail(from, "", "%s needs a value", key)
	case e.Unit != q.Unit:
		return r.Fail(from, "", "%s is in %s, not in %q", key, q.Unit, e.Unit)
	case e.Uncertainty < 0 || e.Uncertainty > 10:
		return r.Fail(from, "write 0.05 for 5 %", "uncertainty %g of %s", e.Uncertainty, key)
	}
	if err := q.check(*e.Value); err != nil {
		return r.Fail(from, "", "%v", err)
	}
	r.class.parameters = append(r.class.parameters, parameter{key, *e.Value, e.Origin})
	return nil
}

// networkQuantities are those that a network class may replace.
func networkQuantities() []Quantity {
	return slices.DeleteFunc(Quantities(), func(q Quantity) bool {
		return !strings.HasPrefix(q.Name, "nic_") && !strings.HasPrefix(q.Name, "sharp_")
	})
}

// On returns a machine class with the network's quantities in place of its own.
func (n *NetworkClass) On(c Class) Class {
	c.Network, c.Between, c.Origins = n.Name, n.Regimes, maps.Clone(c.Origins)
	all := networkQuantities()
	for _, p := range n.parameters {
		q := &all[slices.IndexFunc(all, func(q Quantity) bool { return q.Name == p.name })]
		*q.At(&c) = p.value
		c.Origins[p.name] = p.origin
	}
	return c
}

// Each calls f for each quantity that the class replaces, in the order of its file.
func (n *NetworkClass) Each(f func(q Quantity, value float64, o Origin)) {
	all := networkQuantities()
	for _, p := range n.parameters {
		f(all[slices.IndexFunc(all, func(q Quantity) bool { return q.Name == p.name })], p.value, p.origin)
	}
}
