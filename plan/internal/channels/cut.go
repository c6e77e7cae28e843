// Package channels divides operations over channels and into chunks, as NCCL's enqueue.cc does. Of
// collectives it has the share of each channel in a kernel's traffic, the chunks of a part, and the
// iterations of the loop over them; of sends and receives the order in which ranks send to each other
// (init.cc:768-838), and for each transfer the protocol, chunks and channels (enqueue.cc, proxy.cc). It knows
// counts and sizes, but neither programs nor connections.
package channels

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

func bad(field, format string, args ...any) error {
	return &plan.RequestError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// simpleGrain is the grain of Simple in bytes.
const simpleGrain = 512

// grain returns the granularity in bytes of a protocol's chunks (ncclProtoGrainSize, include/device.h:336).
func grain(c *connect.Layout, proto coll.Protocol) int64 {
	switch proto {
	case coll.LL:
		return 16
	case coll.LL128:
		return c.Rules.Plan.LL128Grain()
	}
	return simpleGrain
}

// holdsChunk returns an error for buffers whose FIFO steps are smaller than a grain: LL stores a flag with
// each word, LL128 one in the last word of each line.
func holdsChunk(c *connect.Layout, proto coll.Protocol) error {
	least := grain(c, proto)
	switch proto {
	case coll.LL:
		least *= 2
	case coll.LL128:
		data, line := c.Rules.Plan.LL128Line()
		least = least / data * line
	}
	if int64(c.BuffSizes[proto])/plan.FIFOSteps < least {
		return bad("Comm", "%v buffers of %d bytes hold no chunk; give at least %d", proto,
			c.BuffSizes[proto], least*plan.FIFOSteps)
	}
	return nil
}

// DivUp returns a ÷ b, rounded up.
func DivUp[T ~int64 | ~int](a, b T) T { return (a + b - 1) / b }

// AlignUp returns the least multiple of b that is not below a.
func AlignUp[T ~int64 | ~int](a, b T) T { return DivUp(a, b) * b }

// Rule says how an algorithm divides a channel's part into chunks.
type Rule struct {
	Channels                    int // most channels
	ChunkSteps, SliceSteps      int // FIFO steps of a chunk and of a slice
	StepsPerLoop, ChunksPerLoop int64
	// Shrink makes chunks smaller if only few would fill the part, so that the stages of the algorithm
	// overlap (enqueue.cc:2031-2100). nBytes is the size of the part over all ranks. nil: chunks keep their
	// size.
	Shrink func(chunk, nBytes int64) int64
}

// OneStep returns the rule of algorithms whose chunks are one FIFO step each.
func OneStep(channels int) Rule {
	return Rule{Channels: channels, ChunkSteps: 1, SliceSteps: 1, StepsPerLoop: 1, ChunksPerLoop: 1}
}

// Contiguous gives each channel one contiguous part of the operation: by the request's Cut or, without one,
// as NCCL divides the only task of a kernel.
func Contiguous(c *connect.Layout, r *plan.Request, rule Rule) (plan.Split, error) {
	if rule.Channels < 1 {
		return plan.Split{}, bad("Comm", "has no channels")
	}
	if c.Rules.Plan.EvenBytes && r.Cut == nil {
		return evenBytes(c, r, rule)
	}
	if err := holdsChunk(c, r.Proto); err != nil {
		return plan.Split{}, err
	}
	cut := r.Cut
	if cut == nil {
		task := TaskOf(c, r)
		s := NewSpread(c, rule.Channels, task.Traffic, min(r.Channels, rule.Channels))
		own := s.Place(task)
		cut = &own
	} else if err := cutHolds(cut, r, rule.Channels); err != nil {
		return plan.Split{}, err
	}
	_, es := r.Elements()
	s := plan.Split{ElemSize: es, NChannels: cut.NChannels, ChannelLo: cut.ChannelLo,
		ChannelHi: cut.ChannelHi()}
	parts := int64(es)
	if r.Func == coll.AllGather || r.Func == coll.ReduceScatter {
		parts *= int64(c.NRanks)
	}
	s.Lo = rule.part(c, r.Proto, cut.Lo, cut.Lo*parts)
	if cut.NChannels > 2 {
		s.Mid = rule.part(c, r.Proto, cut.Mid, cut.Mid*parts)
	}
	if cut.NChannels > 1 {
		s.Hi = rule.part(c, r.Proto, cut.Hi, cut.Hi*parts)
	}
	return s, nil
}

// cutHolds returns an error for a cut that does not fit the operation or the communicator.
func cutHolds(cut *plan.Cut, r *plan.Request, channels int) error {
	count, _ := r.Elements()
	switch {
	case cut.ChannelLo < 0 || cut.NChannels < 1 || cut.ChannelHi() >= channels:
		return bad("Cut", "%d channels from channel %d on, the communicator has %d", cut.NChannels,
			cut.ChannelLo, channels)
	case cut.Lo < 0 || cut.Mid < 0 || cut.Hi < 0 || cut.Count() != count:
		return bad("Cut", "the channels do %d elements of %d", cut.Count(), count)
	}
	return nil
}

// part computes the chunks of a channel's part of count elements; nBytes is its size over all ranks.
func (rule *Rule) part(c *connect.Layout, proto coll.Protocol, count, nBytes int64) plan.Part {
	chunk := int64(c.BuffSizes[proto]) / plan.FIFOSteps * int64(rule.ChunkSteps)
	switch proto {
	case coll.LL: // half of a line is flags
		chunk /= 2
	case coll.LL128: // the last 8 bytes of a line are flags
		data, line := c.Rules.Plan.LL128Line()
		chunk = chunk / (line / 8) * (data / 8)
	}
	if rule.Shrink != nil {
		chunk = rule.Shrink(chunk, nBytes)
	}
	if !c.Rules.Plan.EvenBytes {
		chunk = chunk / grain(c, proto) * grain(c, proto)
	}
	loop := rule.ChunksPerLoop * chunk
	return plan.Part{
		Count: count, ChunkSteps: rule.ChunkSteps, SliceSteps: rule.SliceSteps,
		NSteps:    int(int32(rule.StepsPerLoop * DivUp(nBytes, max(loop, 1)) * int64(rule.ChunkSteps))),
		ChunkSize: units.Bytes(chunk),
		SliceSize: units.Bytes(chunk / int64(rule.ChunkSteps) * int64(rule.SliceSteps)),
		LoopSize:  units.Bytes(loop),
	}
}

// Tier is an entry of a table of chunk sizes, {times, size}: parts smaller than times·heads·chunk bytes use
// chunks of at most size.
type Tier [2]int64

// ShrinkTiers applies all tiers whose condition holds, in order, to a chunk size.
func ShrinkTiers(chunk, nBytes, heads int64, tiers []Tier) int64 {
	for _, t := range tiers {
		if nBytes < t[0]*heads*chunk && chunk > t[1] {
			chunk = t[1]
		}
	}
	return chunk
}

// Stripes distributes the operation by chunks: every channel takes the next chunk (of every head)
// round-robin, on as many channels as the cost model allows, whatever the size (enqueue.cc:568-597). chunk
// returns NCCL's chunk size for nBytes over all ranks, given the FIFO step.
func Stripes(c *connect.Layout, r *plan.Request, channels, heads int,
	chunk func(step, nBytes, perLoop int64) int64) (plan.Split, error) {
	n := min(r.Channels, c.NChannels, channels)
	if n < 1 {
		return plan.Split{}, bad("Comm", "has no channels")
	}
	if err := holdsChunk(c, coll.Simple); err != nil {
		return plan.Split{}, err
	}
	step := int64(c.BuffSizes[coll.Simple]) / plan.FIFOSteps
	count, es := r.Elements()
	nBytes := count * int64(es)
	if r.Func != coll.AllReduce {
		nBytes *= int64(c.NRanks)
	}
	perLoop := int64(n) * int64(heads) // chunks of one iteration
	size := chunk(step, nBytes, perLoop) / simpleGrain * simpleGrain
	if size < simpleGrain {
		return plan.Split{}, bad("Comm", "chunks of NVLS are of %d bytes; give at least %d", c.NVLSChunkSize,
			simpleGrain)
	}
	loop := perLoop * size
	return plan.Split{ChannelHi: n - 1, NChannels: n, ElemSize: es, Striped: true, Lo: plan.Part{
		Count: count, ChunkSize: units.Bytes(size), SliceSize: units.Bytes(size), ChunkSteps: 1,
		SliceSteps: 1,
		NSteps:     int(int32(DivUp(nBytes, loop))), LoopSize: units.Bytes(loop)}}, nil
}

// Halve halves chunks, down to limit, while the operation would have fewer than few of them.
func Halve(chunk, nBytes, perLoop, few, limit int64) int64 {
	for nBytes/(perLoop*chunk) < few && chunk > limit {
		chunk /= 2
	}
	return chunk
}
