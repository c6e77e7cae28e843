package ncclog_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/connect"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/internal/ncclog"
	"github.com/simccl/simccl/internal/parity"
	"github.com/simccl/simccl/plan/build"
)

var (
	infoLine = regexp.MustCompile(`^(\S+:\d+:\d+) \[\d+\] NCCL INFO (.*)$`)
	rankLine = regexp.MustCompile(`rank (\d+) nranks \d+ cudaDev`)
	opLine   = regexp.MustCompile(`^(\w+): (\d+) Bytes -> Algo`)
	connLine = regexp.MustCompile(`^Channel (\d+)/(\d) : (\d+)\[\d+\] -> (\d+)\[\d+\] (\[send\] |\[receive\] )?via (\w+)(?:/Socket/(\d+))?`)
	// rendered are the lines that ncclog prints.
	rendered = regexp.MustCompile(`^(=== System|={42}$|(CPU|GPU|PCI|NIC|NET)/[0-9a-f]+-| *\+ \w+\[|Pattern \d| ?\d+ : (GPU|NET)/|Tree \d+ :|NVLS (Head|Trees)|` +
		`Channel \d\d/\d\d :( +\d+)+$|Ring \d\d :|Trees \[|P2P Chunksize|ncclP2pSchedule|  Algorithm   \||  Protocol    \|| Max NThreads \||` +
		` *\w+ \| *\d+\.\d/|threadThresholds|\d+ coll channels)`)
)

// realLog is a log of NCCL, read.
type realLog struct {
	ranks map[int][]string // rank → lines that ncclog prints, in order
	ops   []string
	conns []string
	stray int // lines before their process gave its rank
}

func readLog(t *testing.T, path string) *realLog {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	l := &realLog{ranks: map[int][]string{}}
	rankOf := map[string]int{}
	sc := bufio.NewScanner(text)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		m := infoLine.FindStringSubmatch(sc.Text())
		if m == nil {
			continue
		}
		who, text := m[1], m[2]
		if r := rankLine.FindStringSubmatch(text); r != nil {
			rankOf[who], _ = strconv.Atoi(r[1])
		}
		switch {
		case opLine.MatchString(text):
			l.ops = append(l.ops, text)
		case connLine.MatchString(text):
			l.conns = append(l.conns, text)
		case rendered.MatchString(text):
			rank, ok := rankOf[who]
			if !ok {
				l.stray++
				continue
			}
			l.ranks[rank] = append(l.ranks[rank], text)
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// opText is what we log for the operation of a line of NCCL's.
func opText(c *comm.Comm, line string) (string, error) {
	m := opLine.FindStringSubmatch(line)
	f, err := coll.ParseFunc(m[1])
	if err != nil {
		return "", err
	}
	bytes, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return "", err
	}
	req, _, err := c.Request(comm.Op{Func: f, Count: bytes / 4, Type: coll.Float32, RedOp: coll.Sum})
	if err != nil {
		return "", err
	}
	s, err := build.Split(c.Comm, req)
	if err != nil {
		return "", err
	}
	return ncclog.OfOp(req, s).Text, nil
}

// routeDiffers compares a connection that NCCL logged with ours.
func routeDiffers(c *comm.Comm, line string) string {
	m := connLine.FindStringSubmatch(line)
	num := func(i int) int32 { n, _ := strconv.Atoi(m[i]); return int32(n) }
	src, dst := num(3), num(4)
	kind := connect.TreeRoute
	ch := &c.Channels[num(1)]
	switch {
	case m[2] == "1":
		kind = connect.P2PRoute
	case ch.Ring[src].Next == dst:
		kind = connect.RingRoute
	}
	r := c.RouteOf(src, dst, int(num(1)), kind)
	if got := [...]string{connect.P2P: "P2P", connect.SHM: "SHM", connect.NET: "NET"}[r.Transport]; got != m[6] {
		return "we go by " + got
	}
	if m[6] == "NET" {
		net := r.SrcNet
		if m[5] == "[receive] " {
			net = r.DstNet
		}
		if net != num(7) || r.SrcProxy != src || r.DstProxy != dst || r.SrcGDR || r.DstGDR {
			return fmt.Sprintf("we take %+v", r)
		}
	}
	return ""
}

// TestRealLogs renders the runs of NCCL 2.28.9 on 4 x H200 whose logs we have
// and compares every line that ncclog knows, of every rank, and every choice.
func TestRealLogs(t *testing.T) {
	root := golden.Root(t)
	for _, run := range []struct {
		log, topo string
		nodes     int
		env       []string
	}{
		{"info_2", "h200x4-2", 1, []string{"NCCL_NVLS_ENABLE=0"}},
		{"info_4", "h200x4-4", 1, []string{"NCCL_NVLS_ENABLE=0"}},
		{"shm_4", "h200x4-4", 1, []string{"NCCL_P2P_DISABLE=1"}},
		{"host_2x2", "h200x4-h2x2", 2, nil},
		{"host_4x1", "h200x4-h4x1", 4, nil},
	} {
		t.Run(run.log, func(t *testing.T) {
			real := readLog(t, filepath.Join(root, "testdata", "measured", "h200x4", "logs", run.log+".log.gz"))
			c, _, err := parity.Build(filepath.Join(root, "testdata", "topos", run.topo+".xml"), run.nodes, false, run.env)
			if err != nil {
				t.Fatal(err)
			}
			if real.stray > 0 {
				t.Errorf("%d lines of unknown ranks", real.stray)
			}
			lines, equal := 0, 0
			for r := range c.NRanks {
				want, ok := real.ranks[r]
				if !ok {
					continue // the log holds one process of several
				}
				var got []string
				for _, l := range ncclog.OfRank(c, int32(r)) {
					got = append(got, l.Text)
				}
				lines += len(want)
				equal += compareLines(t, fmt.Sprintf("rank %d", r), got, want)
			}
			right := 0
			known := map[string]string{}
			for _, want := range real.ops {
				got, ok := known[want]
				if !ok {
					if got, err = opText(c, want); err != nil {
						t.Fatal(err)
					}
					known[want] = got
					if got != want {
						t.Errorf("chose %q, NCCL %q", got, want)
					}
				}
				if got == want {
					right++
				}
			}
			if lines == 0 || len(real.ops) == 0 {
				t.Error("nothing was compared")
			}
			routes := 0
			for _, want := range real.conns {
				if d := routeDiffers(c, want); d != "" {
					t.Errorf("%s: %s", want, d)
				} else {
					routes++
				}
			}
			t.Logf("%d ranks logged, lines equal %d/%d, choices %d/%d (%d distinct), connections %d/%d", len(real.ranks), equal, lines, right, len(real.ops), len(known), routes, len(real.conns))
		})
	}
}

// compareLines counts equal lines and reports the first that differ.
func compareLines(t *testing.T, who string, got, want []string) int {
	equal, told := 0, 0
	for i := range max(len(got), len(want)) {
		g, w := "(nothing)", "(nothing)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g == w {
			equal++
		} else if told++; told <= 3 {
			t.Errorf("%s line %d:\n got %q\nwant %q", who, i, g, w)
		}
	}
	return equal
}

// TestOthersLogs looks for what others' logs hold in what we print. One is of
// NCCL 2.27.7, whose system print leaves out nets on one node and whose cost
// table differs; the other is 2.28.9, but four processes wrote over each other,
// so that only whole lines count.
func TestOthersLogs(t *testing.T) {
	shared := golden.Shared(t)
	for _, run := range []struct {
		log, topo string
		kinds     *regexp.Regexp
		atLeast   int
	}{
		{"a100-pcie-x2-nvlbridge", "a100-pcie-x2-nvlbridge", regexp.MustCompile(`^(Pattern| ?\d+ : GPU|Tree \d|Channel|Ring|Trees|P2P|\d+ coll)`), 120},
		{"rtx4090x4-epyc-calico", "rtx4090x4-epyc-calico", regexp.MustCompile(`^(Pattern|Ring|Trees \[0\] \S+ \[1\] \S+$)`), 3},
	} {
		t.Run(run.log, func(t *testing.T) {
			real := readLog(t, filepath.Join(shared, "reference-logs", run.log+".log"))
			c, _, err := parity.Build(filepath.Join(shared, "topos", "nvidia", run.topo+".xml"), 1, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			for r := range c.NRanks {
				var got []string
				for _, l := range ncclog.OfRank(c, int32(r)) {
					got = append(got, l.Text)
				}
				for _, want := range real.ranks[r] {
					if !run.kinds.MatchString(want) || strings.Contains(want, "NCCL INFO") {
						continue
					}
					if seen++; !slices.Contains(got, want) {
						t.Errorf("rank %d does not print %q", r, want)
					}
				}
			}
			if seen < run.atLeast {
				t.Errorf("only %d lines compared", seen)
			}
			right := 0
			for _, want := range real.ops {
				if got, err := opText(c, want); err != nil || got != want {
					t.Errorf("chose %q (%v), NCCL %q", got, err, want)
				} else {
					right++
				}
			}
			t.Logf("%d lines found, choices %d/%d", seen, right, len(real.ops))
		})
	}
}
