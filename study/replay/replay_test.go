package replay_test

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

type osFS struct{}

func (osFS) Open(name string) (fs.File, error) { return os.Open(name) }

// readJob reads files of a folder whose names contain one of the words.
func readJob(t *testing.T, dir string, words ...string) *load.Job {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(list) == 0 {
		t.Skip("no recordings at " + dir)
	}
	var files []load.File
	for _, name := range list {
		for _, w := range words {
			if strings.Contains(filepath.Base(name), w) {
				files = append(files, load.File{Name: name, Open: func() (io.ReadCloser, error) {
					return os.Open(name)
				}})
				break
			}
		}
	}
	j, err := load.Load(files, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// run replays a job on the machine of its recording.
func run(t *testing.T, j *load.Job, o replay.Options) *replay.Report {
	t.Helper()
	p, err := replay.Change(j.Program, o)
	if err != nil {
		t.Fatal(err)
	}
	var spec scenario.Spec
	if _, err := replay.Machine(&spec, &j.Meta, p.Ranks()); err != nil {
		t.Fatal(err)
	}
	site, err := scenario.Load(&spec, scenario.Options{Files: osFS{}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := site.Session(&spec)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := replay.Run(t.Context(), j, p, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRecordedHost: with the host's recorded time a job takes what it took: the mean over
// steps within 3 %, each within 5 %.
func TestRecordedHost(t *testing.T) {
	here := golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer")
	truth := func(mode string) string { return golden.Root(t, "..", "shared", "workloads", "truth", mode) }
	own := func(mode string) string {
		return golden.Root(t, "testdata", "measured", "h200x2", "replay", mode)
	}
	for name, files := range map[string][]string{
		own("tpsp"): {"trace_rank", "meta"}, own("tp"): {"trace_rank", "meta"}, own("fsdp2"): {"trace_rank",
			"meta"}, own("pp"): {"trace_rank", "meta"},
		here: {"trace_rank", "meta"}, here + "/": {"trace_graph", "meta", "nccl_coll"},
		truth("ddp"): {"trace_rank", "meta"}, truth("ep"): {"trace_rank", "meta"},
		truth("pp"): {"trace_rank", "meta"}, truth("tp"): {"trace_rank", "meta"},
		truth("single"): {"trace_rank", "meta"},
	} {
		t.Run(filepath.Base(name)+" "+files[0], func(t *testing.T) {
			r := run(t, readJob(t, name, files...), replay.Options{Host: 1})
			if r.RecordedUs == nil {
				t.Fatal("no recorded time")
			}
			if e := math.Abs(r.IterationUs/(*r.RecordedUs) - 1); e > 0.03 {
				t.Errorf("%.1f us, recorded %.1f: %.1f %% off", r.IterationUs, *r.RecordedUs, 100*e)
			}
			// Groups without a description are known by what is called on them.
			if kind := map[string]string{"tpsp": "TP", "tp": "TP", "infer": "TP", "fsdp2": "FSDP", "pp": "PP",
				"ddp": "DP"}[filepath.Base(name)]; kind != "" && r.Groups[0].Kind != kind {
				t.Errorf("%s is of kind %s, want %s", r.Groups[0].Name, r.Groups[0].Kind, kind)
			}
			for _, s := range r.Steps {
				if e := math.Abs(s.Us/(*s.RecordedUs) - 1); e > 0.05 {
					t.Errorf("%s: %.1f us, recorded %.1f", s.Name, s.Us, *s.RecordedUs)
				}
			}
		})
	}
}

// TestIdealHost: without the host's time a job whose GPU is the limit takes what its
// unprofiled steps took (median_ms of times_rank*.json). Mean of all within 5 %.
func TestIdealHost(t *testing.T) {
	truth := func(mode string) string { return golden.Root(t, "..", "shared", "workloads", "truth", mode) }
	own := func(mode string) string {
		return golden.Root(t, "testdata", "measured", "h200x2", "replay", mode)
	}
	sum, n := 0.0, 0
	for _, c := range []struct {
		dir   string
		files []string
		want  float64 // ms
	}{
		{own("tpsp"), []string{"trace_rank", "meta"}, 160.32}, {own("tp"), []string{"trace_rank", "meta"},
			158.57},
		{own("fsdp2"), []string{"trace_rank", "meta"}, 87.29}, {own("pp"), []string{"trace_rank", "meta"},
			211.51},
		{golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer"), []string{"trace_graph", "meta",
			"nccl_coll"}, 3.448},
		{truth("ddp"), []string{"trace_rank", "meta"}, 24.93}, {truth("ep"), []string{"trace_rank", "meta"},
			20.43},
		{truth("pp"), []string{"trace_rank", "meta"}, 33.04},
		{truth("single"), []string{"trace_rank", "meta"}, 21.68},
	} {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			r := run(t, readJob(t, c.dir, c.files...), replay.Options{})
			e := r.IterationUs/1000/c.want - 1
			t.Logf("%.3f ms, measured %.3f (%+.1f %%)", r.IterationUs/1000, c.want, 100*e)
			if r.Limit == replay.LimitHost {
				t.Errorf("the host is named as the limit: %.3f ms", *r.HostAloneUs/1000)
			}
			sum, n = sum+math.Abs(e), n+1
		})
	}
	if n > 0 && sum/float64(n) > 0.05 {
		t.Errorf("%.1f %% off in the mean", 100*sum/float64(n))
	}
}

// TestHostLimit: steps that the host bounds are named as such (those of TestIdealHost are
// not), and take with the host's estimated time what they took, within a fifth where the
// recording is not of the first steps of its process.
func TestHostLimit(t *testing.T) {
	for _, c := range []struct {
		dir  string
		want float64 // ms, 0: the estimate is not held to it
	}{
		{golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer"), 0},
		{golden.Root(t, "..", "shared", "workloads", "truth", "tp"), 50.09},
	} {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			j := readJob(t, c.dir, "trace_rank", "meta")
			ideal := run(t, j, replay.Options{})
			if ideal.Limit != replay.LimitHost || !slices.ContainsFunc(ideal.Notes, func(n string) bool {
				return strings.Contains(n, "the host is the limit")
			}) {
				t.Errorf("%s, %v", ideal.Limit, ideal.Notes)
			}
			hosts, us := replay.Unprofiled(j)
			r := run(t, j, replay.Options{Hosts: hosts})
			t.Logf("%.3f ms, of it the host %.3f; without it %.3f, measured %.3f", r.IterationUs/1000,
				us/1000, ideal.IterationUs/1000, c.want)
			if r.Host != "unprofiled" || r.Limit != replay.LimitHost || r.IterationUs < us ||
				r.IterationUs < ideal.IterationUs {
				t.Errorf("%+v", r)
			}
			if c.want > 0 && math.Abs(r.IterationUs/1000/c.want-1) > 0.2 {
				t.Errorf("%.3f ms, measured %.3f", r.IterationUs/1000, c.want)
			}
		})
	}
	if f, us := replay.Unprofiled(&load.Job{Program: &workload.Program{}}); f != nil || us != 0 {
		t.Error("a job that no profiler recorded has an estimate")
	}
}

// TestReport: the parts of a report fit together, a slow rank costs time, and the text
// has them.
func TestReport(t *testing.T) {
	j := readJob(t, golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer"), "trace_rank", "meta")
	r := run(t, j, replay.Options{})
	if r.IterationUs < r.BoundUs*0.99 || len(r.Groups) != 1 || len(r.Calls) == 0 || r.Calls[0].Times != 64 ||
		r.Ranks != 2 {
		t.Errorf("%+v", r)
	}
	slow := run(t, j, replay.Options{Slow: map[int]float64{1: 1.5}})
	if slow.IterationUs < 1.3*r.IterationUs || slow.WorstRank != 1 {
		t.Errorf("with a slow rank %.1f us, without %.1f", slow.IterationUs, r.IterationUs)
	}
	alpha := run(t, j, replay.Options{Fidelity: session.Alpha})
	if alpha.IterationUs <= 0 {
		t.Error("alpha takes no time")
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, true); err != nil || !strings.Contains(b.String(), "exposed communication") ||
		!strings.Contains(b.String(), "all_reduce") {
		t.Errorf("%v\n%s", err, &b)
	}
	if _, err := replay.Change(j.Program, replay.Options{Host: 1, Slow: map[int]float64{7: 2}}); err == nil {
		t.Error("a rank that is not there is slowed")
	}
}

// TestMachine: the machine of a recording follows from its GPUs.
func TestMachine(t *testing.T) {
	for _, c := range []struct {
		gpu   string
		ranks int
		topo  string
		nodes int
		gpus  int
	}{
		{"NVIDIA H200", 4, "h200x4", 1, 0}, {"NVIDIA H200", 2, "h200x4", 1, 2},
		{"NVIDIA H200", 16, "dgx-h200", 2, 0}, {"NVIDIA H100 80GB HBM3", 8, "dgx-h100", 1, 0},
		{"NVIDIA A100-SXM4-80GB", 8, "dgx-a100", 1, 0}, {"NVIDIA H20", 8, "hgx-h20-8", 1, 0},
		{"NVIDIA GB200", 8, "gb200-nvl72", 2, 0}, {"Tesla V100-SXM2-32GB", 4, "dgx-1v", 1, 4},
	} {
		var s scenario.Spec
		if _, err := replay.Machine(&s, &load.MetaInfo{GPU: c.gpu}, c.ranks); err != nil {
			t.Errorf("%s: %v", c.gpu, err)
			continue
		}
		if n := s.Machine.Nodes[0]; n.Topo != c.topo || n.Count != c.nodes || s.Machine.GPUs != c.gpus {
			t.Errorf("%s, %d ranks: %+v, %d GPUs", c.gpu, c.ranks, n, s.Machine.GPUs)
		}
	}
	for _, c := range []struct {
		gpu   string
		ranks int
	}{{"", 4}, {"MI300X", 8}, {"NVIDIA H100", 12}} {
		if _, err := replay.Machine(&scenario.Spec{}, &load.MetaInfo{GPU: c.gpu}, c.ranks); err == nil {
			t.Errorf("%q with %d ranks has a machine", c.gpu, c.ranks)
		}
	}
}
