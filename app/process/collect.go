package process

import "os"

// heapRoom is by how much the heap grows at least between two collections, in bytes.
const heapRoom = 64 << 20

// ballast is memory that the collector counts and nothing touches: addresses without pages behind them.
var ballast []byte

// LateCollection lets the heap grow by heapRoom between two collections, beside the share of GOGC: short
// commands never collect, and a sweep of 64 ranks, which uses some megabytes at a time, takes a tenth less
// CPU. GOGC of the environment takes precedence, and a limit on the address space (ulimit -v).
func LateCollection() {
	if _, limited := addressLimit(); !limited && os.Getenv("GOGC") == "" {
		ballast = make([]byte, heapRoom)
	}
}
