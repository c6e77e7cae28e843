package smi

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/machine"
)

// eight is a machine of eight GPUs behind NVSwitches, each beside a NIC, and one NIC apart.
func eight() string {
	var b strings.Builder
	b.WriteString(
		"\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tNIC0\tNIC1\tNIC2\tNIC3\tNIC4\tNIC5\tNIC6\t" +
			"NIC7\tNIC8\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n")
	name := func(i int) string {
		if i < 8 {
			return "GPU" + string(rune('0'+i))
		}
		return "NIC" + string(rune('0'+i-8))
	}
	socket := func(i int) int {
		if i == 16 {
			return 1
		}
		return i % 8 / 4
	}
	for i := range 17 {
		b.WriteString(name(i))
		for j := range 17 {
			switch {
			case i == j:
				b.WriteString("\t X ")
			case i < 8 && j < 8:
				b.WriteString("\tNV18")
			case i%8 == j%8 && i < 16 && j < 16:
				b.WriteString("\tPXB")
			case socket(i) == socket(j):
				b.WriteString("\tNODE")
			default:
				b.WriteString("\tSYS")
			}
		}
		if i < 8 {
			b.WriteString([]string{"\t0-55,112-167\t0\t\tN/A", "\t56-111,168-223\t1\t\tN/A"}[socket(i)])
		}
		b.WriteString("\n")
	}
	b.WriteString("\nLegend:\n\n  X    = Self\n  PXB  = bridges\n\nNIC Legend:\n\n")
	for i := range 9 {
		b.WriteString("  NIC" + string(rune('0'+i)) + ": mlx5_" + string(rune('0'+i)) + "\n")
	}
	return b.String()
}

// TestPathsStay: the topology that a matrix becomes has its paths.
func TestPathsStay(t *testing.T) {
	text := eight()
	if TableOf(text) == None || TableOf("<system version=\"1\"/>") != None {
		t.Error("a matrix is not known from an XML file")
	}
	s, err := Parse(text, "smi.txt", Kinds{CPU: "sapphire-rapids"})
	if err != nil {
		t.Fatal(err)
	}
	if s.GPU.Kind != "h100-sxm" || !s.NVLink.Switch || len(s.NUMA) != 2 ||
		s.NUMA[1].Cores != "56-111,168-223" || s.NIC.Names[8] != "mlx5_8" {
		t.Errorf("%+v", s)
	}
	h := build(t, s)
	sys := h.Systems[0]
	gpus, nets := sys.Of(topo.GPU), sys.Of(topo.NET)
	if len(gpus) != 8 || len(nets) != 9 {
		t.Fatalf("%d GPUs, %d NICs", len(gpus), len(nets))
	}
	for i, n := range nets {
		for j, g := range gpus {
			want := topo.PathSYS
			switch {
			case i == j:
				want = topo.PathPXB
			case i == 8 && j >= 4, i < 8 && i/4 == j/4:
				want = topo.PathPHB
			}
			if k := sys.Path(n, g).Kind; k != want {
				t.Errorf("NIC %d to GPU %d: %s, want %s", i, j, k, want)
			}
		}
	}
}

// TestMesh: NVLinks between pairs, as without an NVSwitch.
func TestMesh(t *testing.T) {
	s, err := Parse("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-7\t0\n"+
		"GPU1\tNV4\t X \t0-7\t0\n\n X = Self\n", "smi.txt", Kinds{GPU: "a100-sxm"})
	if err != nil || s.NVLink.Switch || len(s.NVLink.Pairs) != 1 || s.NVLink.Pairs[0] != [3]int{0, 1, 4} {
		t.Fatalf("%+v, %v", s, err)
	}
	build(t, s)
}

// TestBroken: what is no matrix is refused with its place.
func TestBroken(t *testing.T) {
	for text, want := range map[string]string{
		"\tGPU0\tGPU1\nGPU0\t X \tNV4\n": "smi.txt:1:2: the row of GPU1, 2 of 2, is missing",
		"\tGPU0\tGPU1\nGPU0\t X \n":      "smi.txt:2:1: 1 cells of 2",
		"\tGPU0\tGPU1\nGPU0\t X \tNVL\n": "smi.txt:2:10: \"NVL\" is no kind",
		"":                               "smi.txt:1:1: no matrix of nvidia-smi topo -m",
	} {
		if _, err := Parse(text, "smi.txt", Kinds{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Parse(eight(), "smi.txt", Kinds{GPU: "nope"}); err == nil {
		t.Error("an unknown kind was taken")
	}
}

func build(t *testing.T, s *machine.Spec) *topo.Host {
	t.Helper()
	root, err := s.Generate()
	if err != nil {
		t.Fatal(err)
	}
	p := topo.DefaultParams()
	p.NRanks = 64
	h, err := topo.Build(&topo.Spec{Name: "smi", Root: root}, p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
