package job_test

import (
	"testing"

	"github.com/simccl/simccl/job"
)

// TestSplitsOfRCCLHaveNoDDA: RCCL has no kernels over all GPUs' memory in a communicator that it split
// (init.cc:2576 of RCCL 2.30.4), also where that has all ranks.
func TestSplitsOfRCCLHaveNoDDA(t *testing.T) {
	m, _ := machine(t, "mi300x-8-thor2", 1)
	busy := func(comm, of string) float64 {
		return float64(run(t, m, "workload 1\nranks 8\ncomm world *\n"+comm+
			"list a 0-7\n  call 0 "+of+" all_reduce float sum 262144\n", job.Options{}).Elapsed())
	}
	world, split := busy("", "world"), busy("comm tp 0-7 parent=world\n", "tp")
	apart := busy("comm tp 0-7\n", "tp")
	if apart != world || split < 1.5*world {
		t.Errorf("world %g, made apart %g, split %g: want the first two equal, by DDA, the last by ring or "+
			"tree", world, apart, split)
	}
}
