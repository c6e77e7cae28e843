package logcheck

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/study/ncclog"
)

// added lists the lines that may have been lost of a system print, each once.
func added(tree, paths string) (out []string) {
	var lines, all []ncclog.Text
	for l := range strings.Lines(tree) {
		lines = append(lines, ncclog.Text{Text: strings.TrimRight(l, "\n")})
	}
	for l := range strings.Lines(paths) {
		all = append(all, ncclog.Text{Text: strings.TrimRight(l, "\n")})
	}
	for _, a := range additions(&ncclog.Rank{Lines: append(all, lines...)}, &ncclog.Communicator{}, lines) {
		if text := strings.TrimSpace(a.text); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// TestLostProcessorsHaveTheKindsOfThePrint: a CPU that others or paths name is of a kind that the print has,
// and of any that NCCL knows where the print has none.
func TestLostProcessorsHaveTheKindsOfThePrint(t *testing.T) {
	const link = "+ SYS[10.0] - CPU/0-1"
	got := added("CPU/0-0 (1/2/-1)\n"+link+"\n+ PCI[24.0] - GPU/0-1000 (0)\n"+
		"+ PCI[24.0] - GPU/0-2000 (1)\n", "")
	if !slices.Contains(got, "CPU/0-1 (1/2/-1)") || slices.Contains(got, "CPU/0-1 (1/1/3)") {
		t.Errorf("%q", got)
	}
	got = added(link+"\n+ PCI[24.0] - GPU/0-1000 (0)\n", "")
	for _, kind := range cpuKinds {
		if !slices.Contains(got, "CPU/0-1 "+kind) {
			t.Errorf("none of kind %s: %q", kind, got)
		}
	}
	if got := added("CPU/0-0 (1/2/-1)\n+ PCI[24.0] - GPU/0-1000 (0)\n", ""); slices.ContainsFunc(got,
		func(s string) bool { return strings.HasPrefix(s, "CPU") }) {
		t.Errorf("a CPU though none is missing: %q", got)
	}
}

// TestLostNVLinksGoBack: a GPU has a link back to the one that links to it, to the switch that others link
// to, and to the CPU that has one to it, as fast.
func TestLostNVLinksGoBack(t *testing.T) {
	got := added("CPU/0-0 (1/2/-1)\n+ PCI[24.0] - GPU/0-1000 (0)\n              + NVL[60.0] - GPU/0-2000\n"+
		"+ PCI[24.0] - GPU/0-2000 (1)\n", "")
	if !slices.Contains(got, "+ NVL[60.0] - GPU/0-1000") || slices.Contains(got, "+ NVL[60.0] - GPU/0-2000") {
		t.Errorf("%q", got)
	}
	got = added("CPU/0-0 (1/2/-1)\n+ PCI[24.0] - GPU/0-1000 (0)\n              + NVL[370.8] - NVS/0-0\n"+
		"+ PCI[24.0] - GPU/0-2000 (1)\n", "")
	if !slices.Contains(got, "+ NVL[370.8] - NVS/0-0") {
		t.Errorf("%q", got)
	}
	got = added("CPU/0-0 (2/-1/-1)\n+ C2C[370.8] - GPU/0-1000\n+ PCI[24.0] - GPU/0-1000 (0)\n", "")
	if !slices.Contains(got, "+ C2C[370.8] - CPU/0-0") {
		t.Errorf("%q", got)
	}
}

// TestLostGPUs: a GPU that paths name and the tree lacks is added with a rank that no other has, in front of
// links that may be its own or without any; none where none is missing.
func TestLostGPUs(t *testing.T) {
	const tree = "CPU/0-0 (1/2/-1)\n+ PCI[24.0] - GPU/0-1000 (0)\n+ PCI[24.0] - GPU/0-3000 (2)\n"
	gpus := func(list []string) (out []string) {
		for _, s := range list {
			if strings.Contains(s, "GPU") {
				out = append(out, s)
			}
		}
		return out
	}
	if got := gpus(added(tree, "GPU/0-1000 :GPU/0-3000 (2/24.0/PHB)\n")); len(got) > 0 {
		t.Errorf("%q though none is missing", got)
	}
	got := gpus(added(tree, "GPU/0-1000 :GPU/0-2000 (2/24.0/PHB) GPU/0-3000 (2/24.0/PHB)\n"))
	if want := "+ PCI[24.0] - GPU/0-2000 (1)"; !slices.Contains(got, want) {
		t.Errorf("%q, want %s", got, want)
	}
	for _, s := range got {
		if !strings.Contains(s, "GPU/0-2000 (") || strings.HasSuffix(s, "(0)") ||
			strings.HasSuffix(s, "(2)") {
			t.Errorf("%q", s)
		}
	}
}

// TestLinesThatAreLeftOutAreCounted: those that the reader could not put together, and those that the
// comparison left out.
func TestLinesThatAreLeftOutAreCounted(t *testing.T) {
	for _, x := range []struct{ torn, left int }{{0, 0}, {3, 2}, {0, 4}} {
		rep := &Report{Version: "2.28.9", left: x.left}
		rep.preface(Input{Log: &ncclog.Log{Version: "2.28.9", Torn: x.torn}})
		want := ""
		if n := x.torn + x.left; n > 0 {
			want = fmt.Sprintf("%d lines were written over by another process and are left out", n)
		}
		if got := strings.Join(rep.Notes, "; "); got != want {
			t.Errorf("%+v: %q, want %q", x, got, want)
		}
	}
}
