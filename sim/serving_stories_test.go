package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/workload"
)

// TestServingStories are stories, as TestStories, of kernels of serving, which are timed as a whole: of an
// operation every move of its plan and every link's load, of a section "job" every call. The "sums" of a job
// have the end of a rank's n-th call as endR_n, and of a call by itself what its kernel takes.
func TestServingStories(t *testing.T) {
	files, err := filepath.Glob("testdata/serving/*.txtar")
	if err != nil || len(files) < 3 {
		t.Errorf("%d stories, want at least 3 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			s, spec := loadStory(t, file)
			var b strings.Builder
			ends := map[string]float64{}
			if text := s.section("job"); text != "" {
				s.job(t, &spec, text, &b, ends)
			} else {
				s.served(t, &spec, &b)
			}
			s.sums(t, &b, ends)
			s.compare(t, b.String())
		})
	}
}

// loadStory loads the machine of a story.
func loadStory(t *testing.T, file string) (*story, scenario.Spec) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{file: file, archive: a}
	files := storyFiles{fstest.MapFS{}, nil}
	files.in = append(files.in, os.DirFS("testdata/stories"), os.DirFS(golden.Root(t, "testdata", "topos")))
	spec, err := scenario.Parse([]byte(s.section("scenario.json")), file+"/scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	site, err := scenario.Load(&spec, scenario.Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	s.running = &scenario.Running{Spec: spec, Site: site}
	return s, spec
}

// served times a dispatch or a combine by itself.
func (s *story) served(t *testing.T, spec *scenario.Spec, b *strings.Builder) {
	t.Helper()
	cfg, err := s.running.Site.SimConfig(spec)
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.servingPlan(&spec.Workload)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if s.alone, err = x.Peer(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "%s by %s: %d ranks, %d blocks\n", p.Op, p.Kernel, p.Ranks, p.Blocks)
	for _, ph := range p.Phases {
		fmt.Fprintf(b, "\n%s\n", ph.Name)
		for _, mv := range ph.Moves {
			part := p.Parts[mv.To.Part]
			items := "tokens"
			if p.Tokens == nil {
				items = "blocks"
			}
			fmt.Fprintf(b, "  rank %d → %d  %-5v %4d %s, %7d B\n", mv.Sources[0].Rank, mv.To.Rank, mv.Way,
				part.Items, items, part.Bytes)
		}
	}
	s.loads(b)
	fmt.Fprintf(b, "\nalone     %.6f us\n", s.alone.Elapsed.Micros())
}

// servingPlan is the plan of a story's operation.
func (s *story) servingPlan(w *scenario.Workload) (*peer.Plan, error) {
	v := &w.Serving
	if w.Op == scenario.KVCache {
		return (&peer.Cache{From: v.FromTP, To: v.ToTP, Layers: int64(v.Layers), Tokens: int64(v.Tokens),
			BlockTokens: int64(v.BlockTokens), Bytes: int64(v.KVBytes),
			Read: w.Kernel == peer.CacheRead}).Plan()
	}
	return (&peer.Experts{Kernel: w.Kernel, Combine: w.Op == scenario.Combine,
		Experts: int64(v.Experts), TopK: int64(v.TopK), Hidden: int64(v.Hidden), Tokens: int64(v.Tokens),
		Element: map[bool]int64{false: 1, true: 2}[w.Op == scenario.Combine], SMs: v.SMs, GPUSMs: 132,
		NodeOf: s.running.Site.Comm.NodeOf}).Plan()
}

// loads prints what the links carry, the fullest first: one by name, and how many have as much.
func (s *story) loads(b *strings.Builder) {
	links := slices.Clone(s.alone.Links)
	slices.SortFunc(links, func(a, b exec.LinkLoad) int {
		return cmp.Or(cmp.Compare(b.Busy, a.Busy), strings.Compare(a.Name, b.Name))
	})
	fmt.Fprintf(b, "\n%9s  %9s  links\n", "busy", "bytes")
	for i := 0; i < len(links) && links[i].Bytes > 0; {
		l, n := links[i], 0
		for ; i < len(links) && links[i].Busy == l.Busy && links[i].Bytes == l.Bytes; i++ {
			n++
		}
		fmt.Fprintf(b, "%9.3f  %9d  %s, %d in all\n", l.Busy.Micros(), l.Bytes, l.Name, n)
	}
}

// job runs a program: every call of every rank, by its begin.
func (s *story) job(t *testing.T, spec *scenario.Spec, text string, b *strings.Builder,
	ends map[string]float64) {
	t.Helper()
	p, err := workload.Parse(text, s.file+"/job")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.running.Site.Session(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(context.Background(), p, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "%9s %9s  call\n", "begin", "end")
	for rank, spans := range r.Spans {
		for i, at := range spans {
			fmt.Fprintf(b, "%9.3f %9.3f  rank %d call %d\n", at.Begin.Micros(), at.End.Micros(), rank, i)
			ends[fmt.Sprintf("end%d_%d", rank, i)] = at.End.Micros()
		}
	}
}
