package overlap

import "math"

// A CUDA graph that PyTorch captures has a node beside each collective that records an
// event, so that kernels do not follow each other as in a graph of kernels alone: the pause
// before a kernel grows with the operations of the graph before it, and a graph
// of more than two is launched by the host only when the one before is nearly through.
// What makes the pause grow is not known. The quantities were fitted on graphs of 1 to 128
// operations on 2 x H200 (testdata/measured/h200x2/graphs.txt, PyTorch 2.11, NCCL 2.28.9);
// those of 4 GPUs in overlap.txt were not used.
const (
	// graphPause is by how many microseconds an operation more makes the next one wait,
	// graphPauseOwn by how many on top for each doubling of bytes above 64 KiB where
	// operations have buffers of their own; graphPauses is after how many it is longest.
	graphPause    = 0.31
	graphPauseOwn = 0.061
	graphPauses   = 51
	// graphLaunch and graphNode are the host's microseconds for a graph and for each
	// operation of it; graphAhead is how many operations are left of the graph before when
	// it begins.
	graphLaunch = 34
	graphNode   = 1.8
	graphAhead  = 3.8
	// graphPlain is of how many operations graphs are launched without a wait.
	graphPlain = 2
)

// graphMore is by how many microseconds a graph takes longer than its operations do one
// after the other, n of them in us microseconds each. own says that each has a buffer of
// its own.
func graphMore(n int, us float64, bytes int64, own bool) float64 {
	pause := graphPause
	if own && bytes > 64<<10 {
		pause += graphPauseOwn * math.Log2(float64(bytes)/(64<<10))
	}
	rising := float64(min(n, graphPauses))
	more := pause * (rising*(rising-1)/2 + (float64(n)-rising)*graphPauses)
	if n > graphPlain {
		more += math.Max(0, graphLaunch+graphNode*float64(n)-graphAhead*us)
	}
	return more
}
