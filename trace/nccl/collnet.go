package nccl

import (
	"fmt"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// NoPeer is the Peer of a step that a head sends to the network that reduces.
const NoPeer = -1

// NetQP declares the queue pairs of a port to the reduction tree of the network, as one lane, and returns its
// handle.
func (r *Recorder) NetQP(nic, number int) int {
	t := &r.nics[nic]
	t.qps = append(t.qps, qpTracks{number: number, name: fmt.Sprintf("QP %d ↔ the network's tree", number)})
	return len(t.qps) - 1
}

// Reduction is one collective executed in the network.
type Reduction struct {
	Tree  int    // number of its tree
	Root  string // switch at the tree's root; may be empty
	Func  string
	ID    int64 // number within the operation
	Nodes int
	Bytes units.Bytes // bytes on the fullest link
	Last  int         // the rank that posted it last
	Terms Terms
}

// Reduction writes the time of a network collective on the track of its tree.
func (r *Recorder) Reduction(start, end units.Time, x Reduction) {
	if !r.Wanted(DetailStep) {
		return
	}
	name := fmt.Sprintf("tree %d", x.Tree)
	if x.Root != "" {
		name += " · " + x.Root
	}
	tid := int64(x.Tree + 1)
	id := r.sink.Track(trace.Track{Process: NetworkPID, ProcessName: "network", ProcessSort: 210000,
		Thread: tid, ThreadSort: tid, ThreadName: name})
	a := append(r.args[:0], trace.Str("func", x.Func), trace.Int("id", x.ID),
		trace.Int("nodes", int64(x.Nodes)),
		trace.Int("bytes", int64(x.Bytes)), trace.Int("last", int64(x.Last)))
	r.slice(id, start, end, "network", "Reduction", x.Terms.args(a))
}
