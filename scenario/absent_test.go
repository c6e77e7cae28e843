package scenario

import (
	"testing"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestAbsentFusedNIC: a NIC that NCCL makes of several ports goes with all of them, by its name or its
// number; a port by its own name goes alone.
func TestAbsentFusedNIC(t *testing.T) {
	text, err := ruletest.XML(`
cpu 0
  switch 10
    gpu 11
    card 20.0
      net a
    card 20.1
      net b
    card 21
      net c
`)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse([]byte(text), "fused.xml")
	if err != nil {
		t.Fatal(err)
	}
	members := []fabric.Member{{Spec: spec, Count: 2}}
	cl, err := fabric.New(members, topo.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[string]string{"nic=a+b": "c", "nic=1": "c", "nic=c": "a b", "nic=0": "a b",
		"nic=b": "a c"} {
		out, _, err := absencesOf([]string{fault + ":absent"}).remove(members, cl, nil)
		if err != nil || len(out) != 1 {
			t.Errorf("%s: %d members, %v", fault, len(out), err)
			continue
		}
		got := ""
		for _, e := range out[0].Spec.Root.All("net") {
			name, _ := e.Get("name")
			got += " " + name
		}
		if got != " "+want {
			t.Errorf("%s leaves%s, want %s", fault, got, want)
		}
	}
}
