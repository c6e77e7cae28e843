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
	sent map[uint32][]transport.Work // by QP number, in the order of posting
}

// Watch reports every request of the connection's data from now on; nil ends
// it.
func (k *comm) Watch(tell func(transport.Work)) {
	k.watch = nil
	if tell != nil {
		k.watch = &watcher{tell: tell, sent: map[uint32][]transport.Work{}}
	}
}

// posted notes a chain.
func (w *watcher) posted(q *QP, chain ...Work) {
	if w == nil {
		return
	}
	now := time.Now()
	for _, c := range chain {
		k := transport.Work{Device: q.dev.Name, QP: q.Num, Opcode: opcodes[c.Op], Size: c.Len, Posted: now}
		if c.Signaled {
			k.ID = c.ID + 1
		}
		w.sent[q.Num] = append(w.sent[q.Num], k)
	}
}

// completed tells of the request with that id, and of those before it.
func (w *watcher) completed(qp uint32, id uint64) {
	if w == nil {
		return
	}
	q := w.sent[qp]
	for i := range q {
		if q[i].ID != id+1 {
			continue
		}
		now := time.Now()
		for _, k := range q[:i+1] {
			k.Done = now
			if k.ID > 0 {
				k.ID--
			}
			w.tell(k)
		}
		w.sent[qp] = append(q[:0], q[i+1:]...)
		return
	}
}
