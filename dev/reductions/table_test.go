package reductions

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table anew")

const golden = "testdata/table.txt"

// TestPolicyDecidesAsTheTableSays: what is left out of each request, and the margin, is a decision
// that a change of the simulator shows. With -short every fourth request is decided.
func TestPolicyDecidesAsTheTableSays(t *testing.T) {
	requests := table()
	want, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	was := strings.Split(string(want), "\n")
	if n := 2*len(requests) + 1; len(was) != n && !*update {
		t.Fatalf("%d lines, want %d: make reductions writes the table anew", len(was), n)
	}
	var got strings.Builder
	var s Sites
	for i, r := range requests {
		if testing.Short() && i%4 > 0 && !*update {
			continue
		}
		have := fmt.Sprintf("%s\n    %s\n", r, row(&s, r))
		got.WriteString(have)
		if *update {
			continue
		}
		if table := strings.Join(was[2*i:2*i+2], "\n") + "\n"; have != table {
			t.Errorf("decided: %stable:   %smake reductions writes the table anew", have, table)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// table lists requests of all kinds that the policy distinguishes.
func table() []Request {
	var out []Request
	add := func(format string, args ...any) { out = append(out, Request(fmt.Sprintf(format, args...))) }
	for _, op := range operations {
		for _, n := range []int{1, 2, 3, 8, 9, 16, 33, 65, 128, 300} {
			for _, size := range []string{"1M", "1G"} {
				add("%s --nodes %d --sizes %s", op, n, size)
			}
		}
		for _, more := range []string{"-m 2", "-m 4", "--jitter off", "--skip off", "--fold off",
			"--fold near",
			"--fault rank=3:slow=1.5", "--fault nic=node1/1:slow=2", "--fabric leaf-spine-8x8-2-2.json"} {
			add("%s --nodes 8 --sizes 256M %s", op, more)
		}
	}
	for _, algo := range []string{"Ring", "Tree", "NVLS", "NVLSTree"} {
		for _, n := range []int{1, 2, 5, 17, 33, 65, 130, 300} {
			if algo == "NVLS" && n > 1 {
				continue
			}
			for _, size := range []string{"16M", "16G"} {
				add("all_reduce --nodes %d --sizes %s --env NCCL_ALGO=%s", n, size, algo)
			}
		}
	}
	for _, topo := range []string{"dgx-a100", "dgx-b200", "gb200-nvl72-2tray", "aws-p4d.24xlarge", "dgx-2",
		"pcie-l40s-8", "hgx-h100-4"} {
		for _, op := range []string{"all_reduce", "all_gather", "broadcast", "alltoall"} {
			for _, n := range []int{2, 9, 65} {
				add("%s --topo %s --nodes %d --sizes 256M", op, topo, n)
			}
		}
	}
	for _, n := range []int{2, 8, 40, 130} {
		for _, more := range []string{"-m 3", "-R 1", "--fault nic=node1/0:slow=2",
			"--fault nic=node1/0:down",
			"--fault rank=3:slow=1.5", "--jitter off --fold exact", "--fold near --launch graph", "-g 7"} {
			add("all_reduce --nodes %d --sizes 1G %s", n, more)
		}
	}
	add("all_reduce --nodes 2 -m 16 --sizes 4G")
	add("all_reduce --nodes 1 -R 2 --sizes 64M")
	add("all_gather --topo dgx-h100 --nodes 65 -m 3 --sizes 16M")
	add("reduce_scatter --topo gb200-nvl72-2tray --nodes 65 -m 3 --sizes 16M")
	add("all_to_all_v --nodes 4 --sizes 64M --imbalance 3")
	add("all_reduce --topo dgx-h100:4,dgx-a100:2 --sizes 1G")
	add("alltoall --topo dgx-h100:4,dgx-a100:2 --sizes 256M")
	add("all_reduce --nodes 16 --sizes 1G --fabric leaf-spine-16x8-1-1.json --env NCCL_ALGO=NVLSTree")
	add("alltoall --nodes 32 --sizes 1G --fabric leaf-spine-32x8-4-2.json")
	return out
}

// row is what the policy decides for a request, as a line.
func row(s *Sites, r Request) string {
	run, err := s.Running(r)
	if err != nil {
		return "cannot run: " + err.Error()
	}
	a, err := run.Method(context.Background(), run.Lines()[0].Operation)
	if err != nil {
		return "refused: " + err.Error()
	}
	return a.String()
}
