package packetrun

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/packet/simfiles"
)

// victim is a run with pauses and head-of-line blocking, with samples each microsecond.
func victim(t *testing.T) *Report {
	t.Helper()
	r, err := NS3("../../testdata/packets/config.txt", Options{Read: os.ReadFile, Seed: 1, Workers: 1,
		Compat: "ns3", EveryUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines reads a file of the HPCC simulator: numbers by line.
func lines(t *testing.T, r *Report, name string) (out [][]int64) {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteFile(name, &b); err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(&b); s.Scan(); {
		var row []int64
		for i, w := range strings.Fields(strings.TrimPrefix(s.Text(), "time:")) {
			base := 10
			if name == FCT && i < 2 {
				base = 16
			}
			v, err := strconv.ParseInt(w, base, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			row = append(row, v)
		}
		out = append(out, row)
	}
	return out
}

// TestFilesReadBack: what is read from fct.txt, qlen.txt and pfc.txt is what the report says: each flow that
// ended, as many samples at each port of a switch as there are intervals, each pause and its end.
func TestFilesReadBack(t *testing.T) {
	r := victim(t)
	seen := map[[2]int64]int64{}
	last := int64(0)
	for _, x := range lines(t, r, FCT) {
		node := func(a int64) int64 { return a >> 8 & 0xffff }
		seen[[2]int64{node(x[0]), node(x[1])}] = x[6]
		if len(x) != 8 || x[5]+x[6] < last || x[3] != 100 || x[4] != 10_000_000 {
			t.Errorf("fct.txt: %v", x)
		}
		last = x[5] + x[6]
	}
	for i := range r.Flows {
		f := &r.Flows[i]
		if seen[[2]int64{int64(f.Src), int64(f.Dst)}] != *f.FctNs {
			t.Errorf("fct.txt has flow %d with %d ns, the report %d", i,
				seen[[2]int64{int64(f.Src), int64(f.Dst)}], *f.FctNs)
		}
	}
	q := lines(t, r, Queues)
	if want := r.Series.EndNs/r.Series.IntervalNs + 1; len(q) != 10 { // the time, and 3 and 6 ports
		t.Errorf("qlen.txt has %d lines", len(q))
	} else {
		for _, x := range q[1:] {
			sum := int64(0)
			for _, v := range x[2:] {
				sum += v
			}
			if sum != want {
				t.Errorf("qlen.txt: port %d of switch %d has %d samples, want %d", x[1], x[0], sum, want)
			}
		}
	}
	pauses, held := int64(0), map[[2]int64]int64{}
	for _, x := range lines(t, r, Pauses) {
		if at := [2]int64{x[1], x[3]}; held[at] == x[4] {
			t.Errorf("pfc.txt: %v comes twice", x)
		} else {
			held[at] = x[4]
		}
		pauses += x[4]
		if (x[2] == 1) != (x[1] >= 7) {
			t.Errorf("pfc.txt: %v takes a host for a switch", x)
		}
	}
	if pauses != r.Pauses {
		t.Errorf("pfc.txt has %d pauses, the report %d", pauses, r.Pauses)
	}
}

// TestCSVHasEachFlow: a row a flow, whose end is its start and its completion time.
func TestCSVHasEachFlow(t *testing.T) {
	r := victim(t)
	r.Flows[2].FctNs, r.Flows[2].Slowdown = nil, 0
	var b bytes.Buffer
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, row := range rows[1:] {
		f := &r.Flows[i]
		want := fmt.Sprint(i, f.Src, f.Dst, f.Bytes, f.StartNs, "", "", f.IdealNs, "")
		if f.FctNs != nil {
			want = fmt.Sprint(i, f.Src, f.Dst, f.Bytes, f.StartNs, f.StartNs+*f.FctNs, *f.FctNs, f.IdealNs,
				strconv.FormatFloat(float64(*f.FctNs)/float64(f.IdealNs), 'f', 4, 64))
		}
		got := make([]any, len(row))
		for k, s := range row {
			got[k] = s
			if v, err := strconv.ParseInt(s, 10, 64); err == nil {
				got[k] = v
			}
		}
		if fmt.Sprint(got...) != want {
			t.Errorf("row %d is %v, want %s", i, row, want)
		}
	}
}

// TestIdealTimesAreThePeers: the ideal completion times are those that the HPCC simulator printed, for each
// flow of each reference run.
func TestIdealTimesAreThePeers(t *testing.T) {
	files := unpack(t, "ns3_inputs.tar.gz")
	names, err := filepath.Glob(folder + "ns3/*.fct.csv")
	if err != nil || len(names) == 0 {
		t.Skipf("no reference runs in %s: %v", folder, err)
	}
	flows := 0
	for _, file := range names {
		name := strings.TrimSuffix(filepath.Base(file), ".fct.csv")
		x, err := simfiles.LoadNS3(name+"/config.txt", reader(files))
		if err != nil {
			continue // some names are drawn by seed, from the same inputs
		}
		alone := newIdeals(&x.Network, x.Config.Frames.Payload, x.Config.Frames.Header-x.Carried)
		for _, row := range table(t, file) {
			v := func(k string) int64 { n, _ := strconv.ParseInt(row[k], 10, 64); return n }
			if got := alone.of(int32(v("src")), int32(v("dst")), v("bytes")); got != v("ideal_ns") {
				t.Fatalf("%s: %d > %d, %d bytes: ideally %d ns, the simulator's %d", name, v("src"), v("dst"),
					v("bytes"), got, v("ideal_ns"))
			}
			flows++
		}
	}
	if flows < 1000 {
		t.Errorf("%d flows are compared: few", flows)
	}
}

// TestQueuesOverTimeAreThePeers: the samples of queues are those of the HPCC simulator, which takes them at
// the same times. Frames that come or go at the very instant of a sample are counted on either side of it: at
// most one of each sender.
func TestQueuesOverTimeAreThePeers(t *testing.T) {
	files := unpack(t, "ns3_inputs.tar.gz")
	for _, name := range []string{"iv_victim_pfc", "ii_incast_pfc_8to1_1mb", "ii_incast_mlx_8to1_1mb",
		"ii_incast_paper_2to1_1mb"} {
		r, err := NS3(name+"/config.txt", Options{Read: reader(files), Seed: 1, Workers: 1, Compat: "ns3",
			EveryUs: 1, Warn: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		number := ports(r.raw.net)
		link := map[[2]int64][2]int32{}
		for i, c := range r.raw.net.Cables {
			link[[2]int64{int64(c.A), int64(number[2*i])}] = [2]int32{c.A, c.B}
			link[[2]int64{int64(c.B), int64(number[2*i+1])}] = [2]int32{c.B, c.A}
		}
		equal, all := 0, 0
		for _, row := range table(t, folder+"ns3/"+name+".queue.csv") {
			v := func(k string) int64 { n, _ := strconv.ParseInt(row[k], 10, 64); return n }
			got := r.Series.at(link[[2]int64{v("switch"), v("port")}], v("t_ns"))
			if all++; got == v("bytes") {
				equal++
			} else if math.Abs(float64(got-v("bytes"))) > float64(len(r.Flows)*1048) {
				t.Errorf("%s: at %d ns port %d of switch %d has %d bytes, the simulator's %d", name,
					v("t_ns"),
					v("port"), v("switch"), got, v("bytes"))
			}
		}
		if equal*100 < all*97 {
			t.Errorf("%s: %d of %d samples are the simulator's", name, equal, all)
		}
	}
}

// at is the length of a queue at a time.
func (s *Series) at(link [2]int32, ns int64) (bytes int64) {
	for _, q := range s.Queues {
		if q.Link != link {
			continue
		}
		i, found := slices.BinarySearchFunc(q.Points, ns, func(p [2]int64, at int64) int {
			return int(p[0] - at)
		})
		if found {
			return q.Points[i][1]
		} else if i > 0 {
			return q.Points[i-1][1]
		}
	}
	return 0
}

// table reads a CSV file as rows by column.
func table(t *testing.T, file string) (out []map[string]string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("no %s: %v", file, err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		x := map[string]string{}
		for i, v := range row {
			x[rows[0][i]] = v
		}
		out = append(out, x)
	}
	return out
}

// TestSlowdownGroups: flows of one size are in one group, few sizes have a group each, and all groups
// together have all flows; the CDF grows to one.
func TestSlowdownGroups(t *testing.T) {
	for _, sizes := range []int{1, 3, 10, 11, 400} {
		var flows []Flow
		for i := range 1000 {
			fct := int64(100 + i)
			f := Flow{Bytes: int64(1 + i%sizes*(i%sizes)), FctNs: &fct, IdealNs: 100}
			f.Slowdown = f.slowdownOf()
			flows = append(flows, f)
		}
		x := slowdown(flows)
		n, last := 0, int64(-1)
		for _, g := range x.Sizes {
			if g.Least <= last || g.Most < g.Least {
				t.Errorf("%d sizes: group of %d to %d bytes after %d", sizes, g.Least, g.Most, last)
			}
			n, last = n+g.Flows, g.Most
		}
		if n != 1000 || len(x.Sizes) > 10 || len(x.Sizes) < min(sizes, 5) || sizes <= 10 &&
			len(x.Sizes) != sizes {
			t.Errorf("%d sizes: %d groups with %d flows", sizes, len(x.Sizes), n)
		}
		if end := x.CDF[len(x.CDF)-1]; end != [2]float64{x.Max, 1} || x.Median != 5.99 || x.Max != 10.99 {
			t.Errorf("%d sizes: the CDF ends at %v, median %g, max %g", sizes, end, x.Median, x.Max)
		}
	}
}

// TestCurvesKeepPeaksAndBytes: the curve of a queue has the deepest sample, and a curve of rates has all
// bytes of its flow, however long its bins are.
func TestCurvesKeepPeaksAndBytes(t *testing.T) {
	r := victim(t)
	deepest := int64(0)
	for _, q := range r.Series.Queues {
		for _, p := range q.Points {
			deepest = max(deepest, p[1])
		}
	}
	got := 0.0
	for _, p := range r.QueueCurves()[0].Points {
		got = max(got, p[1])
	}
	if got != float64(deepest)/1e3 {
		t.Errorf("the deepest queue is drawn with %g kB, sampled with %d B", got, deepest)
	}
	_, ns := r.Series.bins()
	for _, c := range r.RateCurves() {
		sum := 0.0
		for _, p := range c.Points {
			sum += p[1] * float64(ns) / 8
		}
		if math.Abs(sum-10e6) > 1 {
			t.Errorf("%s: the curve has %g of 10e6 bytes", c.Name, sum)
		}
	}
}
