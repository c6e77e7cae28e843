package coll

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func render(m Mask, names []string) string {
	var b strings.Builder
	for f, row := range m {
		if row == nil {
			continue
		}
		fmt.Fprintf(&b, "%s:", Func(f))
		for i, on := range row {
			if on {
				b.WriteString(" " + names[i])
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestMaskReadsWhatNCCLReads walks the grammar of tuning.cc:54-130 on
// NCCL_PROTO, whose default here is "LL and Simple".
func TestMaskReadsWhatNCCLReads(t *testing.T) {
	names := ncclNames(protocolWords[:])
	var def Mask
	for f := range def {
		def[f] = []bool{true, false, true}
	}
	for _, c := range []struct{ list, allReduce, broadcast, problem string }{
		{"", "LL Simple", "LL Simple", ""},
		{"LL", "LL", "LL", ""},
		{"ll,SIMPLE", "LL Simple", "LL Simple", ""},
		{"^LL128", "LL Simple", "LL Simple", ""},
		{"^", "LL LL128 Simple", "LL LL128 Simple", ""},
		{"^LL128;allreduce:LL128", "LL128", "LL Simple", ""},
		{"LL,Simple;AllReduce:^LL", "LL128 Simple", "LL Simple", ""},
		{"broadcast:ll128", "LL Simple", "LL128", ""},
		{"allreduce:LL;allreduce:Simple", "Simple", "LL Simple", ""},
		{";;allreduce:LL;", "LL", "LL Simple", ""},
		{"LL,,Simple,", "LL Simple", "LL Simple", ""},
		{"allreduce:LL;Simple", "", "", "first entry"},
		{";LL", "", "", "first entry"},
		{"LL64", "", "", "not known"},
		{"LL, Simple", "", "", "not known"}, // NCCL strips no blanks
		{"sendrecv:LL", "", "", "no collective"},
		{":", "", "", "names nothing"},
	} {
		m, err := ParseProtocolMask(c.list, def)
		if c.problem != "" {
			var me *MaskError
			if !errors.As(err, &me) || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q: %v; want a complaint of %q", c.list, err, c.problem)
			}
			continue
		}
		got := render(m, names)
		if err != nil || !strings.Contains(got, "AllReduce: "+c.allReduce+"\n") ||
			!strings.Contains(got, "Broadcast: "+c.broadcast+"\n") {
			t.Errorf("%q: %v\n%swant AllReduce: %s, Broadcast: %s", c.list, err, got, c.allReduce,
				c.broadcast)
		}
	}
	if fmt.Sprint(def[AllReduce]) != "[true false true]" {
		t.Error("the defaults were changed")
	}
}

func FuzzMask(f *testing.F) {
	f.Add("^LL128;allreduce:LL128")
	f.Add("ring,tree;broadcast:^tree")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseAlgorithmMask(s, Mask{})
		if err == nil {
			for _, row := range m {
				if len(row) != int(NumAlgorithms) {
					t.Fatalf("%q: a row of %d", s, len(row))
				}
			}
		}
	})
}
