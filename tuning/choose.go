package tuning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// maxDirectArity is the limit of CollNet (include/device.h NCCL_MAX_DIRECT_ARITY).
const maxDirectArity = 7

// Op is one operation to choose for. Count is NCCL's: elements that a rank
// sends for AllGather, receives for ReduceScatter, elements of the buffer
// otherwise.
type Op struct {
	Func  coll.Func
	Count int64
	Type  coll.DataType
	RedOp coll.RedOp
	// Pipe is the number of operations per channel that one group holds; 0
	// counts as 1.
	Pipe int
	// Registered: both buffers are, or the operation is captured in a CUDA graph. Only
	// a tuner plugin asks.
	Registered bool
}

// NBytes is the size that the model computes with (enqueue.h:36): for
// AllGather and ReduceScatter that of the gathered buffer.
func (o Op) NBytes(nRanks int) units.Bytes {
	n := units.Bytes(o.Count) * o.Type.Size()
	if gathers(o.Func) {
		n *= units.Bytes(nRanks)
	}
	return n
}

// Off marks a cell of Choice.Times that cannot be taken.
const Off float32 = -1

// Times is the predicted time in microseconds per algorithm and protocol, Off
// where it is not available.
type Times [nAlgos][nProtos]float32

// Choice is what NCCL takes for an operation.
type Choice struct {
	Op     Op
	NBytes units.Bytes
	Algo   coll.Algorithm
	Proto  coll.Protocol
	TimeUs float32 // of the winner, the model's
	Times  Times
	// MaxChannels is the upper bound that the launch gets; how many run is
	// decided where the work is split.
	MaxChannels int
	// Direct is the way by which RCCL does the operation in place of Algo, "" for none; DDA: its kernels that
	// read the memory of all GPUs come before both.
	Direct string
	DDA    bool
	// Pipelined: RCCL's reduction is.
	Pipelined bool
	// Overruled are the rules of RCCL by which Algo and Proto are others than those of the least time.
	// nil for none.
	Overruled *[]Reason
	// Steered: a tuner plugin chose.
	Steered bool
	Warps   int
	Threads int
}

// ErrOneRank is the answer for a communicator of one rank: NCCL chooses
// nothing there, it copies.
var ErrOneRank = errors.New("tuning: one rank: NCCL copies and chooses nothing")

// NoChoiceError says that no algorithm and protocol is left, NCCL's
// ncclInvalidUsage where a list did it, else ncclInternalError.
type NoChoiceError struct {
	Op          Op
	Algo, Proto units.Opt[string] // the lists in force
}

// Code is NCCL's result: 5 (invalid usage) or 3 (internal error).
func (e *NoChoiceError) Code() int {
	if e.Algo.Set || e.Proto.Set {
		return 5
	}
	return 3
}

// Error names operation and lists.
func (e *NoChoiceError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no algorithm and protocol left for %s of %s", e.Op.Func, e.Op.Type)
	if e.Algo.Set {
		fmt.Fprintf(&b, "; NCCL_ALGO=%s", e.Algo.Value)
	}
	if e.Proto.Set {
		fmt.Fprintf(&b, "; NCCL_PROTO=%s", e.Proto.Value)
	}
	return b.String()
}

// Choose returns what NCCL takes. Errors: ErrOneRank, *NoChoiceError, or an
// operation that the model does not cover.
func (m *Model) Choose(o Op) (Choice, error) {
	c := Choice{Op: o}
	if o.Func.IsP2P() {
		return c, fmt.Errorf("tuning: %s is no collective of the cost model", o.Func)
	}
	if m.In.NRanks == 1 {
		return c, ErrOneRank
	}
	c.NBytes = o.NBytes(m.In.NRanks)
	c.Times = m.times(o, uint64(c.NBytes))
	own := c.Times
	channels := m.steer(&c)
	best, found := m.tab.LongestUs, false
	for a := range c.Times {
		for p, t := range c.Times[a] {
			if t >= 0 && t < best {
				c.Algo, c.Proto, best, found = coll.Algorithm(a), coll.Protocol(p), t, true
			}
		}
	}
	if !found && m.tab.ListsOfAll {
		best, found = m.backup(&c)
	}
	if !found && m.tab.RingRemains && c.Times.any() {
		c.Algo, c.Proto, found = coll.Ring, coll.Simple, true
	}
	if !found {
		return c, &NoChoiceError{Op: o, Algo: m.Params.Algo, Proto: m.Params.Proto}
	}
	c.TimeUs = best
	if m.Params.Plugin != nil && c.Times != own { // it made a choice free: the model's times are kept
		c.Steered, c.Times = true, own
		c.TimeUs = own[c.Algo][c.Proto]
	}
	if m.cost != nil {
		m.amdAfter(&c)
	} else {
		m.launch(&c)
	}
	if channels > 0 {
		c.MaxChannels = min(channels, m.most(c.Algo))
	}
	return c, nil
}

// Force returns the launch for an algorithm and protocol that a user names,
// whether or not the model would take it.
func (m *Model) Force(o Op, a coll.Algorithm, p coll.Protocol) Choice {
	c := Choice{Op: o, NBytes: o.NBytes(m.In.NRanks), Algo: a, Proto: p}
	c.Times = m.times(o, uint64(c.NBytes))
	c.TimeUs = c.Times[a][p]
	if m.cost != nil {
		m.amdLaunch(&c)
	} else {
		m.launch(&c)
	}
	return c
}

// backup takes Ring with the bandwidth that a list of algorithms took from it, where
// nothing else is left (enqueue.cc:1604 of v2.22.3).
func (m *Model) backup(c *Choice) (float32, bool) {
	best, found := m.tab.LongestUs, false
	f := c.Op.Func
	for p := range coll.NumProtocols {
		bw := m.ringKept(f, p)
		if bw == 0 {
			continue
		}
		if t := m.time(bw, c.Op, coll.Ring, p, uint64(c.NBytes)); t < best {
			c.Algo, c.Proto, best, found = coll.Ring, p, t, true
		}
	}
	return best, found
}

// ringKept is the bandwidth of Ring that a list of algorithms does not take away, nor
// before 2.22.3 one of protocols.
func (m *Model) ringKept(f coll.Func, p coll.Protocol) float32 {
	on := m.EnabledProtos[f][p]
	if !m.tab.KeepAllRings && (on == 0 || on == 2 && len(m.ll128Unsafe(coll.Ring)) > 0) {
		return 0
	}
	return m.Raw[f][coll.Ring][p]
}

func (m *Model) times(o Op, nBytes uint64) Times {
	var t Times
	cells, amd := &m.Bandwidth[o.Func], m.cost != nil
	for a := range coll.NumAlgorithms {
		avail := m.allows(o, a)
		for p := range coll.NumProtocols {
			t[a][p] = Off
			bw := cells[a][p]
			if !avail || bw == 0 || amd && m.amdBarred(o, a, p).Rule != "" {
				continue
			}
			t[a][p] = m.time(bw, o, a, p, nBytes)
		}
	}
	return t
}

func (t *Times) any() bool {
	for a := range t {
		for _, v := range t[a] {
			if v >= 0 {
				return true
			}
		}
	}
	return false
}

// Terms are what a cell's time is made of at one size.
type Terms struct {
	LatencyUs float32 // with Plateau in it
	GBps      float32 // with Correction in it
	// Correction is the share of its bandwidth that a tree all-reduce reaches
	// at this size, 1 for all else; Plateau stretches the latency of large
	// Simple ring all-reduces between nodes, 1 for all else.
	Correction float32
	Plateau    float64
}

// Terms returns the terms of a cell, whether or not it is on (tuning.cc:585).
func (m *Model) Terms(o Op, a coll.Algorithm, p coll.Protocol) Terms {
	return m.terms(m.Raw[o.Func][a][p], o, a, p, uint64(o.NBytes(m.In.NRanks)))
}

func (m *Model) terms(bw float32, o Op, a coll.Algorithm, p coll.Protocol, nBytes uint64) Terms {
	t := Terms{LatencyUs: m.Latency[o.Func][a][p], GBps: bw, Correction: 1, Plateau: 1}
	lg := log2(nBytes >> 6)
	if m.cost != nil {
		t.Correction = m.factor(a, p, lg)
		t.GBps *= t.Correction
		return t
	}
	if m.tab.CorrectLeast {
		lg = max(lg, 0)
	}
	if lg >= 0 && lg < m.corrected(o.Func, a) {
		t.Correction = m.tab.TreeCorrection[p][lg]
		t.GBps *= t.Correction
	}
	if o.Func != coll.AllReduce {
		return t
	}
	if a == coll.Ring && p == coll.Simple && m.In.NNodes > 1 && nBytes/m.plateau() >= 64 {
		t.Plateau = m.plateauFactor()
		t.LatencyUs = float32(float64(t.LatencyUs) * t.Plateau)
	}
	return t
}

// corrected is how many entries of the table of corrections hold for an algorithm.
func (m *Model) corrected(f coll.Func, a coll.Algorithm) int {
	n := len(m.tab.TreeCorrection[0])
	switch {
	case a == coll.Tree && (f == coll.AllReduce || m.tab.CorrectAllTrees):
		return n - 1
	case a == coll.NVLSTree && f == coll.AllReduce && m.tab.NVLSTreeSM > 0 &&
		m.In.MinSM >= m.tab.NVLSTreeSM && m.In.CPUArch == archX86:
		return n
	}
	return 0
}

// time is the model's time in microseconds of a cell with bandwidth bw
// (tuning.cc:597-601).
func (m *Model) time(bw float32, o Op, a coll.Algorithm, p coll.Protocol, nBytes uint64) float32 {
	terms := m.terms(bw, o, a, p, nBytes)
	count := max(o.Pipe, 1)
	if a != coll.Ring { // a tree pipelines a batch (tuning.cc:598)
		count = 1 + (count-1)/maxBatchColls
	}
	t := float32(terms.LatencyUs*float32(count)) + float32(float32(nBytes)/float32(1000*terms.GBps))
	// Rings of more than 8 ranks lose fp8 precision: last resort
	// (enqueue.cc:1811).
	if (o.Type == coll.Float8e4m3 || o.Type == coll.Float8e5m2) && a == coll.Ring && m.In.NRanks > 8 &&
		o.Func != coll.AllGather && o.Func != coll.Broadcast {
		t *= 1024
	}
	return t
}

// maxBatchColls is NCCL_MAX_DEV_WORK_BATCH_COLLS: 1024 bytes of 96-byte works
// (include/device.h:363).
const maxBatchColls = 10

// plateau is the number of bytes that gives every channel of every rank one.
func (m *Model) plateau() uint64 { return uint64(cmp.Or(m.In.Raised, m.In.Channels) * m.In.NRanks) }

// plateauFactor stretches ring latency between nodes for large operations.
func (m *Model) plateauFactor() float64 {
	if m.In.MinSM < 80 {
		return 1.9
	}
	return 1.4
}

// collNetFor reports whether the network can reduce o (enqueue.cc:1754).
func (m *Model) collNetFor(o Op) bool {
	c := &m.In.CollNet
	return c.Enabled && (!o.Func.Reduces() || c.Reduces == nil || c.Reduces(netOp(o.RedOp), o.Type))
}

// allows reports whether an operation may take an algorithm, for any
// bandwidth (enqueue.cc:1797-1806).
func (m *Model) allows(o Op, a coll.Algorithm) bool {
	in := &m.In
	switch a {
	case coll.CollNetDirect:
		return m.collNetFor(o) && in.MaxLocalRanks <= maxDirectArity+1
	case coll.CollNetChain:
		most := m.tab.CollNetChainRanks
		return m.collNetFor(o) && (most == 0 || in.MaxLocalRanks <= most)
	case coll.NVLS, coll.NVLSTree:
		return in.NVLS && m.nvlsReduces(o) &&
			(o.Func == coll.AllReduce || m.nvlsGathers()) &&
			(a == coll.NVLSTree || in.NNodes == 1 || m.collNetFor(o))
	case coll.PAT:
		return o.Func != coll.ReduceScatter || o.RedOp != coll.Avg
	}
	return true
}

// nvlsReduces reports whether an NVSwitch does what an operation asks.
func (m *Model) nvlsReduces(o Op) bool {
	if o.Func == coll.AllGather {
		return !m.tab.NVLSNoAllGather
	}
	return NVLSReduces(o.RedOp, o.Type)
}

// nvlsGathers reports whether NVLS gathers and scatters on so many ranks and nodes.
func (m *Model) nvlsGathers() bool {
	return m.In.LocalRanks <= m.tab.NVLSGatherRanks && (m.In.NNodes == 1 || m.tab.NVLSGathersInter)
}

// barred words why allows says no.
func (m *Model) barred(o Op, a coll.Algorithm) Reason {
	in := &m.In
	switch {
	case m.allows(o, a):
		return Reason{}
	case a == coll.PAT:
		return Reason{Rule: "PAT ReduceScatter cannot average", At: rules.AtPATAverage}
	case a == coll.NVLS || a == coll.NVLSTree:
		return m.nvlsBarred(o)
	case !in.CollNet.Enabled:
		return m.collNetOff(a)
	case !m.collNetFor(o):
		return Reason{Rule: fmt.Sprintf("the CollNet plugin cannot %s %s", o.RedOp, o.Type),
			At: rules.AtCollNetReduces}
	}
	at := rules.AtCollNetDirectRanks
	if a == coll.CollNetChain {
		at = rules.AtCollNetChainRanks
	}
	return Reason{Rule: fmt.Sprintf("CollNet is for 8 ranks a node and there are %d", in.MaxLocalRanks),
		At: at}
}

func (m *Model) nvlsBarred(o Op) Reason {
	in := &m.In
	switch {
	case !in.NVLS && in.NVLSOff.Rule != "":
		return in.NVLSOff
	case !in.NVLS:
		return Reason{Rule: "NVLink multicast is not available", At: rules.AtNVLSReduces}
	case o.Func == coll.AllGather && m.tab.NVLSNoAllGather:
		return Reason{Rule: "NCCL " + m.Params.Rules.Version() + " takes an AllGather for a reduction of " +
			"bytes, which the NVSwitch cannot do", At: rules.AtNVLSReduces}
	case o.Func != coll.AllGather && !NVLSReduces(o.RedOp, o.Type):
		return Reason{Rule: fmt.Sprintf("the NVSwitch cannot %s %s", o.RedOp, o.Type),
			At: rules.AtNVLSReduces}
	case o.Func != coll.AllReduce && in.LocalRanks > m.tab.NVLSGatherRanks:
		return Reason{Rule: fmt.Sprintf("NVLS %s is for %d ranks a node and there are %d", o.Func,
			m.tab.NVLSGatherRanks, in.LocalRanks), At: rules.AtNVLSGatherRanks}
	case o.Func != coll.AllReduce && !m.nvlsGathers():
		return Reason{Rule: fmt.Sprintf("NVLS %s is for one node in NCCL %s", o.Func,
			m.Params.Rules.Version()), At: rules.AtNVLSGatherNodes}
	}
	return m.collNetOff(coll.NVLS)
}

// netOp is the operation that a network gets for an average: a sum of scaled
// inputs (enqueue.cc:1757).
func netOp(r coll.RedOp) coll.RedOp {
	if r == coll.Avg {
		return coll.Sum
	}
	return r
}

// NVLSReduces reports whether an NVSwitch reduces that type with that operation
// (device.h ncclNvlsSupported).
func NVLSReduces(r coll.RedOp, t coll.DataType) bool {
	switch t {
	case coll.Int32, coll.Uint32, coll.Int64, coll.Uint64, coll.Float16, coll.BFloat16:
		return r == coll.Sum || r == coll.Min || r == coll.Max
	case coll.Float32, coll.Float64:
		return r == coll.Sum
	}
	return false
}

// launch finds channels and threads for the algorithm of c
// (enqueue.cc:1860-1911).
func (m *Model) launch(c *Choice) {
	n := uint64(c.NBytes)
	nc, nt := int32(m.In.Channels), int32(m.MaxThreads[c.Algo][c.Proto])
	per := int32(m.ThreadThreshold[c.Algo][c.Proto])
	// NCCL multiplies ints and compares with a size_t.
	short := func() bool { return n < uint64(int64(nc*nt*per)) }
	switch c.Algo {
	case coll.CollNetDirect:
		nc = m.collNetChannels(n, nc, nt, per)
	case coll.NVLS, coll.NVLSTree:
		nc = int32(m.In.NVLSChannels)
		if m.In.NNodes > 1 && c.Algo == coll.NVLS && m.tab.NVLSFewest {
			nc = min(nc, int32(m.In.Channels))
		}
	default:
		for short() && nc >= 2 {
			nc--
		}
		for short() && nt%128 == 0 && nt > 0 {
			nt /= 2
		}
	}
	switch {
	case c.Proto == coll.Simple && c.Algo == coll.Ring:
		nt += warp // one more to synchronise
	case c.Proto == coll.Simple && c.Algo == coll.Tree:
		nt += 4 * warp // part send up and part down (enqueue.cc:1612 of v2.21.5)
	}
	nt = max(nt, 3*warp)
	if c.Algo == coll.Tree && !m.tab.TreeThreads || c.Algo == coll.PAT {
		nt = maxThreads
	}
	c.MaxChannels, c.Warps = int(nc), int(nt/warp)
	c.Threads = c.Warps * warp
}

// collNetChannels drops channels down to 16, 8, 4, 2, 1, relaxing the
// threshold in between (enqueue.cc:1863-1875).
func (m *Model) collNetChannels(n uint64, nc, nt, per int32) int32 {
	heads := int32(cmp.Or(m.In.CollNet.DirectHeads, m.In.CollNet.Heads))
	for stop, short := int32(16), true; stop >= 1 && short; stop /= 2 {
		for {
			short = n < uint64(int64(nc*nt*heads*per))
			if !short || nc <= stop {
				break
			}
			if nc == stop+stop/2 {
				per /= 2
			}
			nc--
		}
	}
	return nc
}

// WhyOff lists why a cell is off for an operation, the first reason first; nil
// where it is on. A cell that NCCL does not have at all has that reason alone.
func (m *Model) WhyOff(o Op, a coll.Algorithm, p coll.Protocol) []Reason {
	if m.cost != nil && a != coll.Tree && a != coll.Ring && a != coll.PAT {
		return []Reason{{Rule: "RCCL searches no graph for it", At: rules.AtNoGraph,
			Source: m.Params.Rules.Cite(rules.AtNoGraph)}}
	}
	rs := append([]Reason(nil), m.off[o.Func][a][p]...)
	if m.absent(o.Func, a, p).Rule == "" {
		if r := m.barred(o, a); r.Rule != "" && !slices.Contains(rs, r) {
			rs = append(rs, r)
		}
		if m.cost != nil {
			if r := m.amdBarred(o, a, p); r.Rule != "" {
				rs = append(rs, r)
			}
		}
	}
	for i := range rs {
		rs[i].Source = m.Params.Rules.Cite(rs[i].At)
	}
	return rs
}
