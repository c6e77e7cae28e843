package build

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// maxBytes bounds a buffer so that no offset can overflow.
const maxBytes = 1 << 56

// validate returns a *plan.RequestError for requests that contradict themselves or the communicator.
func validate(c *connect.Layout, r *plan.Request) error {
	switch {
	case c == nil || c.NRanks < 1:
		return badRequest("Comm", "has no ranks")
	case c.Rules == nil:
		return badRequest("Comm", "has no rules; give those of a release, as connect.Join does")
	case r.Way != "":
		return &plan.UnsupportedError{What: fmt.Sprintf("%v by %s", r.Func, r.Way),
			Why: c.Rules.Name() +
				" takes it in place of an algorithm, and it is no plan of channels: simccl run " +
				"has its time; " + r.Otherwise}
	case !r.Func.Valid() && r.Func != coll.Send:
		return badRequest("Func", "%d is no operation", r.Func)
	case !r.Type.Valid():
		return badRequest("Type", "%d is no data type", r.Type)
	case r.Count < 0:
		return badRequest("Count", "%d is negative", r.Count)
	case r.Count > maxBytes/int64(r.Type.Size())/int64(c.NRanks):
		return badRequest("Count", "%d elements per rank are more than any memory", r.Count)
	case r.Func.Rooted() && (r.Root < 0 || int(r.Root) >= c.NRanks):
		return badRequest("Root", "%d is not a rank of %d; give 0 to %d", r.Root, c.NRanks, c.NRanks-1)
	case r.Func == coll.Send && (min(r.Root, r.Peer) < 0 || int(max(r.Root, r.Peer)) >= c.NRanks):
		return badRequest("Peer", "a message from %d to %d; ranks are from 0 to %d", r.Root, r.Peer,
			c.NRanks-1)
	case r.Pairs != nil && (r.Func != coll.AllToAll || r.Pairs.Ranks() != c.NRanks):
		return badRequest("Pairs", "counts of %d ranks for %v of %d; they are of AllToAll alone",
			r.Pairs.Ranks(), r.Func, c.NRanks)
	case r.Pairs != nil && r.Pairs.Count() != r.Count:
		return badRequest("Count", "%d, but the mean of Pairs is %d", r.Count, r.Pairs.Count())
	case r.Func.Reduces() && !r.Op.Valid():
		return badRequest("Op", "%d is no reduction", r.Op)
	}
	if unsplit(c, r) {
		return nil
	}
	switch {
	case !r.Algo.Valid():
		return badRequest("Algo", "%d is no algorithm", r.Algo)
	case !r.Proto.Valid():
		return badRequest("Proto", "%d is no protocol", r.Proto)
	case r.Channels < 1:
		return badRequest("Channels", "%d; give at least 1", r.Channels)
	case r.Warps < 1 || r.Warps > 20:
		return badRequest("Warps", "%d; a kernel has 1 to 20 warps", r.Warps)
	case r.Proto != coll.Simple && !r.Algo.HasLL():
		return noKernel(r, "only Ring and Tree have LL and LL128 kernels")
	}
	return algorithms[r.Algo].supports(c, r)
}

func badRequest(field, format string, args ...any) error {
	return &plan.RequestError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// noKernel returns the error for a combination without an NCCL kernel (device/generate.py), or one that is
// not modelled.
func noKernel(r *plan.Request, format string, args ...any) error {
	return &plan.UnsupportedError{What: fmt.Sprintf("%v with %v/%v", r.Func, r.Algo, r.Proto),
		Why: fmt.Sprintf(format, args...)}
}

// averages reports whether the result is scaled at the end.
func averages(r *plan.Request) bool { return r.Func.Reduces() && r.Op == coll.Avg }
