package logcheck_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/study/logcheck"
)

// TestADifferenceIsNamed changes one line of a ring and one choice in a log and
// expects both, with their places, in every form of the report.
func TestADifferenceIsNamed(t *testing.T) {
	s := site.Load(t, site.Nodes(golden.Root(t, "testdata", "topos", "h200x4-4.xml"), 1),
		"NCCL_NVLS_ENABLE=0")
	log := logOf(s.Comm)
	log = append(log,
		"node0:0:0 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..3}\n"...)
	log = append(log,
		"node0:0:0 [0] NCCL INFO AllReduce: 2097152 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..3}\n"...)
	ring := []byte("Ring 00 : 3 -> 0 -> 1")
	if !bytes.Contains(log, ring) {
		t.Fatal("no such ring")
	}
	log = bytes.Replace(log, ring, []byte("Ring 00 : 2 -> 0 -> 1"), 1)
	read := func(string) ([]byte, error) { return log, nil }
	var junit []byte
	q := &logcheck.Request{Logs: []string{"nccl.log"}, Env: []string{"NCCL_NVLS_ENABLE=0"},
		JUnit: "junit.xml", GitHub: true}
	rep, err := q.Run(read, func(_ string, data []byte) error { junit = data; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if rep.Equal {
		t.Error("equal")
	}
	for _, want := range []string{
		`NCCL "Ring 00 : 2 -> 0 -> 1", simccl "Ring 00 : 3 -> 0 -> 1" (graph/rings.cc, graph/connect.cc)`,
		"AllReduce 1 MiB to 2 MiB: NCCL TREE LL channels 0..3 → simccl RING",
		"::error title=simccl check rings::",
	} {
		if !strings.Contains(rep.Text(), want) {
			t.Errorf("the text lacks %q:\n%s", want, rep.Text())
		}
	}
	for _, want := range []string{`failures="2"`, `<testcase name="rings" classname="simccl.check">`,
		"<skipped>"} {
		if !bytes.Contains(junit, []byte(want)) {
			t.Errorf("the JUnit report lacks %q:\n%s", want, junit)
		}
	}
}

// TestNothingToCompare: a log without an initialisation, and one of nothing.
func TestNothingToCompare(t *testing.T) {
	for text, want := range map[string]string{
		"hello\n": "nccl.log: no NCCL INFO line; run with NCCL_DEBUG=INFO",
		"h:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n": "nothing can be compared: no line says which " +
			"ranks there are",
		"h:1:2 [0] NCCL INFO NCCL version 2.10.3+cuda11.0\n": "no rules of NCCL 2.10.3",
	} {
		q := &logcheck.Request{Logs: []string{"nccl.log"}}
		_, err := q.Run(func(string) ([]byte, error) { return []byte(text), nil }, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
