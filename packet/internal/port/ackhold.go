package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// AckHold returns the class whose PFC pause holds an acknowledgement at its host: Config.AckHold, the
// acknowledgement's own, or class 0 (never paused) for a CNP or a negative AckHold. classes maps priorities
// to classes.
func AckHold(c *spec.Config, f *frames.Frame, classes *[8]uint8) uint8 {
	switch p := c.AckHold; {
	case p < 0 || c.CC.CNPBytes > 0 && f.Flags&frames.CE != 0:
		return 0
	case p > 0:
		return classes[p]
	}
	return f.Class
}
