package kineto

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload/internal/torch"
)

// Timed is a collective operation of a recording with the shortest of its kernels: one that waited least for
// other ranks.
type Timed struct {
	Func  coll.Func
	Type  coll.DataType
	Count int64 // NCCL's count argument, in elements
	Ranks int   // of its communicator
	Least int64 // ns
}

// Timed are the operations whose kernels have the arguments that PyTorch 2.3 and later record: by function,
// type, ranks and count. Operations of a single rank, of two peers, and with unequal parts are left out.
func (t *Trace) Timed() (out []Timed) {
	for i := range t.Ops {
		o := &t.Ops[i]
		if o.Class != NCCL || o.Comm < 1 || o.Dur < 1 {
			continue
		}
		c := &t.Comms[o.Comm-1]
		size := int64(c.Size)
		if c.Group >= 0 && t.Groups[c.Group].Size > 0 {
			size = int64(t.Groups[c.Group].Size)
		}
		call, ok := torch.Translate(c.Name, c.Type, c.In, c.Out, size, c.Root, c.InSplit)
		if !ok || size < 2 || call.Count < 1 || call.Splits != nil || call.Func == coll.Send ||
			call.Func == coll.Recv {
			continue
		}
		v := Timed{call.Func, call.Type, call.Count, int(size), o.Dur}
		k := slices.IndexFunc(out, func(x Timed) bool {
			return x.Func == v.Func && x.Type == v.Type && x.Count == v.Count && x.Ranks == v.Ranks
		})
		if k < 0 {
			out = append(out, v)
		} else {
			out[k].Least = min(out[k].Least, v.Least)
		}
	}
	return out
}
