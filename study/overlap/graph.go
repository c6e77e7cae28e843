package overlap

import "math"

// A CUDA graph that PyTorch captures has an event-record node after each collective, so its kernels do not
// follow each other as in a graph of kernels alone: the pause before a kernel grows with the number of
// operations before it in the graph, and the host launches a graph of more than two operations only when the
// previous one has nearly ended. The reason for the growth of the pause is unknown. The quantities were
// fitted to graphs of 1 to 128 operations on 2 x H200 (testdata/measured/h200x2/graphs.txt, PyTorch 2.11,
// NCCL 2.28.9); those of 4 GPUs in overlap.txt were not used.
const (
	// graphPause is by how many microseconds an operation more makes the next one wait,
	// graphPauseOwn by how many on top for each doubling of bytes above 64 KiB where
	// operations have buffers of their own; graphPauses is after how many it is longest.
	graphPause    = 0.31
	graphPauseOwn = 0.061
	graphPauses   = 51
	// graphLaunch and graphNode are the host's time in microseconds per graph and per operation; graphAhead
	// is the number of operations of the previous graph that are left when this launch begins.
	graphLaunch = 34
	graphNode   = 1.8
	graphAhead  = 3.8
	// graphPlain is the number of operations up to which graphs are launched without waiting.
	graphPlain = 2
)

// graphMore returns by how many microseconds a graph of n operations of us microseconds each takes longer
// than the operations in sequence. own: each operation has its own buffer.
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
