package port

import "github.com/simccl/simccl/packet/internal/frames"

// Trim cuts a data frame to its header, which travels in the control class, if its queue would exceed most
// bytes with it. It reports whether it did.
func (l *Link) Trim(f *frames.Frame, most int64, header uint16) bool {
	if f.Flow < 0 || f.Flags&frames.Ack != 0 || l.Queues[f.Class].Bytes+int64(f.Size) <= most {
		return false
	}
	f.Size, f.Class = header, 0
	f.Flags |= frames.Trim
	l.Stats.Trims++
	return true
}
