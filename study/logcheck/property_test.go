package logcheck_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo/builtin"
)

// cases is how many random cases a property is held against: SIMCCL_CASES, or so many.
func cases(t *testing.T, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("SIMCCL_CASES"))
	if err != nil || n < 1 {
		return usual
	}
	return n
}

// settable are settings that change decisions.
var settable = []string{"NCCL_ALGO=Ring", "NCCL_MAX_NCHANNELS=4", "NCCL_MIN_NCHANNELS=8",
	"NCCL_NET_GDR_LEVEL=SYS", "NCCL_NET_GDR_LEVEL=LOC", "NCCL_P2P_LEVEL=LOC", "NCCL_CROSS_NIC=1",
	"NCCL_NVLS_ENABLE=0", "NCCL_PXN_DISABLE=1", "NCCL_PROTO=^LL128", "NCCL_BUFFSIZE=1048576",
	"NCCL_NTHREADS=256"}

// random is a random machine's site and what it is called.
func random(r *rand.Rand) (*scenario.Site, string, error) {
	known := rules.Known()
	version := known[r.IntN(len(known))].String()
	list := builtin.NVIDIA()
	m := list[r.IntN(len(list))]
	spec := scenario.Machine{Nodes: []scenario.Nodes{{Topo: m.Name, Count: 1 + r.IntN(3)}}}
	what := fmt.Sprintf("%s, %d x %s", version, spec.Nodes[0].Count, m.Name)
	if r.IntN(4) == 0 {
		spec.GPUs = 1 + r.IntN(8)
		what += fmt.Sprintf(" with %d GPUs", spec.GPUs)
	}
	if r.IntN(4) == 0 {
		spec.Multicast = "off"
		what += " without multicast"
	}
	var env []string
	if r.IntN(3) == 0 {
		env = append(env, settable[r.IntN(len(settable))])
		what += fmt.Sprintf(" %q", env)
	}
	s, err := site.OpenFor(version, spec, env...)
	return s, what, err
}

// TestLogsOfRandomMachines: what inspect --nccl-log prints of a machine is read and found
// equal, also without one of its lines.
func TestLogsOfRandomMachines(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 3))
	n, tried := cases(t, 24), 0
	for i := range n {
		s, what, err := random(r)
		if err != nil {
			continue // NCCL refuses it, too
		}
		var b bytes.Buffer
		var set []ncclog.Setting
		for _, v := range s.Settings() {
			set = append(set, ncclog.Setting{Name: v[0], Value: v[1]})
		}
		if err := ncclog.WriteInit(&b, s.Comm, set); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		log, err := ncclog.Read(ncclog.File{Name: "nccl.log", Data: []byte(text)})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		rep, err := logcheck.Check(logcheck.Input{Log: log})
		var print *logcheck.PrintError
		if errors.As(err, &print) && strings.Contains(err.Error(), "where NCCL splits a host") {
			continue // 2.30.7 does not print which GPU is in which part
		}
		if err != nil {
			t.Errorf("case %d, %s: %v", i, what, err)
			continue
		}
		if tried++; !rep.Equal {
			t.Errorf("case %d, %s: different, notes %q: %.600s", i, what, rep.Notes, firsts(rep))
		}
	}
	t.Logf("%d of %d machines", tried, n)
}

// firsts are the first differences of the sections.
func firsts(rep *logcheck.Report) string {
	var out []string
	for _, n := range logcheck.Names {
		if f := rep.Sections[n.Name].First; f != "" {
			out = append(out, n.Name+": "+f)
		}
	}
	return strings.Join(out, "\n")
}
