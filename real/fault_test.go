package real

import (
	"errors"
	"fmt"
	"testing"

	"github.com/simccl/simccl/real/internal/bootstrap"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/nccl"
	"github.com/simccl/simccl/real/internal/sock"
	"github.com/simccl/simccl/real/team"
)

// TestFaults: every error that hardware, libraries and other ranks cause has its
// class, however it is wrapped.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Fault
	}{
		{&bootstrap.TimeoutError{What: "bootstrap", Ranks: []int{1}}, Late},
		{&bootstrap.MismatchError{Reason: "rank 1 reported twice"}, Argument},
		{&bootstrap.DeadError{Rank: 1}, Peer},
		{&bootstrap.AbortError{Rank: 1}, Peer},
		{&bootstrap.InterruptError{Rank: 1, Signal: "SIGINT"}, Peer},
		{&bootstrap.LeftError{Rank: 1}, Peer},
		{bootstrap.ErrRefused, Peer},
		{bootstrap.ErrNoRank, Peer},
		{&cuda.Error{}, Driver},
		{&nccl.Error{}, Peer},
		{team.Refuse("no"), Argument},
		{team.Input(errors.New("no file")), Input},
		{team.Wrong("element 3"), Wrong},
		{errors.New("something else"), Elsewhere},
	} {
		if got := FaultOf(fmt.Errorf("rank 0: %w", c.err)); got != c.want {
			t.Errorf("%v: fault %d, want %d", c.err, got, c.want)
		}
	}
	if !PeerClosed(fmt.Errorf("rank 0: %w", sock.ErrPeerClosed)) {
		t.Error("a closed connection is not known")
	}
}
