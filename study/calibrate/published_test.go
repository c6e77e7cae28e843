package calibrate

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
)

// readOne reads one JSON file.
func readOne(t *testing.T, text string) (runs []*Run, left []string, err error) {
	t.Helper()
	return Read(fstest.MapFS{"x.json": {Data: []byte(text)}})
}

// TestPublishedTablesSayHowTheyWereLaunched: threads, GPUs of a thread and CUDA graphs by the command,
// what it leaves unsaid by custom: eager, a process a GPU, floats.
func TestPublishedTablesSayHowTheyWereLaunched(t *testing.T) {
	const table = `{"name":"N","source":"S","system":{"gpu":"G","gpus_per_node":8,"gpus_used":4,"nodes":1},
		"nccl_version":"2.29.2","command":"%","collective":"all_gather","rows":[{"bytes":4096,"time_us":5}]}`
	for _, tt := range []struct {
		command            string
		threads, perThread int
		launch             sim.Launch
	}{
		{"all_gather_perf -b 8 -t 4 -d half -n 100", 4, 1, sim.Eager},
		{"all_gather_perf -g 4 -b 8", 1, 4, sim.Eager},
		{"mpirun -np 4 all_gather_perf -g 1 -G 20", 1, 1, sim.Graph},
		{"", 1, 1, sim.Eager},
		{"all_gather_perf -t 99", 1, 1, sim.Eager}, // more than there are GPUs: not of this run
	} {
		runs, _, err := readOne(t, strings.Replace(table, "%", tt.command, 1))
		if err != nil || len(runs) != 1 {
			t.Fatalf("%q: %d runs, %v", tt.command, len(runs), err)
		}
		r := runs[0]
		if r.Threads != tt.threads || r.PerThread != tt.perThread || r.Launch != tt.launch || r.Ranks != 4 ||
			r.NCCL != 22902 || r.Name != "N" || r.Source != "S" || r.GPU != "G" || len(r.Samples) != 1 {
			t.Errorf("%q: %+v", tt.command, r)
		}
	}
}

// TestPublishedReleaseMayLackItsPatch: a release of two numbers is one, and other numbers behind it are not.
func TestPublishedReleaseMayLackItsPatch(t *testing.T) {
	for text, want := range map[string]int{"2.21 (directory name)": 22100,
		"2.23.4 + aws-ofi-nccl 1.13.0": 22304, "not stated": 0} {
		runs, _, err := readOne(t, `{"name":"N","system":{"gpus_per_node":8},"nccl_version":"`+text+
			`","collective":"all_gather","rows":[{"bytes":4096,"time_us":5}]}`)
		if err != nil || len(runs) != 1 || runs[0].NCCL != want {
			t.Errorf("%q: %+v %v", text, runs, err)
		}
	}
}

// TestPublishedTimesFollowFromBandwidth where a table has no times.
func TestPublishedTimesFollowFromBandwidth(t *testing.T) {
	runs, left, err := readOne(t, `[
		{"name":"A","system":{"gpus_per_node":4,"nodes":2},"env":{"NCCL_ALGO":"Ring","LANG":"C"},
		 "collective":"all_reduce","datatype":"half","rows":[{"bytes":8000000,"busbw":175},
		 {"bytes":16000000,"algbw":100},{"bytes":0,"time_us":1},{"bytes":64}]},
		{"name":"B","system":{"gpus_per_node":8},"nccl_version":"RCCL 2.26","collective":"all_reduce",
		 "rows":[{"bytes":8,"time_us":1}]}]`)
	if err != nil || len(runs) != 1 || len(runs[0].Samples) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	r := runs[0]
	if r.Ranks != 8 || r.Nodes != 2 || strings.Join(r.Env, " ") != "NCCL_ALGO=Ring" {
		t.Errorf("%+v", r)
	}
	for i, want := range []float64{80, 160} { // busbw of 8 ranks is 7/4 of algbw
		if us := r.Samples[i].Us; math.Abs(us-want) > 1e-9 {
			t.Errorf("%d bytes take %g us, want %g", r.Samples[i].Bytes, us, want)
		}
	}
	if len(left) != 1 || !strings.Contains(left[0], "RCCL") {
		t.Errorf("left out: %q", left)
	}
}

// TestPublishedMistakesAreNamed with the table they are in.
func TestPublishedMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"collective":"all_reduce","rows":[{"bytes":8,"time_us":1}]}`:                                "gpus_per_node",
		`{"collective":"all_sum","system":{"gpus_per_node":2},"rows":[{"bytes":8,"time_us":1}]}`:      "all_sum",
		`{"collective":"reduce","datatype":"quad","system":{"gpus_per_node":2},"rows":[{"bytes":8}]}`: "quad",
	} {
		if _, _, err := readOne(t, text); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "x.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestListsOfOtherThingsAreLeftOut: a folder may hold other JSON beside its tables.
func TestListsOfOtherThingsAreLeftOut(t *testing.T) {
	_, left, err := Read(fstest.MapFS{"x.json": {Data: []byte(`[{"name":"n","tokens":3}]`)},
		"y.json": {Data: []byte(`{"collective":"reduce","system":{"gpus_per_node":2},
			"rows":[{"bytes":8,"time_us":2}]}`)}})
	if err != nil || len(left) != 1 || !strings.HasPrefix(left[0], "x.json: ") {
		t.Errorf("%q, %v", left, err)
	}
}

// TestReleasesWithoutRulesAreAnsweredByOthers, and it is said.
func TestReleasesWithoutRulesAreAnsweredByOthers(t *testing.T) {
	runs, _, err := readOne(t, `{"name":"N","system":{"gpus_per_node":8,"gpus_used":2},"nccl_version":"2.10.3",
		"collective":"reduce","rows":[{"bytes":4096,"time_us":5}]}`)
	if err != nil {
		t.Fatal(err)
	}
	lab := Lab{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "dgx-h100"}}}}
	points, left, err := lab.Prepare(runs)
	if err != nil || len(points) != 1 || len(left) != 1 || !strings.Contains(left[0], "2.10.3") {
		t.Errorf("%d points, left %q, %v", len(points), left, err)
	}
}
