package sweep

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLayouts: the best layout that a search finds is the best of all that were simulated one by one; none
// takes less than its bound; what cannot be, does not fit or is beaten is counted and not simulated.
func TestLayouts(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates a training for each of several layouts")
	}
	const text = "base:\n  machine: {nodes: [{topo: dgx-h100}]}\n" +
		"  workload: {train: {model: llama-3.1-8b, seq: 2048, globalBatch: 8, recompute: none}}\n" +
		"grid: {tp: [1, 2, 8, 3], pp: [1, 2, 4], virtual: [1, 2], microBatch: [1, 2]}\n"
	dir := filepath.Join(t.TempDir(), "out")
	s := Search{Run: start(t, text, dir), Goal: "time_us", Points: 1000}
	other := s
	other.Goal = "-tokens_s_gpu"
	if _, err := other.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "write --goal time_us") {
		t.Errorf("another goal: %v", err)
	}
	found, err := s.Do(t.Context())
	if err != nil || found.Best == nil || found.Layouts == nil {
		t.Fatalf("%+v, %v", found, err)
	}
	jobs, _, err := s.keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.worker(1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.file.close() }()
	x := &searcher{Search: &s}
	best, legal := 0.0, 0
	for i, j := range jobs {
		l := layout{job: j}
		if _, err := x.first(w, &l); err != nil {
			continue
		}
		if legal++; i%5 != 0 && l.key != found.Best.key {
			continue // enough of them
		}
		least, err := pipeline(t.Context(), &l.config, l.links)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := s.Spec.point(j.index)
		if err != nil {
			t.Fatal(err)
		}
		all, err := w.simulate(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		rows := all.([]Row)
		if r := &rows[0]; r.TimeUs < least*0.999 || least < l.least*0.999 || r.TokensPerSecond <= 0 ||
			r.MFU <= 0 ||
			r.MemoryBytes <= 0 {
			t.Errorf("%s: %.0f us, at least %.0f, stages compute %.0f; %+v", p.labels(), r.TimeUs, least,
				l.least, r)
		}
		if v := rows[0].TimeUs; best == 0 || v < best {
			best = v
		}
	}
	if found.Best.TimeUs > best*1.000001 {
		t.Errorf("the search found %.0f us, one of all takes %.0f", found.Best.TimeUs, best)
	}
	n := found.Layouts
	if n.Illegal != len(jobs)-legal-n.Unfit || n.Unfit == 0 || n.Open != 0 ||
		found.Tried+n.Beaten != legal || len(found.Top) != min(bestOf, found.Tried) || len(found.Front) != 1 {
		t.Errorf("%d points, %d legal, %d tried: %+v", len(jobs), legal, found.Tried, n)
	}
}
