package sym

import "github.com/simccl/simccl/coll"

// Device returns the kernel of nccl-tests' device implementation impl (its -D, at least 1) of a task, with
// the given number of blocks; ok is false if nccl-tests has none. They move the same data as NCCL's own
// kernels over symmetric windows: in an all_reduce, rank r's part is loaded from all ranks, summed and stored
// to all, by the element (1), by 16 bytes (2), or by the switch (3, 4); in an alltoall each part is stored to
// its peer (1, 2). Source: nccl-tests 2.19.6, all_reduce.cu:146-500, alltoall.cu:132-260, with 512 threads a
// block (common.h:309). Only sums are implemented (common.h:320).
func (c *Comm) Device(impl, blocks int, t Task) (l Launch, ok bool) {
	ch := Choice{Blocks: min(max(blocks, 1), maxBlocks), Warps: Threads / 32}
	switch {
	case t.Func == coll.AllReduce && t.Op == coll.Sum && impl >= 1 && impl <= 4:
		if ch.Kernel = AllReduceLDST; impl > 2 {
			ch.Kernel = AllReduceMC
		}
	case t.Func == coll.AllToAll && (impl == 1 || impl == 2):
		ch.Kernel, t.Func = AllGatherST, coll.AllGather
	default:
		return l, false
	}
	if ok, _ := c.Supported(); !ok || ch.Kernel == AllReduceMC && !c.NVLS {
		return l, false
	}
	narrow := impl == 1 || impl == 3
	size := int64(t.Type.Size())
	t = t.normal()
	l = spread(ch, []Task{t}, false)
	if narrow {
		l.Element = int(size)
	}
	return l, true
}
