// Package torch translates what PyTorch's process groups call operations and types, and reads its execution
// traces: the operators of one rank with their inputs. Of these it keeps what a job's communication needs:
// calls of process groups with their sizes, and the groups. An execution trace has no times.
//
// What it must not know: files, machines.
//
// Source: PyTorch 2.1 to 2.11, torch/csrc/distributed/c10d (ProcessGroupNCCL.cpp, ParamCommsUtils.hpp) and
// torch/csrc/profiler/standalone/execution_trace_observer.cpp; schemas 1.0.1 (members on the node) to 1.1.1.
package torch

import (
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// Translate converts the arguments of a call of PyTorch's process group to a Call: its name as recordings
// spell it, the element type, elements in and out, the size of the group, root or peer, and the split of an
// all_to_all along the first dimension. ok is false for an unknown name or type.
func Translate(name, typ string, in, out, size int64, root int32, split []int64) (c workload.Call, ok bool) {
	n := spellings.Replace(strings.ReplaceAll(strings.ToLower(name), "_", ""))
	c.Type, ok = elementType(typ)
	if !ok || size < 1 {
		return c, false
	}
	c.Count = in
	switch n {
	case "allreduce", "allreducesparse":
		c.Func = coll.AllReduce
	case "barrier", "allreducebarrier":
		c.Func, c.Count = coll.AllReduce, max(in, 1)
	case "allgather":
		c.Func = coll.AllGather
	case "reducescatter":
		c.Func, c.Count = coll.ReduceScatter, out
	case "broadcast":
		c.Func, c.Root = coll.Broadcast, max(root, 0)
	case "reduce":
		c.Func, c.Root = coll.Reduce, max(root, 0)
	case "gather":
		c.Func, c.Root = coll.Gather, max(root, 0)
	case "scatter":
		c.Func, c.Root, c.Count = coll.Scatter, max(root, 0), out
	case "alltoall", "alltoallv":
		c.Func, c.Count = coll.AllToAll, in/size
		c.Splits = splits(split, in, size)
	case "send":
		c.Func, c.Peer = coll.Send, root
	case "recv", "recvanysource":
		c.Func, c.Peer, c.Count = coll.Recv, root, max(out, in)
	default:
		return c, false
	}
	return c, c.Count >= 0 && c.Peer >= 0
}

// spellings removes the parts of names that do not change the operation, after the underscores are removed:
// all_gather_into_tensor_coalesced is an allgather.
var spellings = strings.NewReplacer("intotensor", "", "tensor", "", "base", "", "coalesced", "", "oop", "",
	"single", "")

// splits turns rows to each peer into elements; nil where all are equal.
func splits(rows []int64, elements, size int64) []int64 {
	if int64(len(rows)) != size {
		return nil
	}
	sum, equal := int64(0), true
	for _, n := range rows {
		if n < 0 || n > elements {
			return nil
		}
		sum += n
		equal = equal && n == rows[0]
	}
	if equal || sum == 0 || elements%sum != 0 {
		return nil
	}
	out := make([]int64, size)
	for i, n := range rows {
		out[i] = n * (elements / sum)
	}
	return out
}

// elementTypes maps PyTorch's names of types, in lower case, to NCCL's types.
var elementTypes = map[string]coll.DataType{
	"float": coll.Float32, "float32": coll.Float32, "double": coll.Float64, "float64": coll.Float64,
	"half": coll.Float16, "float16": coll.Float16,
	"bfloat16": coll.BFloat16, "byte": coll.Uint8, "uint8": coll.Uint8, "bool": coll.Uint8, "char": coll.Int8,
	"int8": coll.Int8,
	"int":  coll.Int32, "int32": coll.Int32, "long": coll.Int64, "int64": coll.Int64, "long int": coll.Int64,
	"uint32": coll.Uint32, "uint64": coll.Uint64,
	"float8_e4m3fn": coll.Float8e4m3, "float8_e5m2": coll.Float8e5m2, "short": coll.Float16,
	"int16": coll.Float16,
}

// elementType returns the type of a PyTorch name: Float, BFloat16, c10::Half. A type that NCCL lacks is the
// type of the same size that PyTorch sends instead.
func elementType(name string) (coll.DataType, bool) {
	t, ok := elementTypes[strings.ToLower(strings.TrimPrefix(name, "c10::"))]
	return t, ok
}
