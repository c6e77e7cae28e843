package ibv

import (
	"time"

	"github.com/simccl/simccl/real/transport"
)

// opcodes are the names of ibv_wr_opcode.
var opcodes = map[uint32]string{opWrite: "RDMA_WRITE", opWriteImm: "RDMA_WRITE_WITH_IMM", opSend: "SEND", opRead: "RDMA_READ"}

// watcher follows what a connection posts. Requests without a completion of
// their own are done when a later one of their QP is. CTS writes are left out:
// most have no completion at all.
type watcher struct {
	tell func(transport.Work)
	sent map[*QP][]pending // in the order of posting
}

// pending is a request on its way.
type pending struct {
	transport.Work
	signaled bool
}

// Watch reports every request of the connection's data from now on; nil ends
// it.
func (k *comm) Watch(tell func(transport.Work)) {
	k.watch = nil
	if tell != nil {
		k.watch = &watcher{tell: tell, sent: map[*QP][]pending{}}
	}
}

// posted notes a chain.
func (w *watcher) posted(q *QP, chain ...Work) {
	if w == nil {
		return
	}
	now := time.Now()
	for _, c := range chain {
		w.sent[q] = append(w.sent[q], pending{transport.Work{Device: q.dev.Name, QP: q.Num, Opcode: opcodes[c.Op], Size: c.Len, Posted: now, ID: c.ID}, c.Signaled})
	}
}

// completed tells of the next request of a QP that has a completion, and of
// those before it: a QP ends them in order.
func (w *watcher) completed(q *QP) {
	if w == nil {
		return
	}
	all, now := w.sent[q], time.Now()
	for i := range all {
		if !all[i].signaled {
			continue
		}
		for _, k := range all[:i+1] {
			k.Done = now
			w.tell(k.Work)
		}
		w.sent[q] = append(all[:0], all[i+1:]...)
		return
	}
}
