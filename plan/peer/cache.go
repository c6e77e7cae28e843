package peer

import (
	"fmt"

	"github.com/simccl/simccl/plan"
)

// Kernels of a transfer: RDMA writes of the prefill side (Mooncake's default), or reads of the decode side
// (NIXL's in vLLM).
const (
	CacheWrite = "write"
	CacheRead  = "read"
)

// Cache is a transfer of the KV cache of one request from the prefill ranks, which filled it, to the decode
// ranks. Heads are spread evenly over the ranks of each side.
type Cache struct {
	From, To    int // degrees of tensor parallelism of the two sides
	Layers      int64
	BlockTokens int64 // tokens of a block of the cache
	Bytes       int64 // keys and values of all heads, per token and layer
	Tokens      int64 // of the request
	// Read: the decode ranks read the blocks; otherwise the prefill ranks write them.
	Read bool
	// Behind: the prefill ranks come after the decode ranks.
	Behind bool
}

// Plan plans the transfer. The decode ranks come after the prefill ranks, unless Behind. Each layer's blocks
// move separately. Errors: a *plan.UnsupportedError.
func (c *Cache) Plan() (*Plan, error) {
	no := func(why string, args ...any) (*Plan, error) {
		return nil, &plan.UnsupportedError{What: "kv_transfer", Why: fmt.Sprintf(why, args...)}
	}
	from, to := int64(c.From), int64(c.To)
	switch {
	case float64(c.Layers)*float64(c.Bytes)*float64(c.Tokens) > mostBytes:
		return no("the request has more than %g bytes", float64(mostBytes))
	case max(from, to)%min(from, to) != 0:
		return no("degrees %d and %d: one must be a multiple of the other", from, to)
	case c.Bytes%max(from, to) != 0:
		return no("%d bytes a token and layer do not divide over %d ranks", c.Bytes, max(from, to))
	case c.Tokens%c.BlockTokens != 0:
		return no("%d tokens are no whole number of blocks of %d", c.Tokens, c.BlockTokens)
	}
	blocks := c.Tokens / c.BlockTokens * c.Layers
	p := &Plan{Op: "kv_transfer", Kernel: CacheWrite, Ranks: c.From + c.To}
	ph := Phase{Name: "blocks"}
	if c.Read {
		p.Kernel = CacheRead
	}
	pieces := max(from, to)
	for i := range pieces {
		src, dst := int32(i*from/pieces), int32(from+i*to/pieces)
		if c.Behind {
			src, dst = int32(to)+src, dst-int32(from)
		}
		part := int32(len(p.Parts))
		p.Parts = append(p.Parts, Part{Items: blocks, Bytes: blocks * c.BlockTokens * c.Bytes / pieces,
			Of: -1})
		p.Has = append(p.Has, Place{src, In, part})
		p.Goals = append(p.Goals, Goal{Place{dst, Out, part}, []int32{src}})
		move := Move{By: src, Way: Write, Sources: []Place{{src, In, part}}, To: Place{dst, Out, part}}
		if c.Read {
			move.By, move.Way = dst, Read
		}
		ph.Moves = append(ph.Moves, move)
	}
	p.Phases = []Phase{ph}
	return p, nil
}
