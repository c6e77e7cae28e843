package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// AckHold is the class whose pause holds an acknowledgement back at its host; classes are those of
// priorities.
func AckHold(c *spec.Config, f *frames.Frame, classes *[8]uint8) uint8 {
	switch p := c.AckHold; {
	case p < 0 || c.CC.CNPBytes > 0 && f.Flags&frames.CE != 0:
		return 0
	case p > 0:
		return classes[p]
	}
	return f.Class
}
