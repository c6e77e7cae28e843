package reductions

import (
	"context"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// held has the pair of a request, whose near time must be within its margin.
func held(t *testing.T, r Request) {
	t.Helper()
	var s Sites
	p, err := s.Compare(context.Background(), r, Within{Time: 20 * units.Second, Memory: 1 << 30})
	if err != nil || p.Skipped != "" {
		t.Fatalf("%s: not compared: %v %s", r, err, p.Skipped)
	}
	if p.Broken() {
		t.Errorf("%s: %.1f us, exactly %.1f: %+.1f %%, margin %.0f %%",
			r, p.Near, p.Exact, 100*p.Off(), 100*p.Margin)
	}
}

// TestNearRingsKeepUnequalChannelsApart: channels whose parts differ in size leave lockstep, and
// share ports and threads otherwise than in it. Treated as one, they were 7 to 10 % too slow.
func TestNearRingsKeepUnequalChannelsApart(t *testing.T) {
	const sockets = " --env NCCL_PROTO=LL --env NCCL_IB_DISABLE=1 --sizes 5000000 --launch graph --fold near"
	held(t, "all_gather --nodes 13"+sockets)
	held(t, "all_gather --nodes 20"+sockets)
}

// TestShortWindowsAreForWhatCosts: a window of 8 iterations was 3.4 % too fast of 32, which take little.
func TestShortWindowsAreForWhatCosts(t *testing.T) {
	const short = "all_reduce --topo dgx-b200 --nodes 1 --env NCCL_PROTO=LL --launch graph --sizes "
	var s Sites
	for size, iterations := range map[Request]int64{"256M": 0, "4G": 8} {
		a, err := s.method(context.Background(), short+size)
		if ran := a.Reduction.Iterations.Ran; err != nil || ran != iterations {
			t.Errorf("%s: %d iterations, want %d: %v, %v", size, ran, iterations, a, err)
		}
	}
}

// TestNearRingsLoadLinksAsWholeOnes: a link is crossed by as many flows as the fullest of those that it
// represents. Of channels kept apart each had links of its own, with 5 of 14 flows: 8 % too fast.
func TestNearRingsLoadLinksAsWholeOnes(t *testing.T) {
	held(t, "all_reduce --nodes 17 --sizes 537220000 --multicast off --launch graph --fold near")
}

// TestNearTreesKnowBelowWhichGPUChildrenAre: a node sends to its two children from two GPUs, one after the
// other. Treated as one kind they were sent to at once, each at half the rate: up to 16 % too slow.
func TestNearTreesKnowBelowWhichGPUChildrenAre(t *testing.T) {
	held(t, "all_reduce --topo aws-p4d.24xlarge --nodes 64 --sizes 8388608 --launch graph --fold near")
	held(t, "all_reduce --topo aws-p4d.24xlarge --nodes 183 --sizes 8388608 --fault rank=1114:slow=1.5 "+
		"--launch graph --fold near")
}

// TestNearHeadsAndChainsAreOfLockstepAlone: with jitter, ranks that are nearly equivalent draw for
// themselves, and a chain's that are so exactly share their draws. Near ones shared them, the parts of a
// window folded in different ways then, and some panicked.
func TestNearHeadsAndChainsAreOfLockstepAlone(t *testing.T) {
	var s Sites
	for _, x := range []struct {
		request Request
		draws   exec.Draws
	}{
		{"all_reduce --nodes 9 -g 7 --sizes 1G --env NCCL_ALGO=NVLSTree", exec.OwnDraws},
		{"broadcast -g 2 --nodes 36 --sizes 64G", exec.SharedDraws},
	} {
		drawn, err := s.method(context.Background(), x.request)
		if err != nil || drawn.Reduction.Ranks == exec.Near || drawn.Reduction.Draws != x.draws {
			t.Errorf("%s: %v, %v", x.request, drawn, err)
		}
		off, err := s.method(context.Background(), x.request+" --jitter off")
		if err != nil || off.Reduction.Ranks != exec.Near && off.Method != exec.Near {
			t.Errorf("%s --jitter off: %v, %v", x.request, off, err)
		}
	}
}

// TestNearTreesKeepOtherChunksApart: a channel with less of the operation may have smaller chunks, and more
// of them. Represented by the others it came out 31 % too short.
func TestNearTreesKeepOtherChunksApart(t *testing.T) {
	held(t, "all_reduce --topo gb200-nvl72-2tray --nodes 102 --sizes 9980946 --launch graph --fold near")
}

// TestOperationsWaitForTheEndsOfChains: how often is known of each channel. All were taken to wait for the
// longest one, which made those over odd rings up to 80 % too long.
func TestOperationsWaitForTheEndsOfChains(t *testing.T) {
	held(t, "reduce --nodes 100 --sizes 18314 --env NCCL_PROTO=LL128 --launch graph --fold near")
	held(t, "reduce --topo dgx-a100 --nodes 78 --sizes 5376668 --launch graph --fold near")
}

// TestChainsThatDriftApartAreSimulatedWhole: the head of such a chain does not show what happens in its
// middle; it made this one 28 % too long. --fold near says so.
func TestChainsThatDriftApartAreSimulatedWhole(t *testing.T) {
	const drifts = "broadcast --topo hgx-h800-8 --nodes 90 --multicast off --sizes 40000000 --launch graph"
	var s Sites
	for _, fold := range []string{"", " --fold near"} {
		_, margin, err := s.time(context.Background(), Request(drifts+fold))
		if err != nil || (margin > 0) != (fold != "") {
			t.Errorf("%s: margin %.2f, %v", drifts+fold, margin, err)
		}
	}
	held(t, drifts+" --fold near")
}

// TestWindowsOfAlltoallsAreBoundedByWhatIsSimulated: equivalent ranks of an alltoall fold, so those of one
// are simulated, and a window may have as many iterations as their pieces allow. By the pieces of all it had
// 8 of 682, of blocks that begin at odd addresses, where some transfers fall behind for longer: 7.3 % too
// fast.
func TestWindowsOfAlltoallsAreBoundedByWhatIsSimulated(t *testing.T) {
	held(t, "alltoall --topo dgx-b200 --nodes 6 --sizes 4294967296 --env NCCL_PROTO=LL128")
}
