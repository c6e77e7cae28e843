package ibv

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

// TestRequestsAreDoneInOrder: a completion of a queue pair ends the request that it is of and those without
// one before it, of that queue pair alone; an offer is reported at once, and its own completion ends what is
// before it, without a line; a queue pair that is no lane, a flush's, comes after the last.
func TestRequestsAreDoneInOrder(t *testing.T) {
	d := &verbs.Device{Name: "mlx5_0"}
	lane := func(num uint32) *queuePair { return &queuePair{QP: d.Unknown(num)} }
	a, b, flush := lane(7), lane(8), lane(9)
	k := &comm{qps: []*queuePair{a, b}}
	var got []string
	k.Watch(func(w transport.Work) {
		if w.Done.Before(w.Posted) {
			t.Errorf("%d is done before it is posted", w.ID)
		}
		got = append(got, fmt.Sprintf("%s %d QP %d lane %d of %d: %s, %d bytes", w.Device, w.ID, w.QP, w.Lane,
			w.Lanes, w.Opcode, w.Size))
	})
	expect := func(what string, want ...string) {
		t.Helper()
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %s\nwant %s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		got = nil
	}
	w := k.watch
	w.posted(a, verbs.Work{ID: 1, Op: verbs.OpWrite, Len: 100},
		verbs.Work{ID: 2, Op: verbs.OpWriteImm, Len: 4, Signaled: true})
	w.posted(a, verbs.Work{ID: 3, Op: verbs.OpSend, Len: 5, Signaled: true})
	w.posted(b, verbs.Work{ID: 4, Op: verbs.OpWrite, Len: 6})
	expect("posted")
	w.completed(b)
	expect("no request of the other has a completion")
	w.completed(a)
	expect("the first with a completion", "mlx5_0 1 QP 7 lane 0 of 2: RDMA_WRITE, 100 bytes",
		"mlx5_0 2 QP 7 lane 0 of 2: RDMA_WRITE_WITH_IMM, 4 bytes")
	w.offered(b, verbs.Work{ID: 5, Len: 64, Signaled: true}, w.sent[b][0].Posted)
	expect("an offer", "mlx5_0 5 QP 8 lane 1 of 2: CTS RDMA_WRITE, 64 bytes")
	w.completed(b)
	expect("the offer's completion", "mlx5_0 4 QP 8 lane 1 of 2: RDMA_WRITE, 6 bytes")
	w.offered(a, verbs.Work{ID: 6, Len: 64}, w.sent[a][0].Posted)
	w.completed(a)
	expect("an offer without a completion", "mlx5_0 6 QP 7 lane 0 of 2: CTS RDMA_WRITE, 64 bytes",
		"mlx5_0 3 QP 7 lane 0 of 2: SEND, 5 bytes")
	w.posted(flush, verbs.Work{ID: 7, Op: verbs.OpRead, Len: 1, Signaled: true})
	w.completed(flush)
	w.arrived(b, &verbs.WC{ID: 8}, 9)
	expect("a flush, and data that arrives", "mlx5_0 7 QP 9 lane 2 of 2: RDMA_READ, 1 bytes",
		"mlx5_0 8 QP 8 lane 1 of 2: RECV_RDMA_WRITE_WITH_IMM, 9 bytes")
	k.Watch(nil)
	k.watch.posted(a, verbs.Work{ID: 9, Signaled: true})
	k.watch.completed(a)
	k.watch.offered(a, verbs.Work{ID: 9}, time.Time{})
	k.watch.arrived(a, &verbs.WC{ID: 9}, 1)
	expect("after the end")
}
