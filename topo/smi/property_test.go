package smi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/machine"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// seeds are those of the random cases that a property is held against: the usual ones, or
// SIMCCL_CASES, a number of them or the first and the one behind the last ("400:800").
func seeds(t *testing.T, usual int) iter.Seq[int] {
	t.Helper()
	from, to := 0, usual
	if text := os.Getenv("SIMCCL_CASES"); text != "" {
		first, behind, both := strings.Cut(text, ":")
		if !both {
			first, behind = "0", text
		}
		var err error
		if from, err = strconv.Atoi(first); err == nil {
			to, err = strconv.Atoi(behind)
		}
		if err != nil {
			t.Fatalf("SIMCCL_CASES=%s: %v", text, err)
		}
	}
	return func(yield func(int) bool) {
		for seed := from; seed < to && yield(seed); seed++ {
		}
	}
}

// randomMatrix is the matrix of a random machine: devices anywhere, numbered in any order,
// NVLinks of every kind that a GPU can have.
func randomMatrix(r *rand.Rand) *Matrix {
	var leaves []draw.Place
	var at draw.Place
	ids := r.Perm(16)
	for range 1 + r.IntN(4) {
		at.NUMA++
		for range 1 + r.IntN(3) {
			at.Bridge++
			for range 1 + r.IntN(2) {
				at.Tree++
				for range 1 + r.IntN(3) {
					at.PIX++
					for range 1 + r.IntN(2) {
						leaves = append(leaves, at)
					}
				}
			}
		}
	}
	r.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
	leaves = leaves[:1+r.IntN(min(len(leaves), 24))]
	m := &Matrix{GPUs: 1 + r.IntN(min(len(leaves), 16))}
	numa := affinities(r, ids)
	for i := range leaves {
		d := Device{Name: fmt.Sprintf("GPU%d", i)}
		if i >= m.GPUs {
			d.Name = fmt.Sprintf("mlx5_%d", i-m.GPUs)
		} else if numa != nil {
			d.NUMA, d.Cores = numa[leaves[i].NUMA], fmt.Sprintf("%d-%d", 8*leaves[i].NUMA, 8*leaves[i].NUMA+7)
		}
		m.Devices = append(m.Devices, d)
		row := make([]string, len(leaves))
		for j := range leaves {
			if row[j] = leaves[i].To(leaves[j]); i == j {
				row[j] = "X"
			}
		}
		m.Cells = append(m.Cells, row)
	}
	m.randomLinks(r)
	return m
}

// affinities are the NUMA nodes of each socket: one, two (SNC), or not known.
func affinities(r *rand.Rand, ids []int) map[int][]int {
	out := map[int][]int{}
	kind := r.IntN(3)
	for s := 1; s <= 4; s++ {
		switch kind {
		case 0:
			return nil
		case 1:
			out[s] = []int{ids[s]}
		case 2:
			out[s] = []int{2 * ids[s], 2*ids[s] + 1}
		}
	}
	return out
}

// randomLinks puts NVLinks between GPUs: none, to NVSwitches, with GPUs that lost some, or
// between some pairs.
func (m *Matrix) randomLinks(r *rand.Rand) {
	set := func(a, b, n int) {
		if n > 0 {
			m.Cells[a][b], m.Cells[b][a] = fmt.Sprintf("NV%d", n), fmt.Sprintf("NV%d", n)
		}
	}
	each := make([]int, m.GPUs)
	kind, usual := r.IntN(4), []int{6, 8, 12, 18}[r.IntN(4)]
	for i := range each {
		if each[i] = usual; kind == 2 && r.IntN(4) == 0 {
			each[i] = r.IntN(usual + 1)
		}
	}
	left := slices.Repeat([]int{maxLinks}, m.GPUs)
	for a := range m.GPUs {
		for b := range a {
			switch kind {
			case 1, 2:
				set(a, b, min(each[a], each[b]))
			case 3:
				if n := r.IntN(5); n > 0 && r.IntN(2) == 0 && n <= min(left[a], left[b]) {
					set(a, b, n)
					left[a], left[b] = left[a]-n, left[b]-n
				}
			}
		}
	}
}

// TestRandomMatrices: the machine that a matrix becomes has, by name, the paths that were
// read: in its description, in its file, and as NCCL sees it.
func TestRandomMatrices(t *testing.T) {
	for seed := range seeds(t, 400) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		want := randomMatrix(r)
		text, in := wrap(r, want.Text())
		if TableOf(text) == None {
			t.Fatalf("seed %d (%s): not known for a matrix:\n%s", seed, in, text)
		}
		s, err := Parse(text, "m.txt", Kinds{})
		if err != nil {
			t.Fatalf("seed %d (%s): %v\n%s", seed, in, err, text)
		}
		if strings.Contains(in, "table") {
			for i := want.GPUs; i < len(want.Devices); i++ {
				want.Devices[i].Name = fmt.Sprintf("NIC%d", i-want.GPUs)
			}
		}
		root, err := s.Generate()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		spec, err := topoxml.Parse(topoxml.Write(root), "m.xml")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := compare(want, Of(spec.Root)); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		back, err := machine.Describe(spec.Root, "back")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if root, err = back.Generate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := compare(want, Of(root)); err != nil {
			t.Fatalf("seed %d: described and generated again: %v\n%s", seed, err, text)
		}
		if seed%10 == 0 {
			asNCCL(t, seed, want, spec)
		}
	}
}

// asNCCL compares a matrix with the paths that NCCL computes, which has one kind for PHB and
// NODE, and none between GPUs over PCIe where there are NVLinks.
func asNCCL(t *testing.T, seed int, want *Matrix, spec *topo.Spec) {
	t.Helper()
	p := topo.DefaultParams()
	p.NRanks = want.GPUs
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	kinds := map[string]topo.PathKind{"PIX": topo.PathPIX, "PXB": topo.PathPXB, "PHB": topo.PathPHB,
		"NODE": topo.PathPHB, "SYS": topo.PathSYS}
	for _, sys := range h.Systems {
		at := map[string]topo.NodeID{}
		for _, n := range sys.Of(topo.GPU) {
			at[fmt.Sprintf("GPU%d", sys.Nodes[n].GPU.Rank)] = n
		}
		for _, n := range sys.Of(topo.NET) {
			at[h.Nets[sys.Nodes[n].Net.Dev]] = n
		}
		for i, row := range want.Cells {
			for j, cell := range row {
				a, okA := at[want.Devices[i].Name]
				b, okB := at[want.Devices[j].Name]
				k, known := kinds[cell]
				if !okA || !okB || !known || i < want.GPUs && j < want.GPUs || i >= want.GPUs &&
					j >= want.GPUs {
					continue
				}
				if got := sys.Path(a, b).Kind; got != k && got != topo.PathPXN && got != topo.PathP2C &&
					got != topo.PathC2C {
					t.Fatalf("seed %d: %s reads %s, NCCL's path is %s", seed, want.between(i, j), cell, got)
				}
			}
		}
	}
}

// envelopes are what people paste and save a matrix in.
var envelopes = map[string]func(text string) string{
	"as it is":   func(s string) string { return s },
	"underlined": func(s string) string { return underlined.ReplaceAllString(s, "\x1b[4m$1\x1b[0m$2") },
	"cleared lines": func(s string) string {
		return "\x1b(B\x1b[m" + strings.ReplaceAll(s, "\n", "\x1b[K\n")
	},
	"coloured cells": func(s string) string { return strings.ReplaceAll(s, "SYS", "\x1b[31mSYS\x1b[0m") },
	"blanks":         func(s string) string { return strings.ReplaceAll(s, "\t", "        ") },
	"CRLF":           func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"prompt": func(s string) string {
		return "root@node1:~# nvidia-smi topo -m\n" + s + "root@node1:~# \n"
	},
	"fence": func(s string) string {
		return "The output of the command:\n```text\n" + s + "```\nThank you.\n"
	},
	"quote":  func(s string) string { return each("> ", s) },
	"indent": func(s string) string { return each("    ", s) },
	"mpirun": func(s string) string { return each("[1,0]<stdout>:", s) },
	"pdsh":   func(s string) string { return each("node-07: ", s) },
	"times":  func(s string) string { return each("2026-11-29T08:00:01.123Z ", s) },
	"report": func(s string) string {
		return "GPU 0: NVIDIA H100 (UUID: GPU-1)\nGPU0 and GPU1 are slow\n\n$ nvidia-smi\n" +
			"| GPU  Name | Bus-Id |\n|  0  X  | 00:1 |\n\n" + s +
			"\nHypervisor vendor:: KVM\n  GPU0   GPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"
	},
	"table": func(s string) string {
		s, _, _ = strings.Cut(s, "\nLegend")
		head, body, _ := strings.Cut(strings.ReplaceAll(s, "\t", " | "), "\n")
		return head + "\n|---|---|\n" + body
	},
	// a terminal drops the tab at its right margin
	"wide": func(s string) string { return lastPair.ReplaceAllString(s, "$1$2$3") },
	"gzip": func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(s))
		_ = z.Close()
		return b.String()
	},
	"docker": func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			text, _ := json.Marshal(line)
			fmt.Fprintf(&b, "{\"log\":%s,\"stream\":\"stdout\",\"time\":\"2026-11-29T08:00:01.1Z\"}\n", text)
		}
		return b.String()
	},
	"PowerShell": func(s string) string {
		out := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(s)) {
			out = append(out, byte(u), byte(u>>8))
		}
		return string(out)
	},
}

var underlined = regexp.MustCompile(`^([^\r\n]*)(\r?\n)`)

var lastPair = regexp.MustCompile(`(?m)^([GN].*)(NODE|SYS|PXB|PIX|PHB)\t(NODE|SYS|PXB|PIX|PHB)`)

// each puts a text in front of every line.
func each(front, s string) string {
	return front + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+front) + "\n"
}

// wrap puts a matrix into one or two envelopes.
func wrap(r *rand.Rand, text string) (string, string) {
	names := slices.Sorted(maps.Keys(envelopes))
	a, b := names[r.IntN(len(names))], names[r.IntN(len(names))]
	switch { // what is bytes or JSON comes last; a table of bars has no tabs
	case a == "gzip", a == "docker", a == "PowerShell", b == "table":
		a = "as it is"
	}
	return envelopes[b](envelopes[a](text)), a + ", " + b
}

// TestEnvelopes: a matrix is the same in whatever it was pasted or saved in.
func TestEnvelopes(t *testing.T) {
	want, err := Read(eight(), "m.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range envelopes {
		text := f(eight())
		if TableOf(text) == None {
			t.Errorf("%s: not known for a matrix", name)
		}
		got, err := Read(text, "m.txt")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "table" { // was cut before the legend
			for i := range got.Devices {
				got.Devices[i].Name = want.Devices[i].Name
			}
		}
		if !got.equal(want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
