package decision_test

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/parity"
	"github.com/simccl/simccl/study/decision"
)

func document(t testing.TB, name string, nodes int, multicast bool, env ...string) []byte {
	t.Helper()
	c, given, err := parity.Build(filepath.Join(golden.Root(t), "testdata", "topos", name+".xml"), nodes,
		multicast, env)
	if err != nil {
		t.Fatal(err)
	}
	d, err := decision.New(c, given)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keys lists the keys of the outermost object in order.
func keys(t testing.TB, text []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var out []string
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, k.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestDocument prints the same bytes each time, on one line, sections in the
// order of NCCL's references and then ncclVersion; a communicator of one rank has no selection.
func TestDocument(t *testing.T) {
	text := document(t, "dgx-h100", 2, true)
	if again := document(t, "dgx-h100", 2, true); !bytes.Equal(text, again) {
		t.Error("a second document differs")
	}
	if n := bytes.Count(text, []byte("\n")); n != 1 || text[len(text)-1] != '\n' {
		t.Errorf("%d line ends", n)
	}
	want := []string{"nNodes", "gpusPerNode", "nRanks", "env", "notes", "topoXml", "system", "paths",
		"graphs", "graphXml", "graphsFinal",
		"channels", "tuning", "selection", "reference", "ncclVersion"}
	if got := keys(t, text); !slices.Equal(got, want) {
		t.Errorf("sections %v, want %v", got, want)
	}
	if got := keys(t, document(t, "gh200", 1, false)); slices.Contains(got, "selection") {
		t.Error("one rank chose something")
	}
}

// TestRefusals: a forced choice that is none is an entry with NCCL's code, and
// leaves no trace in the time of the choice after it: that is the least of its
// table.
func TestRefusals(t *testing.T) {
	var d struct {
		Selection []struct {
			Func   string
			Error  int
			Algo   string
			TimeUs float64
			Times  [][]float64
		}
	}
	if err := json.Unmarshal(document(t, "dgx-a100", 2, false, "NCCL_ALGO=Tree", "NCCL_MAX_NCHANNELS=4"),
		&d); err != nil {
		t.Fatal(err)
	}
	chosen := 0
	for _, s := range d.Selection {
		if refused := s.Func != "AllReduce"; refused != (s.Error == 5) || refused != (s.Algo == "") {
			t.Errorf("%s with Tree only: %+v", s.Func, s)
		}
		least := math.Inf(1)
		for _, row := range s.Times {
			for _, v := range row {
				if v >= 0 {
					least = min(least, v)
				}
			}
		}
		if s.Error == 0 && s.TimeUs != least {
			t.Errorf("%s: %g us, the least of its table is %g", s.Func, s.TimeUs, least)
		}
		if s.Error == 0 {
			chosen++
		}
	}
	if chosen == 0 {
		t.Error("nothing was chosen")
	}
}

// TestNum keeps nine digits, as NCCL's references do.
func TestNum(t *testing.T) {
	for v, want := range map[decision.Num]string{370.8: "370.799988", 0: "0", 48: "48",
		63186.2852: "63186.2852", -1: "-1", 1e-7: "1.00000001e-07"} {
		if got, _ := v.MarshalJSON(); string(got) != want {
			t.Errorf("%v prints as %s, want %s", float32(v), got, want)
		}
	}
}

// TestCollNetSelection: choices that leave the sum to the network have a split
// too, in which all channels take chunks round-robin.
func TestCollNetSelection(t *testing.T) {
	var d struct {
		Notes     []string
		Selection []struct {
			Func, Algo string
			Striped    bool
			NChannels  int
			Lo, Mid    *decision.Part
		}
	}
	if err := json.Unmarshal(document(t, "dgx-h100", 4, true, "NCCL_COLLNET_ENABLE=1", "SIMCCL_COLLNET=1"),
		&d); err != nil {
		t.Fatal(err)
	}
	striped := map[string]int{}
	for _, s := range d.Selection {
		collNet := s.Algo == "NVLS" || s.Algo == "CollNetDirect" || s.Algo == "CollNetChain"
		if s.Striped != collNet || collNet && (s.Lo == nil || s.Mid != nil || s.NChannels == 0) {
			t.Errorf("%s with %s: striped %t, %d channels, %+v, %+v", s.Func, s.Algo, s.Striped, s.NChannels,
				s.Lo, s.Mid)
		}
		if collNet {
			striped[s.Func]++
		}
	}
	if len(striped) != 3 || len(d.Notes) != 0 {
		t.Errorf("choices with a network that reduces: %v, notes %q", striped, d.Notes)
	}
}
