package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/scenario"
)

// call calls the command on the project's own files.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append(args, "-topos", golden.Root(t, "testdata", "topos"), "-measured",
		golden.Root(t, "testdata", "measured", "h200x4")), &out)
	return out.String(), err
}

// TestShow lists the points that are meant, and no others.
func TestShow(t *testing.T) {
	out, err := call(t, "show", "default_4", "-op", "all_reduce", "-proto", "LL")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "default_4 ") || !strings.Contains(line, "AllReduce") ||
			!strings.Contains(line, "/LL ") {
			t.Errorf("not asked for: %s", line)
		}
	}
	held, err := call(t, "show", "default_4", "-op", "all_reduce", "-proto", "LL", "-held")
	if err != nil || held == out || len(lines) < 3 {
		t.Errorf("%d points; those that are held out are the same: %t (%v)", len(lines), held == out, err)
	}
	other, err := call(t, "show", "default_4", "-op", "all_reduce", "-proto", "LL", "-class", "gap_ll=9")
	if err != nil || other == out {
		t.Errorf("gap_ll=9 changes nothing (%v)", err)
	}
}

// TestFit fits a quantity that was changed back to about what it was.
func TestFit(t *testing.T) {
	out, err := call(t, "fit", "gap_ll", "-set", "default_4", "-op", "all_reduce", "-proto", "LL", "-class",
		"gap_ll=6")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "-class gap_ll=3.") {
		t.Errorf("gap_ll was fitted from 6 to\n%s", out)
	}
}

// TestPublic compares a small table.
func TestPublic(t *testing.T) {
	out, err := call(t, "public", "h100_2n1g_send", "-tables", golden.Shared(t, "measured", "public"))
	if err != nil || !strings.HasPrefix(out, "h100_2n1g_sendrecv ") {
		t.Errorf("%q %v", out, err)
	}
}

// TestMistakes are reported.
func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{}, {"show"}, {"look", "all"}, {"show", "nothing"},
		{"show", "all", "-class", "gap_ll"}, {"show", "all", "-class", "gap=1"},
		{"fit", "gap_xy"}, {"public", "nothing"}} {
		var out bytes.Buffer
		if len(args) > 1 {
			args = append(args, "-topos", golden.Root(t, "testdata", "topos"), "-measured",
				golden.Root(t, "testdata", "measured", "h200x4"))
		}
		if err := run(t.Context(), args, &out); err == nil {
			t.Errorf("%v is accepted: %s", args, out.String())
		}
	}
}

// TestKernelOverPCIe: what frameworks take between two GPUs without NVLink.
func TestKernelOverPCIe(t *testing.T) {
	list := func(gpu, framework, version string, rate float64) *group {
		g := &group{Framework: framework, Version: version,
			Rows: []map[string]any{{"bytes": 1e9, "time_us": 1e6 / rate}}}
		g.Hardware.GPU = gpu
		return g
	}
	for _, c := range []struct {
		of   *group
		gpus int
		want string
	}{
		{list("L40S", "sglang", "0.5.14", 18), 2, scenario.VLLMKernel},
		{list("L40S", "sglang", "0.5.14", 18), 4, ""},
		{list("L40S", "sglang", "0.5.12", 17), 2, scenario.NCCLKernel},
		{list("RTX PRO 6000", "vllm", "0.24.0", 39), 2, scenario.VLLMKernel},
		{list("RTX PRO 6000", "vllm", "0.19.0", 15), 2, noPeers},
	} {
		if got := c.of.kernel(c.gpus, 1<<16); got != c.want {
			t.Errorf("%s %s %s, %d GPUs: %q, not %q", c.of.gpu(), c.of.Framework, c.of.Version, c.gpus, got,
				c.want)
		}
	}
}
