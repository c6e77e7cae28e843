// Package mscclpp reads execution plans of MSCCL++ (JSON, microsoft/mscclpp), whose operations put and get
// over one-sided channels. It must not know files.
package mscclpp

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/plan/schedule"
)

// Types of MSCCL++ channels.
const (
	memoryChannel = iota
	portChannel
	switchChannel
)

var channelWords = [...]string{"memory", "port", "switch"}

// body holds the operations of a plan's thread blocks.
type body struct {
	*schedule.Schedule
	align int64 // bytes: groups of thread blocks divide data at multiples of it
	gpus  []gpu
}

// gpu holds the channels, semaphores and operations of one rank; its buffers and blocks are in schedule.GPU.
type gpu struct {
	peers    [2][]int // peer ranks of its memory and port channels, as listed
	switches [][]int  // ranks of each switch channel
	buffers  []byte   // of the switch channels
	sems     []int    // initial values of the semaphores
	remote   []remote
	blocks   [][]operation
}

// remote is a buffer of another rank.
type remote struct {
	rank int
	buf  byte
	via  [2]bool // reachable by a memory channel, by a port channel
}

// region is a range of chunks of a buffer: of this rank, of another rank (rank), or of all ranks of a switch
// channel (group).
type region struct {
	rank        int // -1: this rank
	buf         byte
	index, size int
	group       []int
}

// operation is one operation of a thread block.
type operation struct {
	name     string
	src, dst []region
	channels []int // indexes into gpu.peers
	kind     int   // of the channels
	tb, tbs  int   // index among the blocks that share it, and their number
	barrier  int
	sems     []int
	unit     int64 // of a pipeline: bytes of a unit
	chunks   int64
	inner    []operation
	pos      schedule.Pos
}

// shape is the pattern of an operation's sources and destinations, one letter each: local (l), packets in
// this GPU's scratch (p), another GPU's memory (r) or scratch (q), a switch's (g). * allows more of the same;
// ? none or more.
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

// fits reports whether regions match a pattern of a shape.
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

// operations that synchronize, executed by one thread per channel or semaphore
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

// ProofChunk implements schedule.Body: a size at which every block of a group and every unit of a pipeline
// has data.
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

// each calls do for every operation, including those inside pipelines.
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

// paired returns the channel of the peer that is the other end of channel id of gpu: the first channel to a
// rank is paired with the first one back, and so on.
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

// ranks returns the ranks in whose memory a region lies; own is the rank of the block.
func (r *region) ranks(own int) []int {
	switch {
	case r.group != nil:
		return r.group
	case r.rank >= 0:
		return []int{r.rank}
	}
	return []int{own}
}

// span is a range of bytes of a buffer of one rank.
type span struct {
	buf       byte
	off, size int64
}

// split returns part i of n of a size, divided at multiples of grain (mscclpp, execution_plan.cc:
// calcOffset).
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
