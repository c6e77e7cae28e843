package grouplog

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/scenario"
)

// folder is where the recorded groups are.
const folder = "../../testdata/measured/h200x4/groups"

func machine(t *testing.T, gpus int) *Machine {
	t.Helper()
	spec := scenario.Spec{
		Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "../../testdata/topos/h200x4-4.xml",
			Count: 1}}, GPUs: gpus, Multicast: "off"}}
	s, err := scenario.Load(&spec, site.Options())
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMachine(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func recorded(t *testing.T, name string) []Group {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gs, err := Read(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return gs
}

// TestLinesOfRecordedGroups: NCCL 2.28.9's own lines of random groups, of each
// communicator that prints, in order.
func TestLinesOfRecordedGroups(t *testing.T) {
	for _, file := range []struct {
		name string
		gpus int
	}{{"plain4.txt", 4}, {"plain2.txt", 2}, {"split0_4.txt", 4}, {"split1_4.txt", 4}, {"win4.txt", 4}} {
		t.Run(file.name, func(t *testing.T) {
			m := machine(t, file.gpus)
			equal, groups := 0, recorded(t, file.name)
			m.setOrder(m.orderOf(groups))
			t.Logf("%q", m.order)
			for i := range groups {
				g := &groups[i]
				got, err := m.Launch(g)
				if err != nil {
					t.Errorf("%s: %v", file.name, err)
					continue
				}
				if d := differ(g, got); d != "" {
					t.Errorf("group %d: %s", g.Number, d)
					continue
				}
				equal++
			}
			t.Logf("%d of %d groups equal", equal, len(groups))
		})
	}
}

// differ compares lines by device: NCCL prints communicators in the order of a hash of
// random numbers.
func differ(g *Group, got []Launched) string {
	var want, have []string
	for _, p := range g.Lines {
		want = append(want, fmt.Sprintf("[%d] %v", p.Device, p.Line))
	}
	for _, l := range got {
		for _, x := range l.Lines {
			have = append(have, fmt.Sprintf("[%d] %v", l.Ranks[0], x))
		}
	}
	for i := range max(len(want), len(have)) {
		switch {
		case i >= len(want):
			return "more: " + have[i]
		case i >= len(have):
			return "missing: " + want[i]
		case want[i] != have[i]:
			return "NCCL " + want[i] + ", here " + have[i]
		}
	}
	return ""
}

// TestTimesOfRecordedGroups: the mean error of the time of a group in a graph is at most
// so many per cent.
func TestTimesOfRecordedGroups(t *testing.T) {
	for _, file := range []struct {
		name string
		gpus int
		most float64
	}{{"plain4.txt", 4, 5.5}, {"plain2.txt", 2, 8.3}, {"split0_4.txt", 4, 6}, {"split1_4.txt", 4, 8},
		{"win4.txt", 4, 6.6}} {
		t.Run(file.name, func(t *testing.T) {
			m := machine(t, file.gpus)
			sum, n := 0.0, 0
			groups := recorded(t, file.name)
			m.setOrder(m.orderOf(groups))
			for i := range groups {
				g := &groups[i]
				us, err := m.time(t.Context(), g)
				if err != nil {
					t.Errorf("%s: %v", file.name, err)
					continue
				}
				off := us.Micros()/g.TimeUs - 1
				if os.Getenv("SHOW") != "" {
					t.Logf("%3d tasks %2d measured %9.2f simulated %9.2f %+6.1f %%", g.Number, len(g.Tasks),
						g.TimeUs, us.Micros(), 100*off)
				}
				sum += math.Abs(off)
				n++
			}
			mean := 100 * sum / float64(n)
			t.Logf("mean error %.2f %%", mean)
			if mean > file.most {
				t.Errorf("mean error %.1f %%, was below %.1f", mean, file.most)
			}
		})
	}
}

// TestSplitsOfFewGPUs: registered buffers, and splits that leave a GPU alone.
func TestSplitsOfFewGPUs(t *testing.T) {
	const task = "TASK %d %s count 5000 type 7 op 0 root 2 shift 1 comm %s\n"
	text := "GROUP 0 mode split0 tasks 4\n" + fmt.Sprintf(task, 0, "AllReduce", "halves") +
		fmt.Sprintf(task, 1, "SendRecv", "strides") +
		fmt.Sprintf(task, 2, "AlltoAll", "halves") + fmt.Sprintf(task, 3, "Broadcast", "world") +
		"GROUP 1 mode reg tasks 1\n" + fmt.Sprintf(task, 0, "AllGather", "world")
	list, err := Read(strings.NewReader(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	out, err := machine(t, 3).Answers(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	// World and the first half print; the second half is one GPU, which copies.
	if len(out) != 2 || len(out[0].Lines) != 2 || len(out[1].Lines) != 1 || out[0].Us == nil ||
		*out[0].Us <= 0 || out[1].Us == nil {
		t.Errorf("%s", Text(out))
	}
}
