package port

import (
	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/sim/wire/packet/internal/frames"
	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
)

// StampPint lets a frame carry the highest utilisation of its path, encoded as a power of PintBase.
func (l *Link) StampPint(c *cc.Params, f *frames.Frame, seed uint64, at int64) {
	if f.Flags&frames.Ack == 0 && f.Flow >= 0 {
		u := l.Pint.Used(c, at/1000, l.Held(), l.Rate)
		f.Aux = max(f.Aux, c.Code(u, streams.Hash(seed, l.ID, streams.Code, l.Pint.Frames)))
	}
	l.Pint.Sent(at/1000, f.Size)
}
