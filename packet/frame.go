package packet

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/port"
)

type (
	frame = frames.Frame
	fifo  = frames.Ring
	queue = port.Queue
	link  = port.Link
)

// Short names of package frames' flags.
const (
	flagAck    = frames.Ack
	flagNack   = frames.Nack
	flagCE     = frames.CE
	flagPause  = frames.Pause
	flagResume = frames.Resume
	flagSack   = frames.Sack
	flagLost   = frames.Lost
	flagTrim   = frames.Trim
)
