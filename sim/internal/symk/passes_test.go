package symk

import (
	"reflect"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/sim/gpu"
)

// The loops of NCCL's kernels, counted by hand from device/symmetric of v2.28.9-1.
func TestPasses(t *testing.T) {
	task := func(f coll.Func, typ coll.DataType, count int64) sym.Task {
		return sym.Task{Func: f, Type: typ, Count: count}
	}
	for _, tt := range []struct {
		name   string
		kernel sym.Kernel
		ranks  int
		task   sym.Task
		blocks int
		want   []pass
	}{
		// 32 chunks of 8 KiB are one for each of 8 blocks and 4 ranks: 128 units of a
		// warp for 128 warps.
		{"ReduceScatter of 256 KiB a rank, 8 blocks", sym.ReduceScatterLD, 4,
			task(coll.ReduceScatter, coll.Float32, 1<<16), 8,
			[]pass{{1, gpu.SymLoop{Packs: 4, Pack: 16, Active: 1, Rounds: []int{1, 2}, Stores: 1,
				Own: true}}}},
		// 8 chunks of 8 KiB are fewer than 20; of 32 of 2 KiB 20 are taken, and 24 KiB
		// are left for 2,560 threads of single elements.
		{"ReduceScatter of 64 KiB a rank, 5 blocks", sym.ReduceScatterLD, 4,
			task(coll.ReduceScatter, coll.Float32, 1<<14), 5,
			[]pass{{1, gpu.SymLoop{Packs: 4, Pack: 4, Active: 1, Rounds: []int{1, 2}, Stores: 1, Own: true}},
				{3, gpu.SymLoop{Packs: 1, Pack: 4, Active: 1, Rounds: []int{3}, Stores: 1}}}},
		// The warps of all ranks share an AllReduce: 8 chunks, 32 units, 128 warps.
		{"AllReduce of 64 KiB, 2 blocks", sym.AllReduceLDST, 4, task(coll.AllReduce, coll.Float32, 1<<14), 2,
			[]pass{{1, gpu.SymLoop{Packs: 4, Pack: 16, Active: .25, Rounds: []int{1, 2}, Stores: 4,
				Own: true}}}},
		// 8 ranks: one peer, then pairs of them.
		{"AllReduce of 8 ranks", sym.AllReduceLDST, 8, task(coll.AllReduce, coll.Float32, 1<<18), 4,
			[]pass{{1, gpu.SymLoop{Packs: 4, Pack: 16, Active: 1, Rounds: []int{1, 2, 2, 2}, Stores: 8,
				Own: true}}}},
		// A rank's part that begins at no multiple of 4 bytes goes byte by byte.
		{"AllGather of 1,026 bytes a rank", sym.AllGatherST, 4, task(coll.AllGather, coll.Int8, 1026), 1,
			[]pass{{3, gpu.SymLoop{Packs: 1, Pack: 1, Active: 1, Stores: 4, Own: true}}}},
		// The switch reduces 4 KiB a warp, of 8 ranks with 2 blocks of 16 warps.
		{"AllReduce of 1 MiB through the switch", sym.AllReduceMC, 8, task(coll.AllReduce, coll.Float32,
			1<<18), 2,
			[]pass{{1, gpu.SymLoop{Packs: 8, Pack: 16, Active: 1, Rounds: []int{1}, Stores: 1,
				Reduced: true}}}},
	} {
		s := shape{tt.kernel, tt.ranks, 0}
		got := s.passes(tt.task, sym.Part{Elements: tt.task.Count, Blocks: tt.blocks})
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.name, got, tt.want)
		}
	}
}
