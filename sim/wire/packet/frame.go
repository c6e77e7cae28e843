package packet

import "github.com/simccl/simccl/sim/wire/packet/internal/frames"

type (
	frame = frames.Frame
	fifo  = frames.Ring
)

// Flags of a frame.
const (
	flagAck    uint8 = 1 << iota // an acknowledgement; psn is the next expected
	flagNack                     // with flagAck: the receiver lacks psn
	flagCE                       // congestion experienced, echoed on the acknowledgement
	flagPause                    // PFC: stop class psn
	flagResume                   // PFC: go on with class psn
	flagSack                     // with flagAck: frame aux came out of order
	flagLost                     // it will be lost at the end of the cable
	flagTrim                     // cut to its headers; with flagAck: frame aux came so
)
