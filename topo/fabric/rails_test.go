package fabric

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestNetsOfFabricFile: rails and planes are read, written again as they were, and refused
// with their place where they are none.
func TestNetsOfFabricFile(t *testing.T) {
	const file = `{"nets": [{"net": 0, "rail": 0}, {"net": 3, "rail": 1, "plane": 2}], "switches": [], "cables": []}`
	n, err := ParseNetwork([]byte(file), "f.json")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseNetwork(n.Format(), "f.json")
	if err != nil || fmt.Sprint(again.Nets) != fmt.Sprint(n.Nets) || fmt.Sprint(n.Nets) != "[{0 0 -1} {3 1 2}]" {
		t.Errorf("%v, again %v: %v", n.Nets, again.Nets, err)
	}
	for nets, want := range map[string]string{
		`[{"rail": 0}]`:                       "f.json:1:11",
		`[{"net": -1}]`:                       "f.json:1:11",
		`[{"net": 0, "rail": 16384}]`:         "numbers from 0 to 16383",
		`[{"net": 0, "plane": -1}]`:           "numbers from 0 to 16383",
		`[{"net": 0, "rail": 1}, {"net": 0}]`: "f.json:1:34: net 0 has two entries",
		`[{"net": 0, "rail": 1, "rial": 1}]`:  "rial",
		`[{"net": 0, "rail": 1.5}]`:           "f.json:1",
		`{"net": 0, "rail": 1}`:               "f.json:1:10",
	} {
		_, err := ParseNetwork([]byte(`{"nets": `+nets+`}`), "f.json")
		var bad *FormatError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", nets, err, want)
		}
	}
}

// TestRailsOfLayouts: a generated file says rails and planes where it is asked to.
func TestRailsOfLayouts(t *testing.T) {
	for kind, want := range map[string]string{"leaf-spine": "[{0 0 -1} {1 0 -1} {2 0 -1} {3 0 -1}]",
		"rail": "[{0 0 -1} {1 1 -1} {2 2 -1} {3 3 -1}]", "fat-tree": "[{0 0 -1} {1 1 -1} {2 2 -1} {3 3 -1}]",
		"planes": "[{0 0 0} {1 0 1} {2 1 0} {3 1 1}]"} {
		p := Layout{Kind: kind, Hosts: 2, Nets: 4, Gbit: 400, Planes: 2}
		n, err := Generate(p)
		if err != nil || n.Nets != nil {
			t.Errorf("%s: %v without being asked, %v", kind, n.Nets, err)
		}
		p.Rails = true
		if n, err = Generate(p); err != nil || fmt.Sprint(n.Nets) != want {
			t.Errorf("%s: %v, %v", kind, n.Nets, err)
		}
	}
}
