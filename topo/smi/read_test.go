package smi

import (
	"fmt"
	"strings"
	"testing"
)

// TestLayouts: rows and columns as drivers of all ages write them, and as terminals cut them.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		devices    string // names, NUMA nodes, cores, NUMA node of memory
		row        string // the first
	}{
		{"device names", "\tGPU0\tGPU1\tmlx5_0\tbnxt_re1\tCPU Affinity\n" +
			"GPU0\t X \tPIX\tPHB\tSYS\t0-7,16-23\nGPU1\tPIX\t X \tPHB\tSYS\t0-7,16-23\n" +
			"mlx5_0\tPHB\tPHB\t X \tSYS\nbnxt_re1\tSYS\tSYS\tSYS\t X \n",
			"GPU0//0-7,16-23/ GPU1//0-7,16-23/ mlx5_0/// bnxt_re1///", "X PIX PHB SYS"},
		{"one GPU", "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-251\t0\t\tN/A\n",
			"GPU0/0/0-251/", "X"},
		{"nothing known", "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" +
			"GPU0\t X \tSYS\tN/A\tN/A\t\tN/A\nGPU1\tSYS\t X \tN/A\tN/A\t\tN/A\n", "GPU0/// GPU1///", "X SYS"},
		{"empty columns", "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" +
			"GPU0\t X \tSYS\t\t1\t\tN/A\nGPU1\tSYS\t X \t0-3\t\t\t2\n", "GPU0/1// GPU1//0-3/2", "X SYS"},
		{"lists of NUMA nodes",
			"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-31,64-95\t0-1,4\t\t12\n",
			"GPU0/0-1,4/0-31,64-95/12", "X"},
		{"no columns behind", "     GPU0 GPU1\nGPU0  X   NV4\nGPU1  NV4  X\n", "GPU0/// GPU1///", "X NV4"},
		{"names without blanks, cells without blanks", "        GPU0    GPU1    NIC10NIC11   CPU " +
			"Affinity\nGPU0     X      NV18    NODENODE0-3\nGPU1    NV18     X      SYSSYS    4-7\n" +
			"NIC10   NODE    SYS     X      PIX\nNIC11   NODE    SYS     PIX     X\n",
			"GPU0//0-3/ GPU1//4-7/ NIC10/// NIC11///", "X NV18 NODE NODE"},
		{"folded lines", "\tGPU0\tGPU1\tNIC0\n NIC1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\tPIX\n" +
			" SYS\t0-3\t0\nGPU1\tNV4\t X \tSYS\n PIX\t4-7\t1\nNIC0\tPIX\tSYS\t X \n" +
			" SYS\nNIC1\tSYS\tPIX\tSYS\n X\n\n  NIC1: mlx5_9\n",
			"GPU0/0/0-3/ GPU1/1/4-7/ NIC0/// mlx5_9///", "X NV4 PIX SYS"},
		{"lines of others between rows",
			"\tGPU0\tGPU1\nwarning: clocks are low\nGPU0\t X \tPHB\n[W] something else\n\nGPU1\tPHB\t X \n",
			"GPU0/// GPU1///", "X PHB"},
		{"dual cards", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPSB\t0-3\nGPU1\tPSB\t X \t0-3\n",
			"GPU0//0-3/ GPU1//0-3/", "X PIX"},
		{"after the table of topo -p2p",
			"\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n\n\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPIX\tX\n",
			"GPU0/// GPU1///", "X PIX"},
	} {
		m, err := Read(c.text, "m.txt")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var devices []string
		for _, d := range m.Devices {
			devices = append(devices, d.Name+"/"+ranges(d.NUMA)+"/"+d.Cores+"/"+d.Memory)
		}
		if got := strings.Join(devices, " "); got != c.devices {
			t.Errorf("%s: %s, want %s", c.name, got, c.devices)
		}
		if got := strings.Join(m.Cells[0], " "); got != c.row {
			t.Errorf("%s: %s, want %s", c.name, got, c.row)
		}
	}
}

// TestRefused: what is not one machine's matrix is refused by what it is, with its place.
func TestRefused(t *testing.T) {
	pair := func(a, b string) string {
		return "\tGPU0\tGPU1\nGPU0\t X \t" + a + "\nGPU1\t" + b + "\t X \n"
	}
	for _, c := range []struct{ text, want string }{
		{pair("OK", "OK"), "m.txt:2:10: OK is of the table of nvidia-smi topo -p2p"},
		{pair("GNS", "GNS"), "GNS is of the table of nvidia-smi topo -p2p"},
		{pair("SOC", "SOC"), "m.txt:2:10: SOC is of drivers before R384"},
		{"       GPU0         GPU1\nGPU0   0            15\nGPU1   15           0\n",
			"m.txt:2:8: 0 is a number, as in the tables of rocm-smi"},
		{"       GPU0         GPU1\nGPU0   0            XGMI\nGPU1   XGMI         0\n", "is a number"},
		{pair("NV0", "NV0"), `"NV0" is no kind of path`},
		{pair("NV99", "NV99"), `"NV99" is no kind of path`},
		{pair("ERR", "ERR"), `m.txt:2:10: "ERR" is no kind of path`},
		{pair("SYS", "PIX"),
			"m.txt:2:10: GPU0 – GPU1 reads SYS, and GPU1 – GPU0 reads PIX: one path has one kind"},
		{pair("X", "X"), "m.txt:2:10: GPU0 – GPU1 reads X"},
		{"\tGPU0\tGPU1\nGPU0\tPIX\tPIX\nGPU1\tPIX\t X \n", "m.txt:2:6: GPU0 – GPU0 reads PIX"},
		{"\tGPU0\tNIC0\nGPU0\t X \tNV4\nNIC0\tNV4\t X \n", "NVLinks join GPUs alone"},
		{"\tGPU0\tNIC0\tNIC1\nGPU0\tX\tPIX\tPIX\nNIC0\tPIX\tX\tPIX\nNIC1\tPIX\tPIX\tX\nNIC0: a1\nNIC1: a1\n",
			"m.txt:4:6: two devices are a1"},
		{"\tGPU0\tGPU1\tGPU2\nGPU0\tX\tPIX\tSYS\nGPU2\tSYS\tSYS\tX\n",
			"m.txt:1:2: the row of GPU1, 2 of 3, is missing"},
		{"\tGPU0\tGPU1\tGPU2\nGPU0\tX\tPIX\tSYS\nGPU1\tPIX\tX\n",
			"m.txt:3:1: 2 cells of 3 in the row of GPU1"},
		{"GPU0 and GPU1 are slow\n", "m.txt:1:1: no matrix of nvidia-smi topo -m"},
	} {
		if _, err := Read(c.text, "m.txt"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestNoTree: cells that no tree of PCIe has are refused by their names.
func TestNoTree(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\tGPU0\tGPU1\tNIC0\nGPU0\tX\tSYS\tPIX\nGPU1\tSYS\tX\tPIX\nNIC0\tPIX\tPIX\tX\n",
			"m.txt:2:8: GPU0 – GPU1 reads SYS, but GPU0 – NIC0 PIX and NIC0 – GPU1 PIX"},
		{"\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\tX\tNV4\tPIX\tSYS\nGPU1\tNV4\tX\tPIX\tPIX\nNIC0\tPIX\tPIX\tX\t" +
			"PIX\nNIC1\tSYS\tPIX\tPIX\tX\n",
			"m.txt:2:16: GPU0 – NIC1 reads SYS, but GPU0 – NIC0 PIX and NIC0 – NIC1 PIX"},
		{"\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tNV12\tNV12\tSYS\nGPU1\tNV12\tX\tNV12\tNV12\nGPU2\tNV12\t" +
			"NV12\tX\tNV12\nGPU3\tSYS\tNV12\tNV12\tX\n",
			"GPU0 – GPU3 reads SYS: GPU0 has 24 NVLinks in its row, which no GPU has (18 is the most), and " +
				"behind NVSwitches this cell would be NV12 too"},
	} {
		if _, err := Parse(c.text, "m.txt", Kinds{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestGuesses: kinds agree with the matrix, and each guess is a Fact.
func TestGuesses(t *testing.T) {
	row := func(cell string, n int, behind ...string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("\tGPU" + string(rune('0'+i)))
		}
		b.WriteString("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n")
		for i := range n {
			b.WriteString("GPU" + string(rune('0'+i)))
			for j := range n {
				if i == j {
					b.WriteString("\tX")
				} else {
					b.WriteString("\t" + cell)
				}
			}
			b.WriteString("\t" + behind[i%len(behind)] + "\n")
		}
		return b.String()
	}
	for _, c := range []struct {
		text, gpu, cpu string
		switched       bool
	}{
		{row("NV6", 4, "0-63\t0\t\t4", "64-127\t1\t\t12", "128-191\t2\t\t20", "192-255\t3\t\t28"), "gh200",
			"grace", false},
		{row("NV6", 4, "6,14\t3\t\tN/A", "4,12\t1\t\tN/A", "7,15\t7\t\tN/A", "5,13\t5\t\tN/A"), "h100-sxm",
			"genoa", false},
		{row("NV18", 4, "0-71\t0\t\t2", "0-71\t0\t\t10"), "gb200", "grace", true},
		{row("NV18", 4, "0-71\t0\t\tN/A", "72-143\t1\t\tN/A"), "gb200", "grace", true},
		{row("NV18", 8, "0-55\t0\t\tN/A", "56-111\t1\t\tN/A"), "h100-sxm", "sapphire-rapids", true},
		{row("NV18", 8, "0-95,192-287\t0\t\tN/A", "96-191,288-383\t1\t\tN/A"), "h100-sxm", "genoa", true},
		{row("NV12", 8, "0-63\t0\t\tN/A", "64-127\t1\t\tN/A"), "a100-sxm", "rome", true},
		{row("NV4", 4, "0-63\t0\t\tN/A"), "a100-sxm", "rome", false},
		{row("NV8", 8, "0-47\t0\t\tN/A", "48-95\t1\t\tN/A"), "h800-sxm", "sapphire-rapids", true},
		{row("NV6", 8, "0-23\t0\t\tN/A"), "v100-sxm3", "broadwell", true},
		{row("NV2", 3, "0-19\t0\t\tN/A"), "v100-sxm2", "broadwell", false},
		{row("NV4", 2, "0-31\t0\t\tN/A"), "a6000", "sapphire-rapids", false},
		{row("PIX", 2, "0-31\t0\t\tN/A"), "l40s", "sapphire-rapids", false},
	} {
		s, err := Parse(c.text, "m.txt", Kinds{})
		if err != nil {
			t.Errorf("%v\n%s", err, c.text)
			continue
		}
		if s.GPU.Kind != c.gpu || s.CPU != c.cpu || s.NVLink.Switch != c.switched {
			t.Errorf("%s, %s, NVSwitches %v, want %+v", s.GPU.Kind, s.CPU, s.NVLink.Switch, c)
		}
		told := 0
		for _, f := range s.Facts {
			if f.Of == "gpu" && strings.Contains(f.Source, c.gpu) || f.Of == "cpu" &&
				strings.Contains(f.Source, c.cpu) || f.Of == "nvlink" {
				told++
			}
		}
		if told < 2 || strings.Contains(c.text, "NV") && told < 3 {
			t.Errorf("%s: guesses are not told: %+v", c.gpu, s.Facts)
		}
	}
	s, err := Parse(row("NV18", 8, "0-55\t0\t\tN/A"), "m.txt", Kinds{GPU: "v100-sxm2", CPU: "milan"})
	if err != nil || len(s.Facts) != 2 ||
		s.Facts[1].Source != "v100-sxm2 has 6 NVLinks, the matrix 18 of GPU0: these are kept" {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestNUMA: NUMA nodes are what paths say; where affinities say something else, a Fact says so.
func TestNUMA(t *testing.T) {
	for _, c := range []struct{ text, ids, told string }{
		{"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tSYS\t0-31\t0-1\nGPU1\tSYS\tX\t32-63\t2-3\n",
			"0 2", ""},
		{"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tNV4\t0-31\t3\nGPU1\tNV4\tX\t32-63\t1\n", "3 1",
			""},
		{"\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV4\t0-31\nGPU1\tNV4\tX\t32-63\n", "0 1", ""},
		{"\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n", "0", ""},
		{"\tGPU0\tNIC0\tNIC1\tNUMA Affinity\nGPU0\tX\tSYS\tSYS\t0\nNIC0\tSYS\tX\tPHB\nNIC1\tSYS\tPHB\tX\n",
			"0 1", ""},
		{"\tGPU0\tGPU1\tNUMA Affinity\nGPU0\tX\tSYS\t0\nGPU1\tSYS\tX\t0\n", "0 1",
			"GPU1 has NUMA affinity 0, but only SYS to others that have it: it is put on a NUMA node of " +
				"its own, 1"},
		{"\tGPU0\tGPU1\tNUMA Affinity\nGPU0\tX\tNODE\t0\nGPU1\tNODE\tX\t1\n", "0",
			"GPU0 and GPU1 have NUMA affinities 0 and 1, but paths within a NUMA node join them: they are " +
				"put on one"},
	} {
		s, err := Parse(c.text, "m.txt", Kinds{})
		if err != nil {
			t.Errorf("%v\n%s", err, c.text)
			continue
		}
		var ids []int
		for _, n := range s.NUMA {
			ids = append(ids, n.ID)
		}
		if got := strings.Trim(fmt.Sprint(ids), "[]"); got != c.ids {
			t.Errorf("NUMA nodes %s, want %s\n%s", got, c.ids, c.text)
		}
		told := ""
		for _, f := range s.Facts {
			if f.Of == "numa" {
				told = f.Source
			}
		}
		if told != c.told {
			t.Errorf("told %q, want %q", told, c.told)
		}
	}
}

// FuzzRead: whatever is read is refused, or becomes a machine with its own paths.
func FuzzRead(f *testing.F) {
	f.Add(eight())
	f.Add("\x1b[4m\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n" +
		"GPU0\t X \tNV6\tPIX\t0-3\t0-1\t\t4\nGPU1\tNV6\t X \tSYS\t4-7\t2\t\t12\nNIC0\tPIX\tSYS\t X \n" +
		" NIC0: mlx5_0\n")
	f.Add("| | GPU0 | GPU1 |\n|--|--|--|\n| GPU0 | X | PIX |\n| GPU1 | PIX | X |\n")
	f.Add("\tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(text, "f.txt")
		if err != nil {
			return
		}
		if TableOf(text) == None {
			t.Error("read, but not known for a matrix")
		}
		s, err := m.Spec(Kinds{})
		if err != nil {
			return
		}
		root, err := s.Generate()
		if err != nil {
			t.Fatalf("described, but not generated: %v", err)
		}
		again, err := Read(Of(root).Text(), "again.txt")
		if err != nil {
			t.Fatalf("%v\n%s", err, Of(root).Text())
		}
		if err := compare(m, again); err != nil {
			t.Error(err)
		}
	})
}
