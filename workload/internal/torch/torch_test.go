package torch

import (
	"testing"

	"github.com/simccl/simccl/coll"
)

// TestNames: what moves does not depend on how a release spells it (PyTorch 1.13 to 2.11,
// Kineto and Flight Recorder).
func TestNames(t *testing.T) {
	for f, names := range map[coll.Func][]string{
		coll.AllReduce: {"allreduce", "all_reduce", "allreduce_coalesced", "all_reduce_barrier",
			"barrier"},
		coll.AllGather: {"allgather", "_allgather_base", "all_gather", "_all_gather_base",
			"all_gather_into_tensor", "allgather_into_tensor_coalesced", "all_gather_into_tensor_coalesced",
			"ALLGATHER_coalesced", "_allgather_oop"},
		coll.ReduceScatter: {"reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor",
			"reduce_scatter_tensor_coalesced", "_reduce_scatter_oop"},
		coll.AllToAll:  {"all_to_all", "all_to_allv", "alltoall_base", "all_to_all_single"},
		coll.Broadcast: {"broadcast", "_broadcast_oop"}, coll.Reduce: {"reduce", "_reduce_oop"},
		coll.Gather: {"gather"}, coll.Scatter: {"scatter"},
		coll.Send: {"send"}, coll.Recv: {"recv", "recv_any_source"},
	} {
		for _, name := range names {
			if c, ok := Translate(name, "BFloat16", 1024, 512, 2, 1, nil); !ok || c.Func != f {
				t.Errorf("%s: %v, %v, want %v", name, c.Func, ok, f)
			}
		}
	}
	for _, name := range []string{"", "wait", "init", "tensor", "all", "start_coalescing"} {
		if c, ok := Translate(name, "Float", 1, 1, 2, 0, nil); ok {
			t.Errorf("%q is %v", name, c.Func)
		}
	}
}
