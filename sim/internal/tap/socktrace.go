package tap

import (
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// messages lists what goes over each socket for the k-th step: its size over the
// control socket, with all of a small one, and the rest over the data sockets, or
// over the control socket where there are none.
func (t *Tracer) messages(ct *connTrace, c *host.Conn, d nccl.Dir, k int64) (out []nccl.WorkRequest) {
	end := t.end(ct, d)
	op := nccl.OpSend
	if d == nccl.Recv {
		op = nccl.OpRecv
	}
	add := func(sock int32, n units.Bytes) {
		w := t.work(ct, end, d, sock, int64(len(out))+ct.base, n)
		w.QPNum, w.Opcode = int64(sock), op
		out = append(out, w)
	}
	control, size := c.Shown()-1, c.StepBytes(k)
	shown := t.e.Net.Sockets.OnControl(size)
	add(control, shown)
	if size == 0 || shown > param.Header {
		return out
	}
	for q := range c.Parts(k) {
		add((c.PairOf(k, q))%c.Shown(), c.Part(k, q))
	}
	return out
}

// reads writes what a receiver's sockets did for the k-th step.
func (t *Tracer) reads(ct *connTrace, c *host.Conn, k int64) {
	s := ct.wire.step(k)
	from := s.begun + t.e.Net.Latency(c)
	var terms nccl.Terms
	terms.Rest(nccl.Data, s.arrived-from)
	messages := t.messages(ct, c, nccl.Recv, k)
	for i := range messages {
		messages[i].Terms = terms
		t.rec.Work(from-t.shift, max(s.arrived, from+1)-t.shift, &messages[i])
	}
}
