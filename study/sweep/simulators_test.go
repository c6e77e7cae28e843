package sweep

import (
	"strings"
	"testing"
)

// Vidur's rows have milliseconds and bytes, and a folder for each kind of machine; AIConfigurator's
// elements, and kernels over peers' memory apart from NCCL's.
func TestFilesOfSimulators(t *testing.T) {
	rows := []timed{{"all_reduce", "half", "nvswitch-sm90", "RING", 8, 1, 65536, 12.5},
		{"all_reduce", "half", "nvswitch-sm90", "PEER", 4, 1, 1024, 4.5},
		{"sendrecv", "half", "pcie-sm89", "P2P", 2, 2, 4096, 30}}
	files, err := vidur(rows)
	if err != nil {
		t.Fatal(err)
	}
	header := func(name string) string {
		var b strings.Builder
		for _, stat := range []string{"min", "max", "mean", "median", "std"} {
			b.WriteString(",time_stats." + name + "." + stat)
		}
		return b.String() + ",rank,num_workers,size,collective,devices_per_node,max_devices_per_node\n"
	}
	want := map[string]string{
		"data/profiling/network/h100_dgx/all_reduce.csv": header("all_reduce") +
			"0,0.0125,0.0125,0.0125,0.0125,0,0,8,65536,all_reduce,8,8\n" +
			"1,0.0045,0.0045,0.0045,0.0045,0,0,4,1024,all_reduce,4,8\n",
		"data/profiling/network/pcie-sm89/send_recv.csv": header("send_recv") +
			"0,0.03,0.03,0.03,0.03,0,0,2,4096,send_recv,1,1\n"}
	for _, f := range files {
		if string(f.Data) != want[f.Name] {
			t.Errorf("%s:\n%swant\n%s", f.Name, f.Data, want[f.Name])
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	files, err = aiconfigurator(rows, "2.28.9")
	if err != nil || len(files) != 4 || files[0].Name != "comm/nccl/2.28.9/nccl_perf.parquet" ||
		files[2].Name != "comm/vllm/2.28.9/custom_allreduce_perf.parquet" ||
		!strings.Contains(string(files[1].Data), "rows: 1\n") {
		t.Errorf("%+v, %v", files, err)
	}
	rows[0].typ = "double"
	if _, err = aiconfigurator(rows, "2.28.9"); err == nil {
		t.Error("double: no error")
	}
}
