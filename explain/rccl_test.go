package explain_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/explain"
)

// TestMachineOfRCCLIsExplained: the report says which of RCCL's models the machine is, with its line and the
// reasons of the others, or that none is looked for; and whether AMD's NICs count as such.
func TestMachineOfRCCLIsExplained(t *testing.T) {
	const warning = "RCCL_AINIC_ROCE=1 has"
	for _, c := range []struct {
		topo  string
		env   []string
		wants []string
		lacks string
	}{
		{"mi355x-8-pollara", nil, []string{"rome_model_81 (graph/rome_models.cc:577 of RCCL 2.30.4)", warning,
			"has NICs 16, the machine 8"}, ""},
		{"mi355x-8-pollara", []string{"RCCL_AINIC_ROCE=1"}, nil, warning},
		{"mi355x-8-thor2", nil, nil, warning},
		{"frontier-mi250x-slingshot", nil, []string{"RCCL has no model of it, and searches"},
			"rings and trees of"},
		{"mi300x-8-thor2-genoa", []string{"RCCL_MODEL_MATCHING_DISABLE=1"},
			[]string{"no model is looked for: RCCL_MODEL_MATCHING_DISABLE=1"}, "rome_model"},
	} {
		s, err := site.OpenFor("rccl-2.30.4",
			site.Nodes(golden.Root(t, "testdata", "topos", "rccl", c.topo+".xml"), 2),
			c.env...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explain.New(explain.Input{Comm: s.Comm, Access: s.Config.Topo.Access,
			Op: comm.Op{Func: coll.AllReduce, Count: 1 << 20, Type: coll.Float32}})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Text()
		for _, w := range c.wants {
			if !strings.Contains(text, w) {
				t.Errorf("%s %v: no %q in\n%s", c.topo, c.env, w, text)
			}
		}
		if c.lacks != "" && strings.Contains(text, c.lacks) {
			t.Errorf("%s %v: %q in\n%s", c.topo, c.env, c.lacks, text)
		}
	}
}
