package channels

import "github.com/simccl/simccl/coll"

// PairTransfers sets a rank's send and receive in a round of an alltoall with unequal counts, of elements of
// size bytes. A pair without elements has an empty message: ncclSend and ncclRecv of 0 elements take part in
// the group like others.
func PairTransfers(x *coll.Pairs, size int64, rank int32, send, recv *Transfer) {
	if to := send.Peer; to >= 0 {
		send.Bytes, send.Off, send.At = x.At(rank, to)*size, x.From(rank, to)*size, x.To(rank, to)*size
	}
	if from := recv.Peer; from >= 0 {
		recv.Bytes, recv.Off = x.At(from, rank)*size, x.To(from, rank)*size
	}
}
