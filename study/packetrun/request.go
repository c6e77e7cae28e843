package packetrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/workload/inputs"
)

// Request is a run as data: members are the options of simccl network run, by their names.
type Request struct {
	NS3    string `json:"ns3,omitempty"`    // a configuration of ns-3
	Fabric string `json:"fabric,omitempty"` // a fabric file; this and NS3 empty: the files of htsim
	Htsim
	Options
}

// Defaults is a request that names no files.
func Defaults() Request {
	return Request{Options: Options{Seed: 1, Workers: 1, Compat: "ns3",
		Traffic:  Traffic{Bytes: 1000000, Load: 30, SpanUs: 10000},
		Override: Override{FlowletUs: 16}}}
}

// Clone returns a Request that shares nothing with r; nil of nil.
func (r *Request) Clone() *Request {
	if r == nil {
		return nil
	}
	c := *r
	c.Faults = slices.Clone(r.Faults)
	return &c
}

// Set sets a member by its name, from JSON.
func (r *Request) Set(name string, value json.RawMessage) error {
	switch one := bytes.HasPrefix(value, []byte(`"`)); {
	case name != "fault":
	case one: // in place of a list of one
		value = json.RawMessage("[" + string(value) + "]")
		fallthrough
	default:
		r.Faults = nil // a list is replaced
	}
	text, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var other *json.UnmarshalTypeError
	switch err := d.Decode(r); {
	case err == nil:
		return nil
	case errors.As(err, &other):
		return fmt.Errorf("%s where %s is expected", other.Value, other.Type)
	}
	return fmt.Errorf("network run has no option --%s", name)
}

// MaxFile bounds a file of a request.
const MaxFile = 256 << 20

// Kinds are those of the files that are read.
func (r *Request) Kinds() []inputs.Kind {
	if r.Fabric != "" {
		return []inputs.Kind{inputs.Fabric}
	}
	return []inputs.Kind{inputs.NS3Config, inputs.NS3Network, inputs.NS3Flows, inputs.HTSimMatrix,
		inputs.HTSimNetwork}
}

// names are those of members, by the fields that errors name.
func names(t reflect.Type, into map[string]string) map[string]string {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			names(f.Type, into)
		case name != "" && name != "-":
			into[f.Name] = name
		}
	}
	return into
}

// Members has the names of members in an error in place of fields'.
func Members(err error) error {
	return fail.Named(err, names(reflect.TypeFor[Request](), map[string]string{}))
}

// Run simulates what is named. Errors are of usage and name fields in braces, or of input.
func (r *Request) Run() (*Report, error) {
	given := 0
	for _, name := range []string{r.NS3, r.Fabric, r.Matrix} {
		if name != "" {
			given++
		}
	}
	const list = "{Repair}, {TimeoutUs}, {Retries}, {Paths}, {Credits}, {Routing}, {WatchUs}, {Alpha}, " +
		"{Quanta}, {Through}, {CNP}, {MarkAt} and {Messages}"
	d, o := Defaults(), &r.Options
	own := o.Override
	own.CC, own.ECN, own.FlowletUs, own.Faults = "", "", 0, nil
	switch of := !reflect.DeepEqual(own, Override{}); {
	case given != 1:
		return nil,
			fail.Usage("network run: name a configuration of ns-3 with {NS3}, a matrix of htsim with " +
				"{Matrix}, or a " +
				"fabric with {Fabric}")
	case o.Kind == "" && (o.Bytes != d.Bytes || o.Load != d.Load || o.SpanUs != d.SpanUs):
		return nil, fail.Usage("network run: {Bytes}, {Load} and {SpanUs} are for {Kind}")
	case o.FlowletUs != d.FlowletUs && o.Routing != "flowlet":
		return nil, fail.Usage("network run: {FlowletUs} is for {Routing} flowlet")
	case r.NS3 == "" && o.Compat != d.Compat:
		return nil, fail.Usage("network run: {Compat} is for {NS3}")
	case r.Matrix == "" && (r.Topo != "" || r.MTU != 0 || r.Balance != ""):
		return nil, fail.Usage("network run: {Topo}, {Balance} and {MTU} are for {Matrix}")
	case r.NS3 != "":
		return NS3(r.NS3, *o)
	case of && r.Fabric != "":
		return nil,
			fail.Usage("network run: " + list +
				" are for {NS3}: a fabric file has them in its member packets")
	case r.Fabric != "":
		return Fabric(r.Fabric, *o)
	case of || len(o.Faults) > 0 || o.Kind != "" || o.ECN != "":
		return nil,
			fail.Usage("network run: " + list +
				" are for {NS3}, {Faults}, {ECN} and {Kind} for {NS3} and {Fabric}")
	case r.Topo == "":
		return nil, fail.Usage("network run: {Matrix} needs {Topo}")
	}
	h := r.Htsim
	h.CC = cmp.Or(o.CC, "nscc")
	h.Balance = cmp.Or(h.Balance, map[bool]string{true: "ecmp", false: "mixed"}[h.CC == "roce"])
	return RunHtsim(h, *o)
}
