package grouplog

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/rules"
)

// TestOneCallIsTheOperationAlone: a group of one collective has its choice and its split
// of today, on every example topology, on one node and on two, by every release.
func TestOneCallIsTheOperationAlone(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(golden.Root(t), "testdata", "topos", "*.xml"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d topologies: %v", len(files), err)
	}
	compared := 0
	for i, file := range files {
		for nodes := 1; nodes <= 2; nodes++ {
			releases := []rules.Release{rules.Default().Release}
			if i%4 == 0 && !testing.Short() {
				releases = rules.Known()
			}
			for _, v := range releases {
				s, err := site.OpenFor(v.String(), site.Nodes(file, nodes))
				if err != nil {
					continue // a node without a net has no second one
				}
				compared += aloneOn(t, strings.TrimSuffix(filepath.Base(file), ".xml")+" "+v.String(), s.Comm)
			}
		}
	}
	t.Logf("%d operations", compared)
	if compared < 10_000 {
		t.Errorf("only %d operations were compared", compared)
	}
}

func aloneOn(t *testing.T, name string, c *comm.Comm) (compared int) {
	if c.NRanks == 1 {
		return 0
	}
	for _, f := range coll.CollFuncs() {
		for _, typ := range []coll.DataType{coll.Float32, coll.BFloat16, coll.Int8} {
			for _, op := range []coll.RedOp{coll.Sum, coll.Avg} {
				for count := int64(1); count < 1<<28; count = count*5 + 3 {
					o := comm.Op{Func: f, Type: typ, RedOp: op, Count: count}
					r, _, err := c.Request(o)
					if err != nil {
						continue // no algorithm is left
					}
					split, err := build.Split(c.Layout, r)
					if err != nil {
						continue
					}
					kernels, err := c.Group([]launch.Call{{Func: f, Type: typ, Op: op, Count: count}},
						launch.Eager)
					if err != nil || len(kernels) != 1 || len(kernels[0].Tasks) != 1 {
						t.Errorf("%s, %d ranks: %v of %d: %v, %d kernels", name, c.NRanks, f, count, err,
							len(kernels))
						return compared
					}
					got := kernels[0].Tasks[0]
					if got.Req.Cut = nil; !reflect.DeepEqual(got.Split, split) || got.Req.Algo != r.Algo ||
						got.Req.Proto != r.Proto || got.Req.Channels != r.Channels ||
						got.Req.Warps != r.Warps {
						t.Errorf("%s, %d ranks: %v of %d %v %v: %v %v on %+v, alone %v %v on %+v", name,
							c.NRanks, f, count, typ, op, got.Req.Algo, got.Req.Proto, got.Split, r.Algo,
							r.Proto, split)
						return compared
					}
					compared++
				}
			}
		}
	}
	return compared
}
