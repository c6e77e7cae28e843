package plan

import "github.com/simccl/simccl/units"

// Message is one send of a group with its receive.
type Message struct {
	Src, Dst int32
	Bytes    units.Bytes
	// SrcOff and DstOff are its offsets in the sender's input and the receiver's output of call Task, as the
	// calls of a group are numbered; the two ends may belong to different calls.
	SrcOff, DstOff   units.Bytes
	SrcTask, DstTask int32
}

// Exchange is a rank's part in one round of a group's messages: it sends one and receives one.
type Exchange struct {
	Round      int32
	Send, Recv int32 // indexes of messages; -1: none
	// Batch is the batch of each part of the exchange on its channel; every channel numbers its batches from
	// 0. The exchanges of a batch run at the same time.
	Batch []int32
}
