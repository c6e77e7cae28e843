package decision

import (
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

var (
	funcs      = coll.Funcs()[:coll.NumCollFuncs]
	algorithms = coll.Algorithms()
	protocols  = coll.Protocols()
)

func words[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

// Choice is NCCL's decision for one operation and size, or the error code with which it refuses.
type Choice struct {
	Func  string      `json:"func"`
	Size  units.Bytes `json:"size"`
	Count int64       `json:"count"`
	Error int         `json:"error,omitempty"`
	*Chosen
}

// Chosen is the choice and its chunking.
type Chosen struct {
	NBytes       units.Bytes `json:"nBytes"`
	Algo         string      `json:"algo"`
	Proto        string      `json:"proto"`
	TimeUs       Num         `json:"timeUs"`
	NMaxChannels int         `json:"nMaxChannels"`
	NWarps       int         `json:"nWarps"`
	Threads      int         `json:"threads"`
	*Chunking
	*RCCLChoice
	Times [7][3]Num `json:"times"`
}

// Chunking is the division of an operation into channels and chunks; nil if the rules end before it.
type Chunking struct {
	ChannelLo int         `json:"channelLo"`
	ChannelHi int         `json:"channelHi"`
	NChannels int         `json:"nChannels"`
	ElemSize  units.Bytes `json:"elemSize"`
	Lo        *Part       `json:"lo,omitempty"`
	Mid       *Part       `json:"mid,omitempty"`
	Hi        *Part       `json:"hi,omitempty"`
	// Striped: all channels take chunks of lo, the whole operation, round-robin (CollNet).
	Striped bool `json:"striped,omitempty"`
}

// Part is the chunking of one channel's share: chunk, slice and loop sizes and the number of steps.
type Part struct {
	Count      int64       `json:"count"`
	ChunkSize  units.Bytes `json:"chunkSize"`
	SliceSize  units.Bytes `json:"sliceSize"`
	ChunkSteps int         `json:"chunkSteps"`
	SliceSteps int         `json:"sliceSteps"`
	NSteps     int         `json:"nsteps"`
	LoopSize   units.Bytes `json:"loopSize"`
}

func partOf(p plan.Part) *Part {
	if p == (plan.Part{}) {
		return nil
	}
	return &Part{p.Count, p.ChunkSize, p.SliceSize, p.ChunkSteps, p.SliceSteps, p.NSteps, p.LoopSize}
}

// Sizes of the selection section: powers of two from 8 B to 16 GiB.
const (
	firstSize units.Bytes = 8
	lastSize  units.Bytes = 16 << 30
)

// selectionOf evaluates the model for a float32 sum at every power of two, each in its own group: NCCL clears
// the planner after an operation that it refuses (group.cc:375), so a refusal does not affect the next time.
//
// If a choice has no chunking (nodes would divide CollNet's chunks differently) a note says so.
func selectionOf(c *comm.Comm) (out []Choice, notes []string, err error) {
	for _, f := range funcs {
		for size := firstSize; size <= lastSize; size *= 2 {
			count := int64(size / coll.Float32.Size())
			if f == coll.AllGather || f == coll.ReduceScatter {
				count /= int64(c.NRanks)
			}
			if count == 0 {
				continue
			}
			ch := Choice{Func: f.String(), Size: size, Count: count}
			chosen, note, err := choose(c, f, count)
			var no *tuning.NoChoiceError
			switch {
			case errors.As(err, &no):
				ch.Error = no.Code()
			case err != nil:
				return nil, nil, err
			}
			if note != "" && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
			ch.Chosen = chosen
			out = append(out, ch)
		}
	}
	return out, notes, nil
}

// choose makes one choice; note names what was left out of it.
func choose(c *comm.Comm, f coll.Func, count int64) (out *Chosen, note string, err error) {
	op := comm.Op{Func: f, Count: count, Type: coll.Float32, RedOp: coll.Sum}
	req, t, err := c.Request(op)
	if err != nil {
		return nil, "", err
	}
	out = &Chosen{NBytes: t.NBytes, Algo: t.Algo.String(), Proto: t.Proto.String(), TimeUs: Num(t.TimeUs),
		NMaxChannels: t.MaxChannels,
		NWarps:       t.Warps, Threads: t.Threads}
	for a := range t.Times {
		for p, v := range t.Times[a] {
			out.Times[a][p] = Num(v)
		}
	}
	out.RCCLChoice = rcclChoice(c, &t)
	s, err := build.Split(c.Layout, req)
	out.Chunking = &Chunking{}
	if errors.Is(err, plan.ErrUnsupported) {
		return out, "no chunking: " + err.Error(), nil
	}
	out.ChannelLo, out.ChannelHi, out.NChannels, out.ElemSize = s.ChannelLo, s.ChannelHi, s.NChannels,
		s.ElemSize
	out.Lo, out.Mid, out.Hi, out.Striped = partOf(s.Lo), partOf(s.Mid), partOf(s.Hi), s.Striped
	return out, "", err
}
