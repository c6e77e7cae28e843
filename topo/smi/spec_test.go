package smi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/topo/machine"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomSpec is any machine that a description can say: GPUs anywhere in any order, NICs of
// two kinds, switches below switches, NVLinks of every kind.
func randomSpec(r *rand.Rand) *machine.Spec {
	s := &machine.Spec{Name: "random", CPU: pick(r, "milan", "sapphire-rapids", "grace"),
		NUMA: []machine.NUMA{}}
	s.GPU = machine.GPU{Kind: pick(r, "a100-sxm", "h100-sxm", "gh200", "l40s", "v100-sxm2"),
		NoGDR: r.IntN(4) == 0, PCIe: pick(r, "", "", "3x8", "unknown")}
	s.NIC = machine.NIC{Kind: pick(r, "connectx-7", "efa", "connectx-6-roce"), Ports: r.IntN(3),
		Speed: pick(r, 0, 50000)}
	for _, id := range r.Perm(8)[:1+r.IntN(4)] {
		s.NUMA = append(s.NUMA, machine.NUMA{ID: id, Cores: pick(r, "", "0-3,36", fmt.Sprint(id))})
		for range 1 + r.IntN(3) {
			g := randomGroup(r, 0)
			g.NUMA, g.Bridge = id, r.IntN(3)
			s.Groups = append(s.Groups, g)
		}
	}
	if s.Groups[0].GPUs == 0 {
		s.Groups[0].GPUs = 1
	}
	n := s.GPUs()
	if r.IntN(2) == 0 {
		s.GPU.Devs = r.Perm(n)
	}
	if other := randomNICs(s.Groups); other == 0 && r.IntN(2) == 0 {
		s.NIC.Devs = r.Perm(s.Ports() + 3)[:s.Ports()]
		if s.Ports() == 0 {
			s.NIC.Devs = nil
		}
	}
	switch r.IntN(6) {
	case 0:
		s.NVLink.Switch = true
	case 1:
		s.NVLink = machine.NVLink{Switch: true, Counts: []int{1, 2, 3}}
	case 2:
		s.NVLink.Switch = true
		for range n {
			s.NVLink.Each = append(s.NVLink.Each, 1+r.IntN(4))
		}
	case 3:
		s.NVLink.Mesh = 1 + r.IntN(2)
	case 4:
		for b := range n - 1 {
			if r.IntN(2) == 0 {
				s.NVLink.Pairs = append(s.NVLink.Pairs, [3]int{b, b + 1 + r.IntN(n-b-1), 1 + r.IntN(3)})
			}
		}
	}
	return s
}

// randomNICs is how many groups have NICs of a kind of their own.
func randomNICs(groups []machine.Group) int {
	n := 0
	for i := range groups {
		if groups[i].NIC != nil {
			n++
		}
		n += randomNICs(groups[i].Below)
	}
	return n
}

func randomGroup(r *rand.Rand, depth int) machine.Group {
	g := machine.Group{GPUs: r.IntN(3), NICs: r.IntN(3), NICsFirst: r.IntN(2) == 0, Times: r.IntN(3)}
	for range r.IntN(3) {
		g.Switches = append(g.Switches, pick(r, "broadcom-gen4", "broadcom-gen5", "plx-gen3", "virtual-gen4"))
	}
	if g.GPUs+g.NICs == 0 {
		g.GPUs = 1
	}
	if r.IntN(5) == 0 && g.NICs > 0 {
		g.NIC = &machine.NIC{Kind: "ethernet", Virtual: len(g.Switches) == 0 && depth == 0, Ports: 1 +
			r.IntN(2)}
	}
	if len(g.Switches) > 0 {
		g.Apart = r.IntN(4) == 0
		for range r.IntN(3) {
			if depth < 2 {
				g.Below = append(g.Below, randomGroup(r, depth+1))
			}
		}
	}
	return g
}

// TestRandomSpecs: the topology of a description is described and generated again as the
// same file, and its matrix, as text, becomes a machine with that matrix.
func TestRandomSpecs(t *testing.T) {
	for seed := range seeds(t, 400) {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		s := randomSpec(r)
		for s.GPUs()+s.Ports() > 40 {
			s = randomSpec(r)
		}
		root, err := s.Generate()
		if err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, s)
		}
		file := topoxml.Write(root)
		spec, err := topoxml.Parse(file, "s.xml")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		back, err := machine.Describe(spec.Root, "back")
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, file)
		}
		again, err := back.Generate()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := topoxml.Write(again); !bytes.Equal(got, file) {
			a, b := bytes.Split(file, []byte("\n")), bytes.Split(got, []byte("\n"))
			for i := range a {
				if i >= len(b) || !bytes.Equal(a[i], b[i]) {
					t.Fatalf("seed %d: line %d\n%s\nis described as\n%s\n%+v\n%+v", seed, i, a[i],
						b[min(i, len(b)-1)], s.Groups, back.Groups)
				}
			}
		}
		m := Of(root)
		if compare(m, Of(again)) != nil {
			t.Fatalf("seed %d: the described machine has another matrix", seed)
		}
		read, err := Parse(m.Text(), "m.txt", Kinds{GPU: s.GPU.Kind, CPU: s.CPU})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, m.Text())
		}
		made, err := read.Generate()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := compare(m, Of(made)); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, m.Text())
		}
	}
}
