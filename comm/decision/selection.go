package decision

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
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

// Choice is what NCCL does for one operation and size, or the error code of
// one that it refuses.
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
	ChannelLo    int         `json:"channelLo"`
	ChannelHi    int         `json:"channelHi"`
	NChannels    int         `json:"nChannels"`
	ElemSize     units.Bytes `json:"elemSize"`
	Lo           *Part       `json:"lo,omitempty"`
	Mid          *Part       `json:"mid,omitempty"`
	Hi           *Part       `json:"hi,omitempty"`
	Times        [7][3]Num   `json:"times"`
}

// Part is how one channel cuts its share.
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

// selectionOf asks the model for a float32 sum at every power of two, one
// after another as one program would: after refused operations NCCL's planner
// still counts them, and the next time it gives is that of a fuller group
// (tuning.PipeAfter).
func selectionOf(c *comm.Comm) ([]Choice, error) {
	var out []Choice
	refused := 0
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
			chosen, err := choose(c, f, count, refused)
			var no *tuning.NoChoiceError
			switch {
			case errors.As(err, &no):
				ch.Error = no.Code()
				refused++
			case err != nil:
				return nil, err
			default:
				refused = 0
			}
			ch.Chosen = chosen
			out = append(out, ch)
		}
	}
	return out, nil
}

func choose(c *comm.Comm, f coll.Func, count int64, refused int) (*Chosen, error) {
	op := comm.Op{Func: f, Count: count, Type: coll.Float32, RedOp: coll.Sum}
	req, t, err := c.Request(op)
	if err != nil {
		return nil, err
	}
	times := t.Times
	if refused > 0 {
		o := t.Op
		o.Pipe = tuning.PipeAfter(refused, c.NChannels)
		if t, err = c.Choose(o); err != nil {
			return nil, err
		}
		req.Algo, req.Proto, req.Channels, req.Warps = t.Algo, t.Proto, t.MaxChannels, t.Warps
	}
	s, err := plan.Schedule(c.Comm, req)
	if err != nil {
		return nil, err
	}
	out := &Chosen{NBytes: t.NBytes, Algo: t.Algo.String(), Proto: t.Proto.String(), TimeUs: Num(t.TimeUs), NMaxChannels: t.MaxChannels,
		NWarps: t.Warps, Threads: t.Threads, ChannelLo: s.ChannelLo, ChannelHi: s.ChannelHi, NChannels: s.NChannels, ElemSize: s.ElemSize,
		Lo: partOf(s.Lo), Mid: partOf(s.Mid), Hi: partOf(s.Hi)}
	for a := range times {
		for p, v := range times[a] {
			out.Times[a][p] = Num(v)
		}
	}
	return out, nil
}
