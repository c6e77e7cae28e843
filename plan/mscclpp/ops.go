// Package mscclpp reads execution plans of MSCCL++ (JSON, microsoft/mscclpp), whose operations put
// and get over one-sided channels.
//
// What it must not know: files.
package mscclpp

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/plan/schedule"
)

// Types of channels of MSCCL++.
const (
	memoryChannel = iota
	portChannel
	switchChannel
)

var channelWords = [...]string{"memory", "port", "switch"}

// body is what the thread blocks of a plan do.
type body struct {
	*schedule.Schedule
	align int64 // bytes: groups of thread blocks cut at multiples of it
	gpus  []gpu
}

// gpu is what one rank has beside a schedule.GPU.
type gpu struct {
	peers    [2][]int // of its memory and port channels, as listed
	switches [][]int  // ranks
	buffers  []byte   // of the switch channels
	sems     []int    // initial values
	remote   []remote
	blocks   [][]operation
}

// remote is a buffer of another rank.
type remote struct {
	rank int
	buf  byte
	via  [2]bool // memory, port
}

// region is chunks of a buffer: of this rank, of another one (rank), or of all ranks of
// a switch channel (group).
type region struct {
	rank        int // -1: of this one
	buf         byte
	index, size int
	group       []int
}

// operation is one of a thread block.
type operation struct {
	name     string
	src, dst []region
	channels []int // in gpu.peers
	kind     int   // of the channels
	tb, tbs  int   // which of how many blocks that share it
	barrier  int
	sems     []int
	unit     int64 // of a pipeline, bytes
	chunks   int64
	inner    []operation
	pos      schedule.Pos
}

// shape is how many places an operation reads and writes, and where they are: local (l),
// packets in this GPU's scratch (p), in another's memory (r) or scratch (q), in a
// switch's (g). The last of each may come again; a ? means none or more.
type shape struct {
	src, dst string
}

// shapes are the operations that move data (mscclpp, execution_kernel.hpp:950-1440).
var shapes = map[string]shape{
	"put": {"l*", "r*"}, "pws": {"l*", "r*"}, "pwsf": {"l*", "r*"}, "get": {"r*", "l*"}, "copy": {"l", "l"},
	"re": {"ll*", "l"}, "res": {"ll*", "lr*"}, "rre": {"lr*", "l"}, "rres": {"lr*", "lr*"},
	"ppkt": {"l*", "q*"}, "rppkt": {"p", "q*"}, "cpkt": {"l", "p"}, "upkt": {"p", "l"},
	"repkt": {"lp*", "l"}, "respkt": {"lp*", "lq*"}, "recpkt": {"lp*", "lp"}, "recspkt": {"lp*", "lpq*"},
	"glres": {"g", "g"}, "gstore": {"l", "g"}, "gstorepkt": {"p", "g"},
}

// fits reports whether regions are as a pattern of shape says.
func fits(pattern string, list []region) bool {
	for i := 0; i < len(pattern); i++ {
		what, many := pattern[i], i+1 < len(pattern) && pattern[i+1] == '*'
		if len(list) == 0 || !list[0].is(what) {
			return false
		}
		if list = list[1:]; many {
			for len(list) > 0 && list[0].is(what) {
				list = list[1:]
			}
			i++
		}
	}
	return len(list) == 0
}

func (r *region) is(what byte) bool {
	switch what {
	case 'l':
		return r.rank < 0 && r.group == nil
	case 'p':
		return r.rank < 0 && r.group == nil && r.buf == 's'
	case 'r':
		return r.rank >= 0
	case 'q':
		return r.rank >= 0 && r.buf == 's'
	}
	return r.group != nil
}

// synchronising operations: by one thread a channel or semaphore.
var others = []string{"nop", "barrier", "signal", "wait", "rlxsignal", "rlxwait", "flush", "pipeline",
	"sem_acquire", "sem_release"}

// Describe implements schedule.Body.
func (s *body) Describe(at schedule.Element, gpu int) (name, order string) {
	if at.GPU != gpu {
		name = fmt.Sprintf("gpu %d ", at.GPU)
	}
	return fmt.Sprintf("%stb %d op %d", name, at.Block, at.Step),
		"add signal and wait, a barrier or a semaphore"
}

// ProofChunk implements schedule.Body: every block of a group and every unit of a pipeline has
// data.
func (s *body) ProofChunk(elem int64) int64 {
	parts, pipelines := int64(1), int64(1)
	s.each(func(op *operation) {
		if op.tbs > 1 {
			parts = lcm(parts, int64(op.tbs))
		}
		if op.name == "pipeline" {
			pipelines = 2
		}
	})
	return min(parts, 5040) * pipelines * lcm(s.align, elem)
}

// each calls do for every operation, those of pipelines too.
func (s *body) each(do func(*operation)) {
	for g := range s.gpus {
		for _, ops := range s.gpus[g].blocks {
			for i := range ops {
				do(&ops[i])
				for j := range ops[i].inner {
					do(&ops[i].inner[j])
				}
			}
		}
	}
}

func lcm(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// paired returns the channel of a peer that is the other end of channel id of gpu: the
// first to a rank leads to the first back, and so on.
func (s *body) paired(gpu, kind, id int) (peer, back int) {
	list := s.gpus[gpu].peers[kind]
	peer, n := list[id], 0
	for _, other := range list[:id] {
		if other == peer {
			n++
		}
	}
	for i, other := range s.gpus[peer].peers[kind] {
		if other == gpu {
			if n == 0 {
				return peer, i
			}
			n--
		}
	}
	return peer, -1
}

// ranks are those that a region lies on.
func (r *region) ranks(own int) []int {
	switch {
	case r.group != nil:
		return r.group
	case r.rank >= 0:
		return []int{r.rank}
	}
	return []int{own}
}

// span is bytes of a buffer of one rank.
type span struct {
	buf       byte
	off, size int64
}

// split returns part i of n of a size, cut at multiples of grain
// (mscclpp, execution_plan.cc: calcOffset).
func split(size, grain int64, i, n int) (off, part int64) {
	grains := size / grain
	at := func(k int64) int64 { return (k*(grains/int64(n)) + min(k, grains%int64(n))) * grain }
	end := at(int64(i) + 1)
	if i == n-1 {
		end = size
	}
	return at(int64(i)), end - at(int64(i))
}

func isSignal(name string) bool { return slices.Contains([]string{"signal", "rlxsignal"}, name) }
func isWait(name string) bool   { return slices.Contains([]string{"wait", "rlxwait"}, name) }
