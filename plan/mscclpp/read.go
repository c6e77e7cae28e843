package mscclpp

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/schedule"
)

// reader converts the tree of a JSON text to a body. It keeps the first fault.
type reader struct {
	s   *body
	err error
	ops int
	at  schedule.Element // the element being read, for errors
}

// Read reads an execution plan of MSCCL++; file is its name in errors. Errors are
// *schedule.Errors with line and column.
func Read(text []byte, file string) (*schedule.Schedule, error) {
	s := &schedule.Schedule{File: file, Format: "mscclpp"}
	r := &reader{s: &body{Schedule: s}, at: schedule.Whole(schedule.Pos{})}
	s.Body = r.s
	t := newTree(text, s)
	root, err := t.value(0)
	if err == nil {
		if end := t.here(); t.at < int64(len(text)) {
			err = t.fail(end, "more text after the plan")
		}
	}
	if err != nil {
		return nil, err
	}
	s.Pos = root.pos
	r.plan(root)
	return s, r.err
}

func (r *reader) fail(n *node, format string, args ...any) {
	if r.err == nil {
		r.at.Pos = n.pos
		r.err = r.s.Fault(r.at, format, args...)
	}
}

var kindNames = map[byte]string{'{': "an object", '[': "a list", '"': "a text", '0': "a number",
	't': "true or false", 'n': "null"}

// member returns a member of the given kind. If it is absent it returns nil, and records a fault if must.
func (r *reader) member(n *node, name string, kind byte, must bool) *node {
	m := n.members[name]
	switch {
	case n.kind != '{':
		r.fail(n, "is %s; write an object", kindNames[n.kind])
	case m == nil && must:
		r.fail(n, "lacks %q", name)
	case m != nil && m.kind != kind:
		r.fail(m, "%s is %s; write %s", name, kindNames[m.kind], kindNames[kind])
	default:
		return m
	}
	return nil
}

func (r *reader) list(n *node, name string) []*node {
	if m := r.member(n, name, '[', false); m != nil {
		return m.list
	}
	return nil
}

func (r *reader) text(n *node, name, def string) string {
	if m := r.member(n, name, '"', false); m != nil {
		return m.text
	}
	return def
}

func (r *reader) flag(n *node, name string) bool {
	m := r.member(n, name, 't', false)
	return m != nil && m.text == "true"
}

// number reads a value from lo to hi, and records a fault for others.
func (r *reader) number(m *node, what string, lo, hi int64) int64 {
	v, err := strconv.ParseInt(m.text, 10, 64)
	if m.kind != '0' || err != nil || v < lo || v > hi {
		r.fail(m, "%s is %s; write a number from %d to %d", what, short(m), lo, hi)
		return lo
	}
	return v
}

func short(m *node) string {
	switch {
	case m.kind == '0' || m.kind == 't':
		return fmt.Sprintf("%.40s", m.text)
	case m.kind == '"':
		return fmt.Sprintf("%.40q", m.text)
	}
	return kindNames[m.kind]
}

func (r *reader) numberOf(n *node, name string, lo, hi, def int64) int64 {
	if m := r.member(n, name, '0', def == math.MinInt64); m != nil {
		return r.number(m, name, lo, hi)
	}
	return max(def, lo)
}

// must, as the default of numberOf, makes the member required.
const must = math.MinInt64

func (r *reader) numbers(n *node, name string, hi int) []int {
	var out []int
	for _, m := range r.list(n, name) {
		out = append(out, int(r.number(m, name, 0, int64(hi))))
	}
	return out
}

func (r *reader) plan(n *node) {
	s := r.s
	s.Name = r.text(n, "name", "")
	word := r.text(n, "collective", "")
	var known bool
	if s.Func, known = schedule.ParseFunc(word); !known {
		r.fail(n, "collective %q: %s", word, schedule.FuncHint)
	}
	switch proto := r.text(n, "protocol", "Simple"); proto {
	case "Simple":
		s.Proto = coll.Simple
	case "LL":
		s.Proto = coll.LL
	default:
		r.fail(n.members["protocol"], "protocol %.40q: write Simple or LL", proto)
	}
	s.InPlace = r.flag(n, "inplace")
	s.OutOfPlace = !s.InPlace
	s.MinBytes = r.numberOf(n, "min_message_size", 0, math.MaxInt64, 0)
	if m := r.member(n, "max_message_size", '0', false); m != nil {
		if v, err := strconv.ParseUint(m.text, 10, 64); err != nil {
			r.fail(m, "max_message_size is %s; write a number from 0 to %d", short(m), uint64(math.MaxUint64))
		} else if v <= math.MaxInt64 {
			s.MaxBytes = int64(v)
		}
	}
	s.align = r.numberOf(n, "buffer_alignment", 1, 4096, 16)
	gpus := r.member(n, "gpus", '[', true)
	if r.err != nil {
		return
	}
	if len(gpus.list) < 2 || len(gpus.list) > schedule.MaxRanks {
		r.fail(gpus, "%d gpus; write 2 to %d", len(gpus.list), schedule.MaxRanks)
		return
	}
	s.GPUs, s.gpus = make([]schedule.GPU, len(gpus.list)), make([]gpu, len(gpus.list))
	for i, g := range gpus.list {
		r.at.GPU = i
		r.buffers(g, i)
	}
	r.at.GPU = -1
	r.chunks(gpus)
	for i, g := range gpus.list {
		if r.at.GPU = i; r.err == nil {
			r.blocks(g, i)
		}
	}
}

// buffers reads everything of a GPU except its thread blocks.
func (r *reader) buffers(n *node, i int) {
	top := int64(len(r.s.GPUs) - 1)
	if id := r.numberOf(n, "id", 0, schedule.MaxRanks, must); r.err == nil && int(id) != i {
		r.fail(n, "gpu id %d, want %d: list them in order", id, i)
	}
	g := &r.s.gpus[i]
	r.s.GPUs[i] = schedule.GPU{Input: int(r.numberOf(n, "input_chunks", 0, schedule.MaxChunks, must)),
		Output:  int(r.numberOf(n, "output_chunks", 0, schedule.MaxChunks, must)),
		Scratch: int(r.numberOf(n, "scratch_chunks", 0, schedule.MaxChunks, must)), Pos: n.pos}
	for _, c := range r.list(n, "channels") {
		kind := r.kind(c, "channel_type", 3)
		if kind == switchChannel {
			buf := r.text(c, "buffer_type", r.text(c, "buff", ""))
			for _, group := range r.list(c, "rank_groups") {
				ranks := r.numbers(group, "ranks", int(top))
				if slices.Sort(ranks); len(slices.Compact(slices.Clone(ranks))) != len(ranks) ||
					!slices.Contains(ranks, i) {
					r.fail(group, "ranks: write each rank once, gpu %d among them", i)
				}
				g.switches, g.buffers = append(g.switches, ranks), append(g.buffers, r.buffer(c, buf))
			}
			continue
		}
		peers := r.numbers(c, "connected_to", int(top))
		if slices.Contains(peers, i) {
			r.fail(c, "is connected to itself")
		}
		g.peers[kind%2] = append(g.peers[kind%2], peers...)
	}
	for _, b := range r.list(n, "remote_buffers") {
		m := remote{rank: int(r.numberOf(b, "rank", 0, top, must)), buf: r.buffer(b, r.text(b, "type", ""))}
		for _, via := range r.list(b, "access_channel_types") {
			k := slices.Index(channelWords[:2], via.text)
			if k < 0 {
				r.fail(via, "access_channel_types: write memory or port")
				continue
			}
			m.via[k] = true
		}
		if m.rank == i {
			r.fail(b, "is a remote buffer of itself")
		}
		g.remote = append(g.remote, m)
	}
	for _, sem := range r.list(n, "semaphores") {
		g.sems = append(g.sems, int(r.numberOf(sem, "init_value", 0, schedule.MaxChunks, must)))
	}
}

// kind reads the type of a channel, which must be one of the first of.
func (r *reader) kind(n *node, name string, of int) int {
	word := r.text(n, name, "")
	k := slices.Index(channelWords[:of], word)
	if k < 0 {
		r.fail(n, "%s %.40q: write %v", name, word, channelWords[:of])
		return 0
	}
	return k
}

func (r *reader) buffer(n *node, word string) byte {
	if word != "i" && word != "o" && word != "s" {
		r.fail(n, "buffer %.40q: write i, o or s", word)
		return 's'
	}
	return word[0]
}

// chunks computes the number of chunks of the operation's larger buffer, and checks that all GPUs agree.
func (r *reader) chunks(n *node) {
	s, ranks := r.s, len(r.s.GPUs)
	if r.err != nil {
		return
	}
	for i, g := range s.GPUs {
		if g.Input != s.GPUs[0].Input || g.Output != s.GPUs[0].Output {
			r.at.GPU = i
			r.fail(n.list[i], "input_chunks %d and output_chunks %d differ from gpu 0's", g.Input, g.Output)
			return
		}
	}
	in, out := s.GPUs[0].Input, s.GPUs[0].Output
	wantIn, wantOut := max(in, out), max(in, out)
	switch s.Func {
	case coll.AllGather, coll.Gather:
		wantOut = max(in*ranks, out)
		wantIn = wantOut / ranks
	case coll.ReduceScatter, coll.Scatter:
		wantIn = max(out*ranks, in)
		wantOut = wantIn / ranks
	}
	s.Chunks = max(wantIn, wantOut)
	if s.Chunks == 0 || s.Chunks > schedule.MaxChunks || in != 0 && in != wantIn ||
		out != 0 && out != wantOut || s.PerRank() && s.Chunks%ranks != 0 {
		r.fail(n, "input_chunks %d and output_chunks %d are no chunks of %s over %d ranks", in, out,
			s.Func.TestName(), ranks)
	}
	s.Channels = 1
}

// tb is the view that a thread block has of its GPU: its channels and buffers, by local number.
type tb struct {
	gpu      *gpu
	channels [3][]int
	remotes  [2][]int
}

func (r *reader) blocks(n *node, i int) {
	g := &r.s.gpus[i]
	for b, k := range r.list(n, "threadblocks") {
		r.at.Block = b
		if id := r.numberOf(k, "id", 0, schedule.MaxChunks, must); r.err == nil && int(id) != b {
			r.fail(k, "threadblock id %d, want %d: list them in order", id, b)
		}
		t := tb{gpu: g}
		for _, c := range r.list(k, "channels") {
			kind := r.kind(c, "channel_type", 3)
			most := len(g.switches)
			if kind != switchChannel {
				most = len(g.peers[kind])
			}
			t.channels[kind] = append(t.channels[kind], r.numbers(c, "channel_ids", most-1)...)
		}
		for _, c := range r.list(k, "remote_buffer_refs") {
			kind := r.kind(c, "access_channel_type", 2)
			t.remotes[kind] = append(t.remotes[kind], r.numbers(c, "remote_buffer_ids", len(g.remote)-1)...)
		}
		var ops []operation
		for j, o := range r.list(k, "ops") {
			r.at.Step = j
			op := r.op(o, &t, false)
			if r.err != nil {
				return
			}
			ops = append(ops, op)
		}
		r.at.Step = -1
		own := &r.s.GPUs[i]
		g.blocks = append(g.blocks, ops)
		own.Blocks = append(own.Blocks, schedule.Block{Steps: len(ops), Pos: k.pos})
		r.s.Channels = max(r.s.Channels, b+1)
	}
	r.at.Block = -1
}

func (r *reader) op(n *node, t *tb, inner bool) operation {
	op := operation{name: r.text(n, "name", ""), pos: n.pos, tbs: 1, barrier: -1}
	if r.ops++; r.ops > schedule.MaxSteps {
		r.fail(n, "more than %d operations", schedule.MaxSteps)
	}
	sh, moves := shapes[op.name]
	if !moves && !slices.Contains(others, op.name) {
		r.fail(n, "name %.40q is no operation of MSCCL++ that is known here", op.name)
		return op
	}
	if n.members["channel_type"] != nil && r.text(n, "channel_type", "") != "none" {
		op.kind = r.kind(n, "channel_type", 3)
	}
	if word := r.text(n, "reduce_op", "sum"); word != "sum" {
		r.fail(n.members["reduce_op"], "reduce_op %.40q: MSCCL++ adds; write sum", word)
	}
	for _, id := range r.list(n, "channel_ids") {
		if own := t.channels[op.kind]; len(own) > 0 {
			op.channels = append(op.channels, own[r.number(id, "channel_ids", 0, int64(len(own)-1))])
		} else {
			r.fail(id, "channel_ids: the thread block has no %s channel", channelWords[op.kind])
		}
	}
	if m := r.member(n, "tbg_info", '{', false); m != nil {
		op.tbs = int(r.numberOf(m, "tbg_size", 1, 1024, must))
		op.tb = int(r.numberOf(m, "tb_id", 0, int64(op.tbs-1), must))
	}
	op.src, op.dst = r.regions(n, "src_buff", &op, t), r.regions(n, "dst_buff", &op, t)
	if r.err == nil && moves && (!fits(sh.src, op.src) || !fits(sh.dst, op.dst)) {
		r.fail(n, "%s with %s and %s; see MSCCL++'s execution plans for what it reads and writes", op.name,
			places("src_buff", op.src), places("dst_buff", op.dst))
	}
	r.synchronise(n, t, &op, inner)
	r.sizes(n, &op)
	return op
}

func places(name string, list []region) string {
	s := name
	for _, x := range list {
		switch {
		case x.group != nil:
			s += " switch"
		case x.rank >= 0:
			s += fmt.Sprintf(" %c of gpu %d", x.buf, x.rank)
		default:
			s += fmt.Sprintf(" %c", x.buf)
		}
	}
	if len(list) == 0 {
		s += " empty"
	}
	return s
}

// synchronise reads the fields of operations without data.
func (r *reader) synchronise(n *node, t *tb, op *operation, inner bool) {
	switch {
	case isSignal(op.name) || isWait(op.name):
		if len(op.channels) == 0 || op.kind == switchChannel {
			r.fail(n, "%s without channel_ids of memory or port channels", op.name)
		}
	case op.name == "pws" || op.name == "pwsf":
		if len(op.channels) != len(op.dst) || op.kind != portChannel {
			r.fail(n, "%s: write a port channel for each dst_buff", op.name)
		}
	case op.name == "barrier":
		op.barrier = int(r.numberOf(n, "barrier_id", 0, schedule.MaxChunks, must))
		op.tbs = int(r.numberOf(n, "num_threadblocks", 1, schedule.MaxChunks, must))
	case op.name == "sem_acquire" || op.name == "sem_release":
		if op.sems = r.numbers(n, "semaphore_ids", len(t.gpu.sems)-1); len(op.sems) == 0 {
			r.fail(n, "%s without semaphore_ids", op.name)
		}
	case op.name == "pipeline":
		c := r.member(n, "iter_context", '{', true)
		if c == nil || inner {
			r.fail(n, "a pipeline within a pipeline")
			return
		}
		op.unit, op.chunks = r.numberOf(c, "unit_size", 1, math.MaxInt32, must),
			r.numberOf(c, "num_chunks", 1, schedule.MaxChunks, must)
		for _, o := range r.list(n, "ops") {
			op.inner = append(op.inner, r.op(o, t, true))
		}
	}
}

func (r *reader) regions(n *node, name string, op *operation, t *tb) []region {
	var out []region
	for _, m := range r.list(n, name) {
		x := region{rank: -1, index: int(r.numberOf(m, "index", 0, schedule.MaxChunks, must)),
			size: int(r.numberOf(m, "size", 1, schedule.MaxChunks, must))}
		switch {
		case r.err != nil:
			return nil
		case m.members["buffer_id"] != nil:
			if op.kind == switchChannel || len(t.remotes[op.kind]) == 0 {
				r.fail(m, "buffer_id: the thread block has no remote buffer over %s channels",
					channelWords[op.kind])
				return nil
			}
			own := t.remotes[op.kind]
			b := t.gpu.remote[own[r.numberOf(m, "buffer_id", 0, int64(len(own)-1), must)]]
			if x.rank, x.buf = b.rank, b.buf; !b.via[op.kind] {
				r.fail(m, "buffer_id: that buffer is not accessed over %s channels", channelWords[op.kind])
			}
		case m.members["switch_channel_id"] != nil:
			own := t.channels[switchChannel]
			if len(own) == 0 {
				r.fail(m, "switch_channel_id: the thread block has no switch channel")
				return nil
			}
			id := own[r.numberOf(m, "switch_channel_id", 0, int64(len(own)-1), must)]
			x.group, x.buf = t.gpu.switches[id], t.gpu.buffers[id]
		default:
			x.buf = r.buffer(m, r.text(m, "type", ""))
		}
		for _, g := range x.ranks(r.at.GPU) {
			if most := r.s.ChunksOf(g, x.buf); x.index+x.size > most {
				r.fail(m, "chunks %d to %d of %c of gpu %d, which has %d", x.index, x.index+x.size-1, x.buf,
					g, most)
			}
		}
		out = append(out, x)
	}
	return out
}

// sizes checks that the regions of an operation have equal sizes.
func (r *reader) sizes(n *node, op *operation) {
	if r.err != nil || len(op.src) == 0 {
		return
	}
	pairs := op.name == "get" || len(op.src) == len(op.dst) && (op.name == "put" || op.name == "pws" ||
		op.name == "pwsf" || op.name == "ppkt")
	if pairs && len(op.src) != len(op.dst) {
		r.fail(n, "get of %d places into %d", len(op.src), len(op.dst))
		return
	}
	for i, d := range op.dst {
		want := op.src[0].size
		if pairs {
			want = op.src[i].size
		}
		if d.size != want {
			r.fail(n, "dst_buff %d has %d chunks, src_buff %d", i, d.size, want)
		}
	}
	for i, x := range op.src {
		if !pairs && x.size != op.src[0].size {
			r.fail(n, "src_buff %d has %d chunks, src_buff 0 %d", i, x.size, op.src[0].size)
		}
	}
}
