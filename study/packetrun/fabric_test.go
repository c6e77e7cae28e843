package packetrun

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/fail"
)

// pair is two switches with two hosts each, and one cable between them.
const pair = `{"switches": [{"name": "s0"}, {"name": "s1"}], "cables": [
{"a": "node0/0", "b": "s0", "gbit": 100}, {"a": "node1/0", "b": "s0", "gbit": 100},
{"a": "node2/0", "b": "s1", "gbit": 100}, {"a": "node3/0", "b": "s1", "gbit": 100},
{"a": "s0", "b": "s1", "gbit": 50, "latency_us": 5}]}`

func onFabric(file, kind string, faults ...string) (*Report, error) {
	o := Options{Read: func(string) ([]byte, error) { return []byte(file), nil }, Seed: 1, Workers: 1,
		Traffic: Traffic{Kind: kind, Bytes: 1e6, Load: 30, SpanUs: 1000}}
	o.Faults = faults
	return Fabric("net.json", o)
}

// TestFabricsCarryTraffic: hosts and switches have the file's names; two flows that cross a cable of half the
// speed take as long as their bytes there, and a fault of this cable, named as in run, makes them slower.
func TestFabricsCarryTraffic(t *testing.T) {
	r, err := onFabric(pair, "incast:3")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Nodes, " "); got != "node0/0 node1/0 node2/0 node3/0 s0 s1" {
		t.Errorf("nodes are %s", got)
	}
	frame := int64(1e6+245*82) * 2 * 8 / 50 // ns over the cable
	if r.Unfinished != "" || r.MakespanNs < frame || r.Line == nil || r.Line.Use > 1 || r.Line.Use < 0.2 ||
		r.Series != nil {
		t.Errorf("%d ns, at least %d: %s", r.MakespanNs, frame, r.Text())
	}
	slow, err := onFabric(pair, "incast:3", "link=s0~s1:slow=10")
	if err != nil || slow.MakespanNs < 10*frame {
		t.Errorf("%d ns over a cable of a tenth of the speed, at least %d: %v", slow.MakespanNs, 10*frame,
			err)
	}
	if !strings.Contains(slow.Text(), "s1 > s0 at 50 Gb/s") && !strings.Contains(slow.Text(),
		"s0 > node0/0") {
		t.Errorf("no names of nodes:\n%s", slow.Text())
	}
}

// TestWrongFabrics: files without flows, faults of cables that are not there and routes that flows do not
// have are refused; a fault of the file has its place.
func TestWrongFabrics(t *testing.T) {
	var place *fail.FileError
	if _, err := onFabric(strings.Replace(pair, "50,", `"fast",`, 1), "permutation"); !errors.As(err,
		&place) ||
		place.Line != 4 {
		t.Errorf("a rate that is none: %v", err)
	}
	for want, c := range map[string][3]string{"add Kind": {pair, "", "link=s0~s1:down@0-9"},
		"no link joins nodes s0 and node2/0": {pair, "permutation", "link=s0~node2/0:down@0-9"},
		"link=A~B":                           {pair, "permutation", "link=s0~s7:down@0-9"},
		`routing "static"`: {strings.Replace(pair, "{", `{"routing": "static", `, 1), "permutation",
			"link=s0~s1:down@0-9"}} {
		if _, err := onFabric(c[0], c[1], c[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", c[1:], err, want)
		}
	}
}
