package ibv

import (
	"slices"
	"time"

	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

// opcodes are the names of ibv_wr_opcode.
var opcodes = map[uint32]string{verbs.OpWrite: "RDMA_WRITE", verbs.OpWriteImm: "RDMA_WRITE_WITH_IMM",
	verbs.OpSend: "SEND", verbs.OpRead: "RDMA_READ"}

// watcher records the requests that a connection posts; a nil watcher records none. Requests without a
// completion of their own are done when a later one of their QP is.
type watcher struct {
	of     *comm
	report func(transport.Work)
	sent   map[*queuePair][]pending // in the order of posting
}

// pending is a request in flight.
type pending struct {
	transport.Work
	signaled bool
}

// Watch reports every request of the connection from this call on; a nil report ends it.
func (k *comm) Watch(report func(transport.Work)) {
	k.watch = nil
	if report != nil {
		k.watch = &watcher{of: k, report: report, sent: map[*queuePair][]pending{}}
	}
}

func (w *watcher) work(q *queuePair, opcode string, size int, id uint64, posted time.Time) transport.Work {
	n := len(w.of.qps)
	lane := slices.Index(w.of.qps, q)
	if lane < 0 {
		lane = n
	}
	return transport.Work{Device: q.Device().Name, QP: q.Num, Lane: lane, Lanes: n, Opcode: opcode,
		Size: size, ID: id, Posted: posted}
}

// posted records a chain.
func (w *watcher) posted(q *queuePair, chain ...verbs.Work) {
	if w == nil {
		return
	}
	now := time.Now()
	for _, c := range chain {
		w.sent[q] = append(w.sent[q], pending{w.work(q, opcodes[c.Op], c.Len, c.ID, now), c.Signaled})
	}
}

// completed reports the next request of a QP that has a completion, and those before it: a QP completes
// requests in order.
func (w *watcher) completed(q *queuePair) {
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
			if k.Opcode != transport.OpCTS {
				w.report(k.Work)
			}
		}
		w.sent[q] = append(all[:0], all[i+1:]...)
		return
	}
}

// offered reports a CTS whose posting began at a time. Few have a completion, which must not complete another
// request.
func (w *watcher) offered(q *queuePair, cts verbs.Work, began time.Time) {
	if w == nil {
		return
	}
	k := w.work(q, transport.OpCTS, cts.Len, cts.ID, began)
	k.Done = time.Now()
	w.report(k)
	if cts.Signaled {
		w.sent[q] = append(w.sent[q], pending{k, true})
	}
}

// arrived reports that a receiver is notified of its data.
func (w *watcher) arrived(q *queuePair, wc *verbs.WC, size int) {
	if w == nil {
		return
	}
	now := time.Now()
	k := w.work(q, transport.OpArrival, size, wc.ID, now)
	k.Done = now
	w.report(k)
}
