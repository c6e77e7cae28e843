package logcheck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
)

// initOf is what inspect --nccl-log prints of a machine of testdata/topos.
func initOf(t testing.TB, release, name string, nodes int) string {
	t.Helper()
	s, err := site.OpenFor(release, site.Nodes(golden.Root(t, "testdata", "topos", name+".xml"), nodes))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ncclog.WriteInit(&b, s.Comm, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// equal fails unless a log is equal, and returns the report.
func equal(t *testing.T, what, text string) *logcheck.Report {
	t.Helper()
	log, err := ncclog.Read(ncclog.File{Name: "nccl.log", Data: []byte(text)})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return nil
	}
	rep, err := logcheck.Check(logcheck.Input{Log: log})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return nil
	}
	if !rep.Equal {
		t.Errorf("%s: different, notes %q\n%s", what, rep.Notes, rep.Text())
	}
	return rep
}

func compared(rep *logcheck.Report) (n int) {
	if rep != nil {
		for _, s := range rep.Sections {
			n += s.Compared
		}
	}
	return n
}

// everyLine is the step between the lines that are removed: 1 where SIMCCL_LINES asks
// for all, which take minutes.
func everyLine() int {
	if os.Getenv("SIMCCL_LINES") != "" {
		return 1
	}
	return 5
}

// TestAnyLineMayBeMissing: with any single line removed a log is equal, the line is
// counted, and all others are compared.
func TestAnyLineMayBeMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a log is read without each of its lines")
	}
	for run, m := range []struct {
		release, name string
		nodes         int
	}{{"2.28.9", "dgx-h100", 2}, {"2.28.9", "hgx-a100-4", 1}, {"2.21.5", "dgx-1v", 1},
		{"2.30.7", "hgx-a100-4", 2}} {
		text := initOf(t, m.release, m.name, m.nodes)
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		whole := compared(equal(t, "whole", text))
		for i := range lines {
			if step := everyLine(); i%step != run%step {
				continue
			}
			what := fmt.Sprintf("%s %s without %q", m.release, m.name, lines[i])
			rep := equal(t, what, strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), ""))
			if n := compared(rep); n < whole-1 {
				t.Errorf("%s: %d lines compared of %d", what, n, whole)
			}
		}
	}
}

// TestLinesOfRanksWrittenIntoEachOther: a process's line in the middle of another's,
// anywhere, leaves the log equal.
func TestLinesOfRanksWrittenIntoEachOther(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: logs of many ranks")
	}
	s, err := site.OpenFor("2.28.9", site.Nodes(golden.Root(t, "testdata", "topos", "hgx-a100-4.xml"), 1))
	if err != nil {
		t.Fatal(err)
	}
	ranks := make([][]string, s.Comm.NRanks)
	for r := range ranks {
		for _, l := range append(ncclog.Head(s.Comm, int32(r), nil), ncclog.OfRank(s.Comm, int32(r))...) {
			ranks[r] = append(ranks[r], ncclog.RankPrefix(s.Comm, int32(r))+l.Text)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for run := range 60 {
		var b strings.Builder
		var at [16]int
		left := 0
		for _, l := range ranks {
			left += len(l)
		}
		next := func(but int) (string, int) {
			for tries := 0; tries < 1000; tries++ {
				if r := random.IntN(len(ranks)); r != but && at[r] < len(ranks[r]) {
					at[r]++
					left--
					return ranks[r][at[r]-1], r
				}
			}
			return "", -1 // the other ranks have written all
		}
		torn := 0
		for left > 0 {
			l, rank := next(-1)
			if random.IntN(25) == 0 { // another process writes into the line
				if other, _ := next(rank); other != "" {
					torn++
					cut := random.IntN(len(l))
					l = l[:cut] + other + "\n" + l[cut:]
				}
			}
			b.WriteString(l + "\n")
		}
		equal(t, fmt.Sprintf("run %d, %d lines written into others", run, torn), b.String())
	}
}

// prefixes are what launchers and loggers write before each line.
var prefixes = map[string]string{
	"mpirun --tag-output":       "[1,0]<stdout>:",
	"mpirun 5":                  "[prterun-h-1@1,0]<stdout>: ",
	"mpirun --timestamp-output": "Sun Nov 29 08:00:00 2026[1,0]<stdout>:",
	"hydra":                     "[0] ",
	"srun -l":                   " 0: ",
	"torchrun":                  "[default0]:",
	"Ray":                       "\x1b[36m(Worker pid=12, ip=10.0.0.1)\x1b[0m ",
	"vLLM":                      "(EngineCore_DP0 pid=12) ",
	"kubectl --prefix":          "[pod/nccl-0/worker] ",
	"stern":                     "nccl-0 worker ",
	"Compose":                   "worker-1  | ",
	"CRI":                       "2026-11-29T08:00:00.1Z stdout F ",
	"journal":                   "Nov 29 08:00:00 h job[12]: ",
	"pdsh":                      "host-a: ",
	"parallel --tag":            "host-a\t",
	"ISO times":                 "2026-11-29T08:00:00.123Z ",
	"Python's times":            "2026-11-29 08:00:00,123 INFO ",
	"NCCL_DEBUG_TIMESTAMP":      "[2026-11-29 08:00:00] ",
	"ts":                        "Nov 29 08:00:00 ",
	"quoted":                    "> ",
}

// formsOf is a log in each form, by what makes it.
func formsOf(text string) map[string]string {
	each := func(f func(i int, l string) string) string {
		var b strings.Builder
		for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			b.WriteString(f(i, l) + "\n")
		}
		return b.String()
	}
	quoted := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b)
	}
	forms := map[string]string{
		"docker": each(func(_ int, l string) string {
			return `{"log":` + quoted(l+"\n") + `,"stream":"stderr"}`
		}),
		"grep -n": each(func(i int, l string) string {
			return fmt.Sprintf("%d:%s", i+9, l)
		}),
		"grep -nH": each(func(i int, l string) string {
			return fmt.Sprintf("out.log:%d:%s", i+9, l)
		}),
		"CRLF":    each(func(_ int, l string) string { return l + "\r" }),
		"colours": each(func(_ int, l string) string { return "\x1b[32m" + l + "\x1b[0m" }),
		"fenced":  "```\n" + text + "```\n",
		"html": html.EscapeString(each(func(_ int, l string) string {
			return "[1,0]<stdout>:" + l
		})),
		"without its prefix": each(func(_ int, l string) string {
			_, rest, _ := strings.Cut(l, "NCCL INFO ")
			return rest
		}),
	}
	for name, prefix := range prefixes {
		forms[name] = each(func(_ int, l string) string { return prefix + l })
	}
	return forms
}

// TestLaunchersFormsOfALog: a log is equal in every form in which launchers print it and
// people keep it.
func TestLaunchersFormsOfALog(t *testing.T) {
	text := initOf(t, "2.28.9", "hgx-a100-4", 2)
	whole := compared(equal(t, "plain", text))
	for name, form := range formsOf(text) {
		n := compared(equal(t, name, form))
		if name == "without its prefix" && n > whole/2 {
			continue // ranks of the other node are not distinguished
		}
		if n != whole {
			t.Errorf("%s: %d lines compared, %d of the plain log", name, n, whole)
		}
	}
}
