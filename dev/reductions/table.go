package reductions

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
)

// operations are those that requests have.
var operations = [...]string{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "sendrecv",
	"alltoall", "gather", "scatter"}

// Operations lists the operations that requests have.
func Operations() []string { return operations[:] }

// Table lists requests of all kinds that the policy distinguishes.
func Table() []Request {
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

// Sites has machines that requests share.
type Sites struct {
	spec scenario.Spec
	site *scenario.Site
}

// Running prepares a request.
func (s *Sites) Running(r Request) (*scenario.Running, error) {
	spec, err := r.Spec()
	if err != nil {
		return nil, err
	}
	opt := scenario.Options{Files: Files{}, Settings: config.Sources{NoEnv: true}, Workers: 1}
	if s.site == nil || !equalMachines(&s.spec, &spec) {
		if err := spec.Validate(); err != nil {
			return nil, err
		}
		if s.site, err = scenario.Load(&spec, opt); err != nil {
			return nil, err
		}
		s.spec = spec
	}
	return scenario.On(s.site, spec, opt)
}

// Row is what the policy decides for a request, as a line.
func (s *Sites) Row(ctx context.Context, r Request) string {
	run, err := s.Running(r)
	if err != nil {
		return "cannot run: " + err.Error()
	}
	a, err := run.Method(ctx, run.Lines()[0].Operation)
	if err != nil {
		return "refused: " + err.Error()
	}
	return a.String()
}
