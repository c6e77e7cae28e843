package gpu

import "math"

// SymCost is what kernels over symmetric windows cost, whose threads load and store
// the memory of all peers themselves. Blocks have 512 threads.
type SymCost struct {
	// Gap is a kernel's fixed cost with both its barriers over all GPUs; GapLL that of
	// a kernel that needs none, for its data carries flags.
	Gap, GapLL float64
	// Remote is the round trip of loads from one peer, Peer what each further peer adds
	// whose loads are in flight with them, Local the round trip to the GPU's own L2;
	// HBM comes on top of each where the data is not in L2. Single takes Local's place
	// in loops over single elements, which load nothing ahead, and SingleHBM HBM's.
	Remote, Peer, Local, Single, HBM, SingleHBM float64
	// Work is what a block takes to go on to another task.
	Work float64
	// Write is the rate at which one SM issues stores to any memory, in GB/s.
	Write float64
	// CrowdLoad and CrowdStore are the shares of a link between GPU and switch that are
	// lost where loads, and stores, of ever more pairs of GPUs meet: (1-1/k) of them
	// with k pairs.
	CrowdLoad, CrowdStore float64
	// Overlap is the power p with which the time of the SMs and that of the links make
	// up the time of both: the p-th root of the sum of their p-th powers.
	Overlap float64
	// Push is the issue of 512 stores of LL (16 bytes with 8 of data), Hop the time
	// until a peer's poll has them.
	Push, Hop float64
	// Reduce is what a load takes longer that the switch reduces.
	Reduce float64
}

// SymLoop is one pass of a block's loop over symmetric memory: 512 threads, of which
// Active (0 to 1) have work, each with Packs loads or stores of Pack bytes in flight.
type SymLoop struct {
	Packs, Pack int
	Active      float64
	// Rounds lists from how many peers at a time it loads, one round trip after the
	// other; Stores counts the memories that it stores to, its own included.
	Rounds []int
	Stores int
	// Own: it first loads from the GPU's own memory; Reduced: the switch reduces what
	// it loads.
	Own, Reduced bool
}

// SymLoopTime is the time of one pass in microseconds, where a share miss of the data
// is not in L2.
func (c *Class) SymLoopTime(l *SymLoop, miss float64) float64 {
	s := &c.Sym
	us := float64(l.Stores) * 512 * float64(l.Packs*l.Pack) * l.Active / (s.Write * 1e3)
	if l.Own {
		if l.Packs == 1 {
			us += s.Single + float64(s.SingleHBM*miss)
		} else {
			us += s.Local + float64(s.HBM*miss)
		}
	}
	for _, peers := range l.Rounds {
		us += s.Remote + float64(s.Peer*float64(peers-1)) + float64(s.HBM*miss)
		if l.Reduced {
			us += s.Reduce
		}
	}
	return us
}

// SymTime is the time of a kernel's passes and of what its links carry together, in
// microseconds.
func (c *Class) SymTime(passes, links float64) float64 {
	p := c.Sym.Overlap
	return math.Pow(math.Pow(passes, p)+math.Pow(links, p), 1/p)
}

// SymPushTime is the time of one pass of an LL kernel's loop in microseconds: a block
// stores so many packs of 8 bytes, waits for those of its peers, and stores the result.
func (c *Class) SymPushTime(stores int64, miss float64) float64 {
	s := &c.Sym
	return s.Local + float64(s.HBM*miss) + s.Hop + float64(s.Push*float64(stores)/512)
}

// CopyCost is what collectives by copy engines cost.
type CopyCost struct {
	// Barrier is a barrier of all GPUs by operations of streams on memory. Single,
	// Batch and Node are the fixed cost of one copy, of a batch of several, and of each
	// copy in a CUDA graph. Rate is what a copy to a peer moves, in GB/s.
	Barrier, Single, Batch, Node, Rate float64
}

// CopyTime is the time of a rank's copies in microseconds, of bytes each: to peers, and
// with own one in its own memory. As a batch engines share them so that the links bound
// them; else one comes after the other. links is the time in microseconds that the
// fullest link needs for all of them.
func (c *Class) CopyTime(peers int, own bool, bytes int64, batch bool, links float64) float64 {
	one, local, copies := float64(bytes)/(c.Copy.Rate*1e3), 0.0, peers
	if own {
		local, copies = 2*float64(bytes)/(c.One.MemoryRate*1e3), peers+1
	}
	switch {
	case copies == 0:
		return 0
	case !batch:
		return math.Max(float64(copies)*c.Copy.Node+float64(peers)*one+local, links)
	case copies == 1:
		return c.Copy.Single + math.Max(one*float64(peers), links) + local
	}
	return c.Copy.Batch + math.Max(one, links) + local
}
