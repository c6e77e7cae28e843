package real

import (
	"errors"

	"github.com/simccl/simccl/real/internal/bootstrap"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/nccl"
	"github.com/simccl/simccl/real/internal/sock"
	"github.com/simccl/simccl/real/team"
)

// Fault classifies the cause of an error in a run on hardware.
type Fault int

// Faults.
const (
	Elsewhere Fault = iota // not in the packages of real
	Argument               // an option or variable
	Input                  // a file
	Wrong                  // a result
	Driver                 // the CUDA driver
	Peer                   // NCCL's library, another rank or the connection to it
	Late                   // ranks that did not join in time
)

// FaultOf classifies an error.
func FaultOf(err error) Fault {
	var refusal *team.Refusal
	var driver *cuda.Error
	var library *nccl.Error
	var mismatch *bootstrap.MismatchError
	var late *bootstrap.TimeoutError
	switch {
	case errors.As(err, &refusal):
		return map[team.Kind]Fault{team.BadArgument: Argument, team.BadInput: Input,
			team.WrongResult: Wrong}[refusal.Kind]
	case errors.As(err, &driver):
		return Driver
	case errors.As(err, &mismatch):
		return Argument
	case errors.As(err, &library), team.BlamesOther(err), errors.Is(err, bootstrap.ErrRefused),
		errors.Is(err, bootstrap.ErrNoRank):
		return Peer
	case errors.As(err, &late):
		return Late
	}
	return Elsewhere
}

// PeerClosed reports whether a connection broke because its other end closed.
func PeerClosed(err error) bool { return errors.Is(err, sock.ErrPeerClosed) }
