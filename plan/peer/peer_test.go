package peer

import (
	"errors"
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"pgregory.net/rapid"
)

// Every plan of every kernel ends with what its operation promises.
func TestPlansAreProven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, per := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 8).Draw(t, "ranks of a node")
		var nodeOf []int32
		for v := range nodes {
			for range per {
				nodeOf = append(nodeOf, int32(v))
			}
		}
		e := Experts{Kernel: rapid.SampledFrom(ExpertKernels()).Draw(t,
			"kernel"),
			Combine: rapid.Bool().Draw(t, "combine"), Hidden: 7168, Element: 1, GPUSMs: 132, NodeOf: nodeOf,
			Experts: int64(len(nodeOf)) * rapid.Int64Range(1, 8).Draw(t, "local experts"),
			Tokens:  rapid.Int64Range(1, 300).Draw(t, "tokens")}
		e.TopK = rapid.Int64Range(1, min(8, e.Experts)).Draw(t, "top k")
		if rapid.Bool().Draw(t, "groups") {
			e.Groups = int64(nodes)
			e.TopKGroups = rapid.Int64Range((e.TopK*e.Groups+e.Experts-1)/e.Experts, e.Groups).Draw(t,
				"top k groups")
		}
		if e.Kernel == OneSided { // within one NVLink domain
			clear(e.NodeOf)
		}
		p, err := e.Plan()
		if len(nodeOf) < 2 {
			var no *plan.UnsupportedError
			if !errors.As(err, &no) {
				t.Fatalf("one rank: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// Both kernels of all_reduce are proven at each number of ranks and at sizes whose parts are
// unequal; what they cannot do is refused by type.
func TestAllReduce(t *testing.T) {
	for _, kernel := range []string{OneShot, OneShotPush, OneShotPushNorm, TwoShot} {
		for _, n := range []int{2, 4, 6, 8} {
			for _, count := range []int64{8, 24, 1 << 16, 1<<16 + 8} {
				p, err := AllReduce(kernel, n, count, coll.BFloat16, coll.Sum)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Check(); err != nil {
					t.Errorf("%s, %d ranks, %d: %v", kernel, n, count, err)
				}
				sum := int64(0)
				for _, part := range p.Parts {
					sum += part.Bytes
				}
				if kernel == OneShotPush || kernel == OneShotPushNorm {
					sum /= int64(n + 1)
				}
				if sum != 2*count {
					t.Errorf("%s, %d ranks: parts have %d bytes of %d", kernel, n, sum, 2*count)
				}
			}
		}
		for _, tt := range []struct {
			ranks int
			count int64
			typ   coll.DataType
			op    coll.RedOp
		}{{3, 8, coll.BFloat16, coll.Sum}, {16, 8, coll.BFloat16, coll.Sum}, {8, 7, coll.BFloat16, coll.Sum},
			{8, 8, coll.Int32, coll.Sum}, {8, 8, coll.Float32, coll.Max}} {
			var no *plan.UnsupportedError
			if _, err := AllReduce(kernel, tt.ranks, tt.count, tt.typ, tt.op); !errors.As(err, &no) {
				t.Errorf("%s %+v: %v", kernel, tt, err)
			}
		}
	}
}

// Kernels over multicast memory are proven at any number of ranks, also where the last ranks have no part; of
// their loads and stores one is left out, or one too many, and they are not.
func TestMultimem(t *testing.T) {
	for _, kernel := range []string{Multimem, MultimemCopy, MultimemOneShot} {
		for _, n := range []int{2, 3, 8, 16} {
			for _, count := range []int64{8, 40, 1 << 16, 1<<16 + 8} {
				p, err := AllReduce(kernel, n, count, coll.BFloat16, coll.Sum)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Check(); err != nil {
					t.Errorf("%s, %d ranks, %d: %v", kernel, n, count, err)
				}
			}
		}
		p, err := AllReduce(kernel, 4, 1<<12, coll.Float32, coll.Sum)
		if err != nil {
			t.Fatal(err)
		}
		if p.Blocks != 1 && kernel != MultimemOneShot {
			t.Errorf("%s: %d blocks of 1,024 threads for 4 KiB", kernel, p.Blocks)
		}
		m := &p.Phases[len(p.Phases)/2].Moves[1]
		m.Sources = m.Sources[1:]
		var wrong *WrongError
		if err := p.Check(); !errors.As(err, &wrong) {
			t.Errorf("%s without a source: %v", kernel, err)
		}
		for _, bad := range []struct {
			count int64
			typ   coll.DataType
			op    coll.RedOp
		}{{8, coll.Float16, coll.Sum}, {8, coll.Float32, coll.Max}, {7, coll.BFloat16, coll.Sum}} {
			var no *plan.UnsupportedError
			if _, err := AllReduce(kernel, 4, bad.count, bad.typ, bad.op); !errors.As(err, &no) {
				t.Errorf("%s %+v: %v", kernel, bad, err)
			}
		}
	}
	p, err := AllReduce(Multimem, 4, 1<<12, coll.Float32, coll.Sum)
	if err != nil {
		t.Fatal(err)
	}
	m := &p.Phases[0].Moves[1]
	m.Also = m.Also[:2]
	var wrong *WrongError
	if err := p.Check(); !errors.As(err, &wrong) {
		t.Errorf("a destination is left out: %v", err)
	}
}

// A plan that leaves out a flag barrier, a rank or a part, or sums a part twice, is not proven.
func TestCheckFindsDefects(t *testing.T) {
	make2 := func() *Plan {
		p, err := AllReduce(TwoShot, 4, 1<<12, coll.Float32, coll.Sum)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, break_ := range map[string]func(p *Plan){
		"no barrier between the shots": func(p *Plan) {
			p.Phases[0].Moves = append(p.Phases[0].Moves, p.Phases[1].Moves...)
			p.Phases = p.Phases[:1]
		},
		"a rank's part is left out": func(p *Plan) { p.Phases[1].Moves = p.Phases[1].Moves[1:] },
		"a contribution is left out": func(p *Plan) {
			p.Phases[0].Moves[2].Sources = p.Phases[0].Moves[2].Sources[1:]
		},
		"a contribution is there twice": func(p *Plan) {
			m := &p.Phases[0].Moves[2]
			m.Sources = append(m.Sources, m.Sources[0])
		},
		"two write one place": func(p *Plan) {
			p.Phases[1].Moves = append(p.Phases[1].Moves, p.Phases[1].Moves[0])
		},
		"the second shot is first": func(p *Plan) {
			p.Phases[0], p.Phases[1] = p.Phases[1], p.Phases[0]
		},
	} {
		p := make2()
		break_(p)
		var wrong *WrongError
		if err := p.Check(); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// DeepEP's bytes: 7,168 values of FP8 have 56 scales; a token that goes to all of eight experts
// on eight ranks has a copy for each; between nodes one for each node.
func TestBytesOfTokens(t *testing.T) {
	e := Experts{Kernel: DeepEPLowLatency, Hidden: 7168, Element: 1, GPUSMs: 132, Experts: 8, TopK: 8,
		Tokens: 128,
		NodeOf: make([]int32, 8)}
	p, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Parts[1]; got.Items != 128 || got.Bytes != 128*(7168+56*4+16) {
		t.Errorf("low latency: %+v", got)
	}
	e.Kernel, e.NodeOf = DeepEP, []int32{0, 0, 0, 0, 1, 1, 1, 1}
	if p, err = e.Plan(); err != nil {
		t.Fatal(err)
	}
	crossed := int64(0)
	for _, m := range p.Phases[0].Moves {
		crossed += p.Parts[m.To.Part].Items
	}
	if p.Phases[0].Name != "between nodes" || crossed != 8*128 {
		t.Errorf("%s: %d tokens cross", p.Phases[0].Name, crossed)
	}
}

// Of 8 nodes a token goes to those of its groups: 4, of which one in 8 is its own, where each node has one of
// 8 groups; without groups to 8 (1 - C(224,8)/C(256,8)) = 5.3. What groups do not allow is refused.
func TestGroupsOfExperts(t *testing.T) {
	e := Experts{Kernel: DeepEP, Hidden: 7168, Element: 1, GPUSMs: 132, Experts: 256, TopK: 8, Tokens: 4096}
	for r := range int32(64) {
		e.NodeOf = append(e.NodeOf, r/8)
	}
	crossed := func() float64 {
		p, err := e.Plan()
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for _, m := range p.Phases[0].Moves {
			n += p.Parts[m.To.Part].Items
		}
		return float64(n) / 64 / 4096
	}
	if got, want := crossed(), 8*some(256, 32, 8)*7/8; math.Abs(got-want) > 0.01 || want < 4.6 || want > 4.7 {
		t.Errorf("%.3f nodes without groups, want %.3f", got, want)
	}
	e.Groups, e.TopKGroups = 8, 4
	if got := crossed(); got != 3.5 {
		t.Errorf("%.3f nodes with groups, want 3.5", got)
	}
	e.TopKGroups, e.TopK = 1, 33
	var no *plan.UnsupportedError
	if _, err := e.Plan(); !errors.As(err, &no) {
		t.Errorf("33 experts of a group of 32: %v", err)
	}
}

// A cache moves between degrees of tensor parallelism head by head, whole and once.
func TestCacheIsProven(t *testing.T) {
	for _, tt := range []struct{ from, to, moves int }{{8, 8, 8}, {4, 8, 8}, {8, 2, 8}, {1, 4, 4}} {
		c := Cache{From: tt.from, To: tt.to, Layers: 61, BlockTokens: 64, Bytes: 4096, Tokens: 4096}
		p, err := c.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		c.Read = true
		read, err := c.Plan()
		if err != nil || read.Check() != nil || read.Kernel != CacheRead ||
			read.Phases[0].Moves[0].By != p.Phases[0].Moves[0].To.Rank {
			t.Errorf("reads of %+v: %+v, %v", tt, read, err)
		}
		sum := int64(0)
		for _, part := range p.Parts {
			sum += part.Bytes
		}
		if len(p.Phases[0].Moves) != tt.moves || sum != 61*4096*4096 {
			t.Errorf("%+v: %d moves of %d bytes", tt, len(p.Phases[0].Moves), sum)
		}
	}
	c := Cache{From: 3, To: 8, Layers: 1, BlockTokens: 1, Bytes: 24, Tokens: 1}
	if _, err := c.Plan(); err == nil {
		t.Error("3 to 8: no error")
	}
}
