package load

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// recording is a Kineto trace of one kernel; head is before traceEvents and args on
// the kernel.
func recording(head, args string) string {
	return `{"schemaVersion":1,` + head +
		`"deviceProperties":[{"id":0,"name":"NVIDIA H100","numSms":132}],"traceEvents":[` +
		`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":100,"dur":4,"args":{"correlation":1}},` +
		`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":110,"dur":9,"args":{"correlation":1,"stream":7,"device":0,"grid":[1,1,1],"block":[32,1,1]` + args + `}}]}`
}

func named(text string, names ...string) (out []File) {
	for _, n := range names {
		out = append(out, File{Name: n, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}})
	}
	return out
}

// TestRankOfANameIsOneThatSaysSo: steps, years, processes and versions are no ranks.
func TestRankOfANameIsOneThatSaysSo(t *testing.T) {
	for name, want := range map[string]int{"step_500.json": -1, "trace_2024.json": -1, "x__1016005.json": -1,
		"resnet_50.json": -1, "llama-7b_8.json": -1,
		"host_1234.1700000000.pt.trace.json": -1, "layer3.json": -1, "checkpoint_12000_rank0.json": 0,
		"rank_3.json": 3, "rank-07.json": 7, "Rank12.step5.json": 12,
		"trace_r3.json": 3, "r5.json": 5, "a-R2-b.json": 2, "bar3.json": -1, "dir/rank9/x.json": -1,
		"et.4.et": 4, "rank99999999999.json": -1} {
		if got := rankOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// TestFilesOfARunThatCountFrom0AreItsRanks: where no name says a rank.
func TestFilesOfARunThatCountFrom0AreItsRanks(t *testing.T) {
	for names, want := range map[string][]int{
		"t_0.json t_1.json t_2.json":                 {0, 1, 2},
		"t_1.json t_0.json":                          {1, 0},
		"0/trace.json 1/trace.json":                  {0, 1},
		"host_0_7731.pt.json host_1_7732.pt.json":    {0, 1},
		"w0/t0.json w1/t1.json":                      {0, 1},
		"w0/t1.json w1/t0.json":                      nil,
		"t_1.json t_2.json":                          nil,
		"step_100.json step_200.json":                nil,
		"t_0.json":                                   nil,
		"a_0.json b_1.json":                          nil,
		"t_0.json t_2.json":                          nil,
		"t_0.json t_99999999999999999999999999.json": nil,
	} {
		if got := counted(strings.Fields(names)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", names, got, want)
		}
	}
}

// TestRanksOfRecordings: what the recording says precedes its name, and a single
// one without either is of one rank.
func TestRanksOfRecordings(t *testing.T) {
	plain := recording("", "")
	info := recording(`"distributedInfo":{"backend":"nccl","rank":2,"world_size":4},`, "")
	group := recording("",
		`,"Collective name":"all_reduce","Process Group Name":"0","Group size":4,"In msg nelems":8,"Out msg nelems":8,"dtype":"Float"`)
	for _, c := range []struct {
		text  string
		names string
		ranks int
	}{{plain, "step_500.json", 1}, {plain, "trace_2024.json", 1}, {plain, "x__1016005.json", 1},
		{plain, "rank_3.json", 4}, {plain, "t_0.json t_1.json t_2.json", 3},
		{info, "step_500.json", 4}, {info, "rank7.json", 4}, {group, "step_500.json", 4}} {
		j, err := Load(named(c.text, strings.Fields(c.names)...), Options{Partial: true})
		if err != nil || j.Program.Ranks() != c.ranks {
			t.Errorf("%s: %v, %v, want %d ranks", c.names, j, err, c.ranks)
		}
	}
	_, err := Load(named(plain, "step_100.json", "step_200.json"), Options{})
	if want := "neither step_100.json nor step_200.json says which rank it is of"; err == nil ||
		!strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("two recordings without a rank: %v, want %s", err, want)
	}
}
