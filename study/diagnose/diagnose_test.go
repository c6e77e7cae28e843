package diagnose

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/scenario"
)

func options() scenario.Options { return scenario.Options{Settings: config.Sources{NoEnv: true}} }

// small is a machine on which a suspect takes milliseconds.
func small() scenario.Spec {
	return scenario.Spec{Machine: scenario.Machine{GPUs: 2, Nodes: []scenario.Nodes{
		{Topo: "dgx-h100", Count: 2}}}}
}

// measured is a table of nccl-tests with the times of a Spec, each off by up to noise.
func measured(t *testing.T, s scenario.Spec, noise float64) File {
	t.Helper()
	s.Workload = scenario.Workload{Op: "all_reduce",
		Sizes: []string{"8", "4K", "64K", "1M", "4M", "16M", "64M", "256M"}}
	r, err := scenario.Run(t.Context(), s, options())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n" +
		"# Collective test starting: all_reduce_perf\n" +
		"# nThread 1 nGpus 1 minBytes 8 maxBytes 268435456 step: 2(factor) " +
		"warmup iters: 5 iters: 20 agg iters: 1 validation: 0 graph: 0\n#\n# Using devices\n")
	for i := range 4 {
		fmt.Fprintf(&b,
			"#  Rank  %d Group  0 Pid   %d on         n%d device  %d [0000:1b:00] NVIDIA H100 80GB HBM3\n",
			i, 100+i, i/2, i%2)
	}
	b.WriteString(
		"#\n#                                                              out-of-place           " +
			"            in-place          \n" +
			"#       size         count      type   redop    root     time   algbw   " +
			"busbw  #wrong     time   algbw   busbw  #wrong \n" +
			"#        (B)    (elements)                               " +
			"(us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n")
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, row := range r.Rows {
		us := row.Out.Time.Micros() * (1 + noise*rnd.NormFloat64())
		fmt.Fprintf(&b,
			"%12d %13d     float     sum      -1 %9.2f %7.2f %7.2f    N/A %9.2f %7.2f %7.2f    N/A\n",
			row.Bytes, row.Count, us, 1.0, 1.0, us, 1.0, 1.0)
	}
	return File{"table.txt", []byte(b.String())}
}

func diagnosed(t *testing.T, s scenario.Spec, files ...File) *Report {
	t.Helper()
	r, err := New(context.Background(), Request{Files: files, Spec: s, Options: options()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSoundMachineHasNoSuspect: noise of 5 % is as expected, and explained by nothing; the machine is
// found by the table's head alone.
func TestSoundMachineHasNoSuspect(t *testing.T) {
	for _, s := range []scenario.Spec{small(), {}} {
		r := diagnosed(t, s, measured(t, small(), 0.05))
		if r.Verdict != AsExpected || len(r.Suspects) != 0 {
			t.Errorf("%s with %d suspects, want as expected and none:\n%s", r.Verdict, len(r.Suspects),
				r.Text())
		}
	}
}

// TestMadeFaultIsAmongTheFirstThree: what was changed on the simulated machine is found by the
// curve alone.
func TestMadeFaultIsAmongTheFirstThree(t *testing.T) {
	for _, x := range golden.Few([]struct {
		kind   string
		change func(*scenario.Spec)
	}{{"nic-slow", func(s *scenario.Spec) { s.Network.Faults = []string{"nic=node0/0:slow=3.5"} }},
		{"wrong-transport", func(s *scenario.Spec) {
			s.NCCL.Env = map[string]string{"NCCL_IB_DISABLE": "1"}
		}},
		{"no-gpudirect", func(s *scenario.Spec) {
			s.NCCL.Env = map[string]string{"NCCL_NET_GDR_LEVEL": "LOC"}
		}},
	}, 3) {
		s, kind := small(), x.kind
		x.change(&s)
		r := diagnosed(t, small(), measured(t, s, 0.05))
		found := false
		for i := range min(3, len(r.Suspects)) {
			found = found || r.Suspects[i].Kind == kind
		}
		// through memory two nodes of 2 GPUs have other NICs
		if !found || kind != "no-gpudirect" && r.Verdict != Slower {
			t.Errorf("%s: not among the first three:\n%s", kind, r.Text())
		}
	}
}

// TestLinesAreEvidence: what tools print of a fault names its kind, and its place.
func TestLinesAreEvidence(t *testing.T) {
	for line, kind := range map[string]string{
		"n0:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'": "no-gpudirect",
		"n0:1:2 [0] NCCL INFO Using network Socket":                                 "wrong-transport",
		"n0:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct":      "shm",
		"		LnkSta:	Speed 16GT/s, Width x8 (downgraded)":                             "pcie",
		"		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+":                       "acs",
		"		State: Down":                                          "nic-down",
		"			active_mtu:		1024 (3)":                               "mtu",
		"     rx_prio3_discards: 812":                            "congestion",
		"     rx_prio0_discards: 812":                            "congestion",
		"switches have PFC, but NCCL_IB_TC is not set":           "traffic-class",
		"        HW Slowdown                       : Active":     "late-rank",
		"            SW Thermal Slowdown           : Active":     "late-rank",
		"     rx_prio3_discards: 0":                              "",
		"        HW Slowdown                       : Not Active": "",
		"		LnkSta:	Speed 32GT/s, Width x16":                      "",
	} {
		facts := factsOf("f.txt", []byte("first\n"+line+"\n"))
		got := ""
		if len(facts) > 0 {
			got = facts[0].kind
			if !strings.HasPrefix(facts[0].text, "f.txt:2: ") {
				t.Errorf("%q: no place in %q", line, facts[0].text)
			}
		}
		if strings.Contains(line, "prio0_discards") && !slices.ContainsFunc(facts, func(f fact) bool {
			return f.kind == "traffic-class"
		}) {
			t.Errorf("%q is no evidence of a traffic class", line)
		}
		if got != kind {
			t.Errorf("%q is evidence of %q, want %q", line, got, kind)
		}
	}
}

// TestDumpsSayWhoWaits: of two ranks' dumps the one that is behind is named with the call, and
// calls that differ with both.
func TestDumpsSayWhoWaits(t *testing.T) {
	dump := func(names ...string) []byte {
		var calls []string
		for i, n := range names {
			calls = append(calls,
				fmt.Sprintf(`{"record_id": %d, "pg_id": 0, "process_group": ["0", "default_pg"], `+
					`"collective_seq_id": %d, "p2p_seq_id": 0, "op_id": %d, "profiling_name": "nccl:%s", "input_sizes": [[4]], `+
					`"output_sizes": [[4]], "input_dtypes": ["Float"], "output_dtypes": ["Float"], "state": "scheduled", `+
					`"is_p2p": false, "time_created_ns": 1}`, i, i+1, i+1, n))
		}
		return []byte(
			`{"version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, ` +
				`"entries": [` + strings.Join(calls, ", ") + `]}`)
	}
	r := diagnosed(t, scenario.Spec{}, File{"a", dump("all_reduce", "all_gather")},
		File{"b", dump("all_reduce")})
	if s := strings.Join(r.Stuck, "\n"); !strings.Contains(s, "a waits in call 2 (all_gather) for b") {
		t.Errorf("who waits is not said: %q", s)
	}
	r = diagnosed(t, scenario.Spec{}, File{"a", dump("all_reduce")}, File{"b", dump("broadcast")})
	if s := strings.Join(r.Stuck, "\n"); !strings.Contains(s, "one called all_reduce, the other broadcast") {
		t.Errorf("the mismatch is not said: %q", s)
	}
}

// TestRanksThatDifferAreNamed: releases and settings of several ranks' logs are compared by host; a host that
// says settings and lacks one has it unset.
func TestRanksThatDifferAreNamed(t *testing.T) {
	r := diagnosed(t, scenario.Spec{},
		File{"a.log", []byte("n0:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n" +
			"n0:1:1 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0\n" +
			"n0:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\n")},
		File{"b.log", []byte("n1:1:1 [0] NCCL INFO NCCL version 2.23.4+cuda12.4\n" +
			"n1:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\n")})
	got := strings.Join(r.Stuck, "\n")
	for _, want := range []string{"different releases of NCCL: 2.21.5 (n0), 2.23.4 (n1)",
		"different NCCL_IB_HCA: mlx5_0 (n0), unset (n1)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not said:\n%s", want, got)
		}
	}
	if strings.Contains(got, "NCCL_ALGO") {
		t.Errorf("NCCL_ALGO is the same on both:\n%s", got)
	}
}

// TestAgainJudgesOtherTimes: the verdict of the same sizes were they slower, without a simulation.
func TestAgainJudgesOtherTimes(t *testing.T) {
	r := &Report{Sizes: []Size{{Bytes: 8, Measured: 10, Expected: [3]float64{9, 10, 11}},
		{Bytes: 1 << 20, Measured: 100, Expected: [3]float64{90, 100, 110}}}}
	if v := r.Again(func(z *Size) float64 { return 1.7 * z.Measured }); v != Slower {
		t.Errorf("1.7 times as slow is %s", v)
	}
	if v := r.Again(func(z *Size) float64 { return z.Measured }); v != AsExpected {
		t.Errorf("the same is %s", v)
	}
}

// TestOwnTableWithoutAMachineIsRead: a table that simccl printed names its GPUs by their architecture alone.
func TestOwnTableWithoutAMachineIsRead(t *testing.T) {
	f := measured(t, small(), 0)
	f.Data = []byte(strings.ReplaceAll(string(f.Data), "NVIDIA H100 80GB HBM3", "sm_90"))
	r, err := New(t.Context(), Request{Files: []File{f}, Options: options(), NoSuspects: true})
	if err != nil || r.Verdict != AsExpected {
		t.Errorf("%+v %v", r, err)
	}
}

// TestSettingsOfAnotherMachineFitNICsThatWereChanged: NCCL_IB_HCA of a table whose machine is assumed, with
// NICs of another rate, names NICs that the assumed machine has.
func TestSettingsOfAnotherMachineFitNICsThatWereChanged(t *testing.T) {
	r := diagnosed(t, scenario.Spec{}, File{"t.json", []byte(`{"name": "own", "collective": "sendrecv",
		"env": {"NCCL_IB_HCA": "mlx5_99"}, "system": {"gpu": "H100 80GB HBM3", "nic": "RoCE 100Gb/s", "nodes": 2,
		"gpus_per_node": 2}, "rows": [{"bytes": 1048576, "time_us": 200}]}`)})
	if !strings.Contains(strings.Join(r.Notes, "\n"),
		"NCCL_IB_HCA=mlx5_99: the built-in machine has NICs of other") {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestWarningsAloneAreRead: a log of warnings, without a line of INFO, says what they mean.
func TestWarningsAloneAreRead(t *testing.T) {
	r := diagnosed(t, scenario.Spec{},
		File{"failed.log", []byte("n0:1:1 [0] NCCL WARN NET/IB : Got completion " +
			"from peer 10.0.0.2 with status=12 opcode=0 len=0\n")})
	if s := strings.Join(r.Stuck, "\n"); !strings.HasPrefix(s, "failed.log:1: retries to a peer ran out") {
		t.Errorf("the warning is not explained: %q", s)
	}
}

// TestFlatTakesSwitchesOut: GPUs and NICs keep their elements, bridges go, and the rest stays.
func TestFlatTakesSwitchesOut(t *testing.T) {
	const in = `<cpu><pci busid="a" class="0x060400"><pci busid="b" class="0x030200"><gpu/></pci></pci></cpu>`
	const want = `<cpu><pci busid="b" class="0x030200"><gpu/></pci></cpu>`
	if got := string(flat([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
