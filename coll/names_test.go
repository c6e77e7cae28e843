package coll

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestEveryNameReadsBack holds each printed name to its own parser, in the
// spellings that users paste from logs, tables and shell histories.
func TestEveryNameReadsBack(t *testing.T) {
	for _, f := range Funcs() {
		for _, s := range []string{f.String(), f.TestName(), f.TestName() + "_perf",
			strings.ToUpper(f.String()),
			strings.ReplaceAll(f.TestName(), "_", "-"), strings.ReplaceAll(f.TestName(), "_", "")} {
			if got, err := ParseFunc(s); err != nil || got != f {
				t.Errorf("ParseFunc(%q) = %v, %v; want %v", s, got, err, f)
			}
		}
	}
	for _, a := range Algorithms() {
		for _, s := range []string{a.String(), a.LogName(), strings.ToLower(a.String())} {
			if got, err := ParseAlgorithm(s); err != nil || got != a {
				t.Errorf("ParseAlgorithm(%q) = %v, %v; want %v", s, got, err, a)
			}
		}
	}
	for _, p := range Protocols() {
		for _, s := range []string{p.String(), p.LogName(), strings.ToLower(p.String())} {
			if got, err := ParseProtocol(s); err != nil || got != p {
				t.Errorf("ParseProtocol(%q) = %v, %v; want %v", s, got, err, p)
			}
		}
	}
	for _, d := range DataTypes() {
		for _, s := range []string{d.String(), d.TestName(), strings.TrimPrefix(d.String(), "nccl")} {
			if got, err := ParseDataType(s); err != nil || got != d {
				t.Errorf("ParseDataType(%q) = %v, %v; want %v", s, got, err, d)
			}
		}
	}
	for _, o := range RedOps() {
		for _, s := range []string{o.String(), o.TestName(), "nccl" + o.String()} {
			if got, err := ParseRedOp(s); err != nil || got != o {
				t.Errorf("ParseRedOp(%q) = %v, %v; want %v", s, got, err, o)
			}
		}
	}
}

// TestNoNameMeansTwo: a spelling that two values of a kind accepted would make
// the first win silently.
func TestNoNameMeansTwo(t *testing.T) {
	for kind, table := range map[string][]words{
		"func": funcWords[:], "algorithm": algorithmWords[:], "protocol": protocolWords[:],
		"type": dataTypeWords[:], "redop": redOpWords[:],
	} {
		owner := map[string]int{}
		for i, w := range table {
			for _, s := range append([]string{w.nccl, w.test}, w.also...) {
				if s == "" {
					continue
				}
				if j, ok := owner[fold(s)]; ok && j != i {
					t.Errorf("%s: %q means both %d and %d", kind, s, j, i)
				}
				owner[fold(s)] = i
			}
		}
	}
}

func TestNumberingIsNCCLs(t *testing.T) {
	for want, got := range map[int]any{0: Int8, 6: Float16, 7: Float32, 9: BFloat16, 11: Float8e5m2} {
		if fmt.Sprintf("%d", got) != fmt.Sprint(want) {
			t.Errorf("%v = %d, want %d (nccl.h.in:300)", got, got, want)
		}
	}
	if Broadcast != 0 || AllReduce != 4 || Tree != 0 || PAT != 6 || Simple != 2 || Avg != 4 {
		t.Error("an index differs from nccl_common.h or nccl.h.in")
	}
}

func TestUnknownNameNamesTheNearest(t *testing.T) {
	for _, c := range []struct{ word, nearest string }{
		{"all_redcue", "all_reduce"}, {"allgathr", "all_gather"}, {"brodcast", "broadcast"},
		{"quicksort", ""}, {"", ""},
	} {
		_, err := ParseFunc(c.word)
		var unknown *UnknownNameError
		if !errors.As(err, &unknown) || unknown.Nearest != c.nearest || len(unknown.Known) != int(NumFuncs) {
			t.Errorf("ParseFunc(%q): %v; want nearest %q", c.word, err, c.nearest)
		}
	}
	if _, err := ParseDataType("flaot"); err == nil || !strings.Contains(err.Error(),
		`unknown data type "flaot"; write "float"`) {
		t.Errorf("got %v", err)
	}
}

func TestOutOfRangePrintsItsNumber(t *testing.T) {
	if got := Func(200).String() + " " + Algorithm(9).LogName() + " " + DataType(77).TestName(); got !=
		"Func(200) ALGORITHM(9) DataType(77)" {
		t.Error(got)
	}
	if DataType(77).Size() != 0 {
		t.Error("a type that does not exist has a size")
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"all_reduce_perf", "NVLS_TREE", "ncclFloat32", "", "_perf", "é",
		"allreduce:^ll"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseFunc(s); err == nil && fold(v.TestName()) == "" {
			t.Error("a name without text")
		}
		if v, err := ParseDataType(s); err == nil && v.Size() == 0 {
			t.Errorf("%q has no size", s)
		}
		_, _ = ParseAlgorithm(s)
		_, _ = ParseProtocol(s)
		_, _ = ParseRedOp(s)
	})
}
