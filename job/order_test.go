package job_test

import (
	"reflect"
	"testing"

	"github.com/simccl/simccl/job"
)

// TestPermutedRanksHaveTheirOwnTimes: a communicator that numbers the GPUs of another one in another order
// has the same operations, whose members end as they do by themselves, not as those of the other one's
// ranks: a machine that has simulated one does not take its times for the other.
func TestPermutedRanksHaveTheirOwnTimes(t *testing.T) {
	const plain = "comm a 0-15\nlist x 0-15\n  call 1 a broadcast float sum 1048576 root=3\n"
	const permuted = "comm a 15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0\nlist x 0-15\n" +
		"  call 1 a broadcast float sum 1048576 root=12\n" // the same GPU
	opt := job.Options{Fidelity: job.Share}
	fresh, _ := machine(t, "dgx-h100.xml", 2)
	want := run(t, fresh, head(16)+permuted, opt)
	m, _ := machine(t, "dgx-h100.xml", 2)
	first := run(t, m, head(16)+plain, opt)
	if got := run(t, m, head(16)+permuted, opt); !reflect.DeepEqual(got.Spans, want.Spans) {
		t.Errorf("after a job of plain ranks %v, alone %v", got.Spans, want.Spans)
	}
	for r := range want.Spans {
		if first.Spans[r][0] != want.Spans[r][0] {
			t.Errorf("GPU %d ends at %v, by another number at %v", r, first.Spans[r][0].End,
				want.Spans[r][0].End)
		}
	}
}
