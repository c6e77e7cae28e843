package sym

import "github.com/simccl/simccl/coll"

// Copies is a collective executed by copy engines, without kernel or blocks. Between barriers each rank
// copies from its own buffer into those of its peers (ce_coll.cc).
type Copies struct {
	Func coll.Func
	Root int32
	// Each is the bytes of one copy, Peers the number of copies of the busiest rank to others; Own: it also
	// copies within its own memory.
	Each  int64
	Peers int
	Own   bool
	// Batch: the copies form one batch, which the engines share; otherwise they follow each other, as in a
	// CUDA graph.
	Batch    bool
	Barriers int
}

// Copies returns how NCCL executes a collective by copy engines, and whether it does: with NCCL_CTA_POLICY=2,
// and from 2.29 on always for large AllGathers of sm_100 GPUs (enqueue.cc:2580; enqueue.cc:2966 of
// v2.29.7-1). graph says that the operation is captured in a CUDA graph. It assumes driver 12.8 or newer,
// which batches need.
func (c *Comm) Copies(t Task, root int32, inPlace, graph bool) (Copies, bool) {
	ok, _ := c.Supported()
	n := c.Ranks
	p := Copies{Func: t.Func, Root: root, Each: t.Count * int64(t.Type.Size()), Peers: n - 1, Own: !inPlace,
		Batch: !graph}
	switch t.Func {
	case coll.AllGather, coll.Scatter:
	case coll.AllToAll: // copies its own part in any case
		p.Own = true
	case coll.Gather: // all ranks but the root copy once
		p.Peers, p.Own = 1, false
	default:
		return Copies{}, false
	}
	r := c.Rules
	windows := t.Windows == Both || ok && !r.CopySend && t.Windows == RecvWindow
	forced := ok && r.CopyGather > 0 && t.Func == coll.AllGather &&
		t.Count > c.Params.CopyGather.Or(r.CopyGather) && c.SM >= 100 && c.DirectNVLink
	if !ok || !r.CopyEngines || !windows || c.Params.CTAPolicy != 2 && !forced {
		return Copies{}, false
	}
	p.Barriers = 2
	copies := p.Peers
	if p.Own {
		copies++
	}
	if copies > r.CopySync && p.Each*int64(copies) >= r.CopySyncBytes && !(r.CopyRounds && p.Batch) {
		p.Barriers += (copies - 1) / r.CopySync
	}
	return p, true
}
