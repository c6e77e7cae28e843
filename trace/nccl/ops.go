package nccl

import (
	"fmt"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Coll describes one rank's part in a collective.
type Coll struct {
	Func         string // NCCL's name: AllReduce, AllGather, …
	SeqNum       int64
	CommHash     string // "0x…"; a string because readers convert numbers to float64
	Count        int64
	Datatype     string // ncclFloat32, …
	Algorithm    string // RING, TREE, …
	Protocol     string // LL, LL128, SIMPLE
	NChannels    int
	Bytes        units.Bytes
	AlgBW, BusBW float64 // GB/s
	LimitingLink string
}

// Operation is the span of a rank's operation, and how long it waited for its kernel; 0: not known.
type Operation struct {
	Rank       int
	Start, End units.Time
	Launch     units.Time
}

// Collective writes one rank's COLL slice, inside the slice of its group.
func (r *Recorder) Collective(op Operation, c Coll) {
	rank := op.Rank
	id := r.group(op)
	if !r.on(DetailOp, MaskColl, rank) {
		return
	}
	a := append(r.args[:0],
		trace.Int("SeqNum", c.SeqNum), trace.Str("CommHash", c.CommHash), trace.Int("Rank", int64(rank)),
		trace.Int("Count", c.Count), trace.Str("Datatype", c.Datatype), trace.Str("Algorithm", c.Algorithm),
		trace.Str("Protocol", c.Protocol), trace.Int("nChannels", int64(c.NChannels)),
		trace.Int("bytes", int64(c.Bytes)), trace.Num("algbw_GBs", c.AlgBW), trace.Num("busbw_GBs", c.BusBW))
	if r.opt.Predicted > 0 {
		a = append(a, trace.Num("predicted_us", r.opt.Predicted.Micros()))
	}
	if c.LimitingLink != "" {
		a = append(a, trace.Str("limiting_link", c.LimitingLink))
	}
	if r.opt.Tuner != "" {
		a = append(a, trace.Str("tuner", r.opt.Tuner))
	}
	r.tinted(id, op.Start, op.End, "COLL", c.Func, trace.Calls, launched(a, op.Launch))
}

func launched(a []trace.Arg, launch units.Time) []trace.Arg {
	t := Terms{Launch: launch}
	return t.args(a)
}

// group writes the slice of an operation's group and returns its track, which is also the operation's.
func (r *Recorder) group(op Operation) trace.TrackID {
	if !r.On(DetailOp, op.Rank) {
		return 0
	}
	t := r.rank(op.Rank)
	lane := t.coll.Place(op.Start, op.End)
	id := r.thread(t, collTID+int64(lane), func() string { return fmt.Sprintf("collectives %d", lane) })
	if r.opt.Mask&MaskGroup != 0 {
		r.tinted(id, op.Start, op.End, "GROUP", "Group", trace.Calls,
			append(r.args[:0], trace.Int("groupId", int64(lane))))
	}
	return id
}

// Decision writes an instant with the tuner's choice, the runner-up, and the ratio of their predicted times.
func (r *Recorder) Decision(rank int, at units.Time, chosen, runnerUp string, ratio float64) {
	if !r.on(DetailOp, MaskColl, rank) {
		return
	}
	t := r.rank(rank)
	id := r.thread(t, collTID, func() string { return "collectives 0" })
	a := append(r.args[:0], trace.Str("chosen", chosen))
	if runnerUp != "" {
		a = append(a, trace.Str("runner_up", runnerUp), trace.Num("ratio", ratio))
	}
	r.event = trace.Event{Phase: trace.Instant, Track: id, Start: at, Cat: "sim", Name: "tuner", Args: a}
	r.sink.Emit(&r.event)
}

// P2P describes a Send or Recv of one rank.
type P2P struct {
	Send      bool
	CommHash  string
	Peer      int
	Count     int64
	Datatype  string
	NChannels int
}

// PointToPoint writes one rank's P2P slice, inside the slice of its group.
func (r *Recorder) PointToPoint(op Operation, p P2P) {
	r.group(op)
	if !r.on(DetailOp, MaskP2P, op.Rank) {
		return
	}
	t := r.rank(op.Rank)
	lane := t.p2p.Place(op.Start, op.End)
	id := r.thread(t, p2pTID+int64(lane), func() string { return fmt.Sprintf("P2P %d", lane) })
	name := "Recv"
	if p.Send {
		name = "Send"
	}
	a := append(r.args[:0], trace.Str("CommHash", p.CommHash),
		trace.Int("Rank", int64(op.Rank)), trace.Int("Peer", int64(p.Peer)), trace.Int("Count", p.Count),
		trace.Str("Datatype", p.Datatype), trace.Int("nChannels", int64(p.NChannels)))
	r.tinted(id, op.Start, op.End, "P2P", name, trace.Calls, launched(a, op.Launch))
}

// API is a call by which the program starts an operation.
type API struct {
	Cat      string // GROUP_API, COLL_API, P2P_API or KERNEL_LAUNCH
	Name     string // Group API, AllReduce, Send, KernelLaunch, …
	Count    int64
	Datatype string
	Root     int
	GroupID  int64
	Depth    int
	Captured bool
	Stream   string
}

var apiMask = map[string]uint32{"GROUP_API": MaskGroupAPI, "COLL_API": MaskCollAPI,
	"P2P_API": MaskP2PAPI, "KERNEL_LAUNCH": MaskKernelLaunch}

// Call writes an API slice; nested calls are on one host thread, outer first.
func (r *Recorder) Call(rank int, start, end units.Time, c API) {
	if !r.on(DetailOp, apiMask[c.Cat], rank) {
		return
	}
	t := r.rank(rank)
	id := r.sorted(t, apiTID, apiSort, func() string { return "API" })
	a := r.args[:0]
	captured := int64(0)
	if c.Captured {
		captured = 1
	}
	switch c.Cat {
	case "GROUP_API":
		a = append(a, trace.Int("groupApiId", c.GroupID), trace.Int("groupDepth", int64(c.Depth)))
	case "COLL_API":
		a = append(a, trace.Int("count", c.Count), trace.Str("datatype", c.Datatype),
			trace.Int("root", int64(c.Root)), trace.Int("GraphCaptured", captured),
			trace.Str("Stream", c.Stream))
	case "P2P_API":
		a = append(a, trace.Int("count", c.Count), trace.Str("datatype", c.Datatype),
			trace.Int("GraphCaptured", captured), trace.Str("Stream", c.Stream))
	case "KERNEL_LAUNCH":
		a = append(a, trace.Str("Stream", c.Stream))
	}
	r.tinted(id, start, end, c.Cat, c.Name, trace.Calls, a)
}

// Kernel writes the slice of one channel's thread block on the GPU, with the terms of its time if known.
func (r *Recorder) Kernel(rank, comm, channel int, start, end units.Time, terms *Terms) {
	if !r.on(DetailChannel, MaskKernelCh, rank) {
		return
	}
	t := r.rank(rank)
	tid := int64(kernelTID + perComm*comm + channel)
	id := r.thread(t, tid, func() string { return fmt.Sprintf("comm %d kernel ch %02d", comm, channel) })
	r.tinted(id, start, end, "GPU", "KernelCh", trace.Computes,
		terms.args(append(r.args[:0], trace.Int("Channel", int64(channel)))))
}

// Proxy writes an activity of the proxy progress thread other than steps: Idle, Sleep or Append.
func (r *Recorder) Proxy(rank int, start, end units.Time, name string) {
	if !r.on(DetailStep, MaskProxyCtrl, rank) {
		return
	}
	t := r.rank(rank)
	id := r.thread(t, proxyTID, func() string { return "proxy progress" })
	tint := trace.Plain
	if name == "Idle" || name == "Sleep" {
		tint = trace.Idles
	}
	r.tinted(id, start, end, "PROXY", name, tint, nil)
}
