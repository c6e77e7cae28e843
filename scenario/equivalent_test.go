package scenario

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
)

// slicesOf lists each rank's slices, and its process's name.
func slicesOf(t *testing.T, data []byte) (map[int64][]string, map[int64]string) {
	t.Helper()
	out, names := map[int64][]string{}, map[int64]string{}
	_, err := chrome.Read(bytes.NewReader(data), func(e *chrome.Event) error {
		rank := e.PID - nccl.RankPID
		if rank < 0 || e.PID >= nccl.NICPID {
			return nil
		}
		switch {
		case e.Phase == 'M' && e.Name == "process_name":
			a, _ := e.Arg("name")
			names[rank] = a.Str
		case e.Phase == 'X':
			out[rank] = append(out[rank], fmt.Sprint(e.TID, " ", e.Name, " ", e.TS, " ", e.Dur))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range out { //lint:sorted each is sorted on its own
		slices.Sort(list)
	}
	return out, names
}

// TestEquivalentRanksAreDrawnOnce: a drawn rank has the slices that it has in the trace of
// all ranks, and so have as many others as its name says.
func TestEquivalentRanksAreDrawnOnce(t *testing.T) {
	traced := func(list string) ([]byte, error) {
		s := small("all_gather", "1M")
		s.Machine.Nodes = []Nodes{{"dgx-h100", 17}}
		s.Machine.GPUs = 0
		s.Outputs = Outputs{Trace: "t.json", Ranks: list}
		out := memory{}
		var warned error
		_, err := Run(context.Background(), s, Options{Create: out.create, Program: "test",
			Warn: func(err error) {
				if a, ok := err.(*equivalentRanks); ok {
					warned = a
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		return out["t.json"].Bytes(), warned
	}
	few, warned := traced("")
	all, none := traced("all")
	note, ok := warned.(*equivalentRanks)
	if !ok || none != nil {
		t.Fatalf("warnings %v and %v", warned, none)
	}
	if rep, err := validate.Check(bytes.NewReader(few)); err != nil || rep.Errors > 0 {
		t.Errorf("the trace: %+v, %v", rep, err)
	}
	if !bytes.Contains(few, []byte(`"cat":"critical"`)) {
		t.Error("no critical path")
	}
	drawn, names := slicesOf(t, few)
	whole, _ := slicesOf(t, all)
	if len(whole) != 136 || len(drawn) != note.NDrawn || note.NDrawn > mostDrawn {
		t.Fatalf("%d and %d ranks, the note says %d", len(whole), len(drawn), note.NDrawn)
	}
	stand := 0
	for rank, list := range drawn { //lint:sorted each is compared on its own
		if !slices.Equal(list, whole[rank]) {
			t.Errorf("rank %d differs from itself", rank)
		}
		like := 0
		for _, other := range whole { //lint:sorted counts
			if slices.Equal(other, list) {
				like++
			}
		}
		says := 0
		if _, rest, ok := strings.Cut(names[rank], " · and "); ok {
			if _, err := fmt.Sscanf(rest, "%d equivalent", &says); err != nil {
				t.Error(err, names[rank])
			}
		}
		if like != says+1 {
			t.Errorf("%q: %d ranks do the same", names[rank], like)
		}
		stand += like
	}
	if stand+note.Left != 136 {
		t.Errorf("%d ranks are drawn or stood for, %d are not, of 136", stand, note.Left)
	}
}
