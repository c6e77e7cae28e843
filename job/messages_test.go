package job_test

import (
	"testing"

	"github.com/simccl/simccl/job"
)

// TestMessagesOfOneText: two ranks that send as much to a third write the same call, and
// still each message has its own sender: the sum of both at the receiver, one after the
// other, in each fidelity, and a node further away takes longer.
func TestMessagesOfOneText(t *testing.T) {
	const text = `workload 1
ranks 9
comm pp *
list a 0
  call 0 pp send float sum 1048576 peer=1
list b 1
  mark begin
  call 0 pp recv float sum 1048576 peer=0
  call 0 pp recv float sum 1048576 peer=8
  mark end
list c 8
  call 0 pp send float sum 1048576 peer=1
list rest 2-7
`
	m, _ := machine(t, "dgx-h100.xml", 2)
	for _, f := range []job.Fidelity{job.Share, job.Step} {
		r := run(t, m, text, job.Options{Fidelity: f})
		near, far := r.Spans[1][0].End, r.Spans[1][1].End-r.Spans[1][0].End
		if near <= 0 || 5*far < 6*near {
			t.Errorf("%v: the message within the node takes %v, that of the other node %v", f, near, far)
		}
		if len(r.Program.Marks) < 2 {
			t.Errorf("%v: marks are lost", f)
		}
	}
}
