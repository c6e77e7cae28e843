package launch

// Sizes of a kernel's arguments and works in bytes (include/device.h:227, 283, 363, 437).
const (
	argsHeader   = 32      // ncclDevKernelArgs
	batchBytes   = 16      // ncclDevWorkBatch
	collBytes    = 96      // ncclDevWorkColl
	p2pBytes     = 48      // ncclDevWorkP2p
	argsBytes    = 4 << 10 // NCCL_MAX_KERNEL_ARGS_SIZE (device.h:439)
	fifoBytes    = 1 << 20 // NCCL_WORK_FIFO_BYTES_DEFAULT
	graphBytes   = 1 << 30 // in a CUDA graph (enqueue.cc:1459)
	fusedBytes   = 1024    // NCCL_MAX_DEV_WORK_BATCH_BYTES
	batchBits    = 64      // works that one batch can name
	collsInBatch = 4       // NCCL's assumption before it assigns tasks to channels (enqueue.cc:538)
)

// budget is the space in bytes for the works of a kernel: in its arguments, or else in the FIFO or the
// graph's memory (enqueue.cc:297).
type budget struct{ args, out int64 }

func budgetOf(c *Comm, mode Mode) budget {
	b := budget{args: argsBytes, out: fifoBytes}
	if c.ArgsBytes > 0 {
		b.args = min(b.args, c.ArgsBytes)
	}
	if c.FIFOBytes > 0 {
		b.out = c.FIFOBytes
	}
	b.args -= argsHeader
	b.out /= 2 // a kernel fills at most half of the FIFO
	if mode == Captured {
		b.out = graphBytes
	}
	return b
}

// fits reports whether the given number of batches and bytes of works fit.
func (b *budget) fits(batches int, works int64) bool {
	head := int64(batches) * batchBytes
	return head+works <= b.args || head <= b.args && works <= b.out
}

// workBatches are the batches of a kernel: a channel executes a list of batches, each of works of one device
// function (enqueue.cc:97).
type workBatches struct {
	open  []batch // by channel: its last batch
	n     int     // number of batches
	bytes int64   // of all works
}

// batch is the last batch of a channel: fused works, which a kernel loads together.
type batch struct {
	on     bool
	p2p    bool
	fn     kernelFunc
	base   int64 // offset of its first work
	bytes  int64 // of its works
	rounds []int // rounds of its sends and receives
	epoch  int   // pass over the rounds that they belong to
	most   int   // limit on its number of works, set by the last one
}

func newBatches(channels int) workBatches { return workBatches{open: make([]batch, channels)} }

// clone copies the state, so that each rank can continue independently.
func (w *workBatches) clone() workBatches {
	out := workBatches{open: make([]batch, len(w.open)), n: w.n, bytes: w.bytes}
	copy(out.open, w.open)
	for i := range out.open {
		out.open[i].rounds = append([]int(nil), w.open[i].rounds...)
	}
	return out
}

// addColl appends a collective's work, at the end of all works, to a channel.
func (w *workBatches) addColl(channel int, fn kernelFunc) {
	b := &w.open[channel]
	fresh := !b.on || b.p2p || b.fn != fn || fusedBytes < b.bytes+collBytes
	if fresh {
		*b = batch{on: true, fn: fn, rounds: b.rounds[:0]}
	}
	w.append(b, fresh, collBytes)
}

// addP2P appends a send/recv work of a round to a channel and reports whether it began a batch. A batch has
// at most most works (eight in NCCL), no round twice and works of one epoch only; with byGroup, its rounds
// must be in one group of most consecutive rounds (enqueue.cc:128).
func (w *workBatches) addP2P(channel, round, epoch, most int, byGroup bool) (fresh bool) {
	b := &w.open[channel]
	fresh = !b.on || !b.p2p || b.epoch != epoch || fusedBytes < b.bytes+p2pBytes ||
		len(b.rounds) >= min(b.most, most)
	for _, r := range b.rounds {
		fresh = fresh || r == round || byGroup && r/most != round/most
	}
	if fresh {
		*b = batch{on: true, p2p: true, epoch: epoch, rounds: b.rounds[:0]}
	}
	b.most = most
	w.append(b, fresh, p2pBytes)
	b.rounds = append(b.rounds, round)
	return fresh
}

// append counts a work of a batch. A work too far from the first, or at an offset that is no multiple of its
// size, needs a further batch, which the kernel fuses with the one before (enqueue.cc:143).
func (w *workBatches) append(b *batch, fresh bool, size int64) {
	off := w.bytes - b.base
	if fresh || off > (batchBits-1)*size || off%size != 0 {
		b.base = w.bytes
		w.n++
	}
	b.bytes += size
}
