package gpu

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/fail"
)

// TestNetworkClasses: each built-in network class replaces what its file says and
// nothing else, with a source for each value.
func TestNetworkClasses(t *testing.T) {
	base := NVSwitch90()
	if got := strings.Join(NetworkNames(), " "); got !=
		"efa-v1 efa-v2 efa-v3 efa-v4 infiniband roce slingshot tcpx tcpxo" {
		t.Errorf("classes %s", got)
	}
	for _, name := range NetworkNames() {
		n, err := NetworkNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		if n.Name != name || n.Network == "" {
			t.Errorf("%s.json is of %q, for %q", name, n.Name, n.Network)
		}
		c, said := n.On(base), map[string]bool{}
		n.Each(func(q Quantity, value float64, o Origin) {
			said[q.Name] = true
			if *q.At(&c) != value || c.Origins[q.Name] != o || o.Note == "" && o.Source != SpecSheet {
				t.Errorf("%s: %s is %g of %+v", name, q.Name, *q.At(&c), c.Origins[q.Name])
			}
		})
		for _, q := range Quantities() {
			if !said[q.Name] && *q.At(&c) != *q.At(&base) {
				t.Errorf("%s changes %s", name, q.Name)
			}
		}
		if want := "NICs of " + name; !strings.Contains(c.Summary(RDMA), want) ||
			strings.Contains(base.Summary(RDMA), want) {
			t.Errorf("%s: %s", name, c.Summary(RDMA))
		}
	}
	if base.Network != "" || base.Net.Gap != 0 {
		t.Error("a network class has changed the machine class")
	}
}

// TestRegimesGoWithANetwork: a machine class on a network has the errors that are recorded of it.
func TestRegimesGoWithANetwork(t *testing.T) {
	n, err := ParseNetwork([]byte(`{"format": "simccl network class", "name": "x", "source": "estimated",
		"uncertainty": 0.1, "regimes": [{"operation": "alltoall", "nodes_from": 2, "nodes_to": 4,
		"from_bytes": 8, "to_bytes": 64, "points": 3, "mean_error": 0.5, "bias": -0.4, "max_error": 0.6}]}`), "f.json")
	if err != nil {
		t.Fatal(err)
	}
	want := Regime{Op: "alltoall", NodesFrom: 2, NodesTo: 4, From: 8, To: 64, Points: 3, Mean: .5, Bias: -.4,
		Max: .6}
	base := NVSwitch90()
	if c := n.On(base); len(c.Between) != 1 || c.Between[0] != want || base.Between != nil {
		t.Errorf("%+v", c.Between)
	}
}

// TestNetworkFileErrors: what cannot be meant is refused with its place.
func TestNetworkFileErrors(t *testing.T) {
	const head = `{"format": "simccl network class", "name": "x", "source": "estimated", "uncertainty": 0.1`
	const wire = `"unit": "us", "source": "estimated", "uncertainty": 0.1`
	for _, c := range []struct{ text, want string }{
		{`{"format": "simccl machine class"}`, "f.json:1:12: format"},
		{head + `, "base": "roce"}`, "unknown member \"base\""},
		{head + `, "parameters": {"flag": {"value": 1, ` + wire + `}}}`,
			"no parameter of a network is called \"flag\""},
		{head + `, "parameters": {"nic_wire": {"times": 2, ` + wire + `}}}`, "nic_wire needs a value"},
		{head + `, "parameters": {"nic_wire": {"value": -1, ` + wire + `}}}`, "nic_wire is -1 us"},
		{head + `, "parameters": {"nic_eff": {"value": 1, ` + wire + `}}}`, "nic_eff is in 1"},
		{head + `, "parameters": {"nic_wire": {"value": 1, ` + wire + `}, "nic_wire": {"value": 1, ` + wire +
			`}}}`, "nic_wire is there twice"},
		{head + `, "regimes": [{"operation": "alltoall", "nodes_from": 8, "nodes_to": 4}]}`,
			"a regime of \"alltoall\" that cannot be"},
		{`{"format": "simccl network class", "name": "x"}`, "source is missing"},
	} {
		_, err := ParseNetwork([]byte(c.text), "f.json")
		var at *fail.FileError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := NetworkNamed("carrier-pigeon"); err == nil || !strings.Contains(err.Error(), "slingshot") {
		t.Errorf("a class that is not there: %v", err)
	}
}
