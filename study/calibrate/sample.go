package calibrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/sim"
)

// Run is one measured file: a communicator, its settings, and times.
type Run struct {
	File string
	// Unnamed: no line of a table says which operation was measured; it follows from the columns.
	Unnamed bool
	Name    string // of a published table
	Source  string // where it was published
	GPU     string // as the file names it, empty where it does not
	// System describes further parts of a published table's machine: NICs, cloud.
	System string
	// Topo is the machine that a simulated table of simccl names, and Digest the first 12 digits of its
	// file's SHA-256.
	Topo, Digest string
	// PerNode and NICs are the numbers of GPUs and NICs of a node according to a published table, whose run
	// may use fewer; 0 if it does not state them.
	PerNode, NICs int
	NCCL          int    // 22809 for 2.28.9, 0 where the file does not say
	Date          string // YYYY-MM-DD, empty where the file does not say
	Ranks         int
	Nodes         int
	Env           []string // NCCL_NAME=VALUE, sorted: the environment given to NCCL
	From          string   // where Env was found, for people
	Launch        sim.Launch
	// PerThread counts the GPUs that one host thread launches for; it matters
	// to eager runs only.
	PerThread int
	// Threads counts the threads of a process that launch, each for PerThread GPUs.
	Threads int
	Samples []Sample
}

// forced reports whether the run's settings choose an algorithm or a protocol.
func (r *Run) forced() bool {
	return slices.ContainsFunc(r.Env, func(kv string) bool {
		return strings.HasPrefix(kv, "NCCL_ALGO=") || strings.HasPrefix(kv, "NCCL_PROTO=")
	})
}

// release returns the NCCL version that was measured, "2.28.9"; "" if the file does not state it.
func (r *Run) release() string {
	if r.NCCL < 10000 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", r.NCCL/10000, r.NCCL/100%100, r.NCCL%100)
}

// assume sets variables, NCCL_NAME=VALUE, that the run's own settings do not.
func (r *Run) assume(env []string) {
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(r.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
			r.Env = append(r.Env, kv)
		}
	}
	slices.Sort(r.Env)
}

// Sample is one measured time.
type Sample struct {
	Run   *Run
	Op    comm.Op
	Bytes int64   // as the table counts them
	Us    float64 // microseconds of one operation
	// Place counts the sizes of its series in ascending order: which are held
	// out depends on it.
	Place int
}

// series returns a key that is equal for samples that differ only in size.
func (s *Sample) series() string {
	return fmt.Sprint(s.Run.File, s.Op.Func, s.Op.Type, s.Op.RedOp, s.Op.Root, s.Op.InPlace)
}

// Held reports whether the sample is held out where every nth size is: the
// second of two, the third of three.
func (s *Sample) Held(every int) bool { return s.Place%every == every-1 }
