package packetrun

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// folder has reference results of the peers and their inputs; it lies beside the
// checkout.
const folder = "../../../shared/packets/reference/"

// page is where the table is written.
const page = "../../docs/results/PACKETS.md"

// unpack reads the inputs of a peer.
func unpack(t *testing.T, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(folder + name)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("no %s beside the checkout: the reference runs are not there", folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[path.Clean(h.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func reader(files map[string][]byte) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if b, ok := files[path.Clean(name)]; ok {
			return b, nil
		}
		return nil, fmt.Errorf("%s: %w", name, os.ErrNotExist)
	}
}

func options(files map[string][]byte, seed uint64) Options {
	return Options{Read: reader(files), Seed: seed, Workers: 1, Timing: true, Compat: "ns3",
		Warn: func(string, ...any) {}}
}

// band is the least, mean and most makespan of ns-3 over five seeds.
type band struct{ low, mean, high float64 }

// known are misses, with what is known of them. A row that hits is removed from here.
var known = map[string]string{}

func bands(t *testing.T) map[string]band {
	f, err := os.Open(folder + "seeds_ns3.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	b := map[string]band{}
	for _, r := range rows[1:] {
		var v [3]float64
		for i := range v {
			v[i], _ = strconv.ParseFloat(r[1+i], 64)
		}
		b[r[0]] = band{v[0], v[1], v[2]}
	}
	return b
}

// outcome is a scenario at the peer and here; makespans in ns.
type outcome struct {
	name         string
	theirs, ours float64
	seeds        int // of ours, averaged
	peak, ourPk  float64
	cpu, ourCPU  float64 // ours at their machine's speed
	verdict      string
}

func (o *outcome) row() string {
	ratio := "–"
	if o.timed() && o.ourCPU > 0 {
		ratio = fmt.Sprintf("%.0f", o.cpu/o.ourCPU)
	}
	peak := "–"
	if o.peak > 0 {
		peak = fmt.Sprintf("%.0f / %.0f", o.peak/1e3, o.ourPk/1e3)
	}
	return fmt.Sprintf("| %s | %.3f | %.3f | %+.2f %% | %d | %s | %.2f | %s | %s |\n", o.name, o.theirs/1e3,
		o.ours/1e3, 100*(o.ours/o.theirs-1), o.seeds, peak, o.cpu, ratio, o.verdict)
}

// timed says whether the peer took long enough for a ratio.
func (o *outcome) timed() bool { return o.cpu >= 0.02 }

// average runs a scenario with seeds 1 to n, and measures it where the peer's time is
// comparable, with these seeds in turn.
func (o *outcome) average(t *testing.T, m *meter, n int, run func(seed uint64) (*Report, error)) {
	t.Helper()
	o.seeds = n
	for seed := range n {
		r := must(t, run, uint64(seed+1))
		o.ours += float64(r.MakespanNs) / float64(n)
		o.ourPk += float64(r.PeakQueueBytes) / float64(n)
	}
	if m.program == "" || !o.timed() {
		return
	}
	o.ourCPU = m.seconds(t, func(round int) float64 { return *must(t, run, uint64(round%n+1)).CPUSeconds })
}

// must runs a scenario that has to end.
func must(t *testing.T, run func(seed uint64) (*Report, error), seed uint64) *Report {
	t.Helper()
	r, err := run(seed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// judgeNs3 says whether a scenario ends at the same ns: equal seeds draw equal
// numbers.
func (o *outcome) judgeNs3() {
	o.verdict = "hit: equal to the ns"
	if o.ours != o.theirs {
		o.verdict = "missed: not equal"
	}
}

// fiveSeeds compares the least, mean and most makespan of seeds 1 to 5.
func fiveSeeds(t *testing.T, name string, theirs band, run func(seed uint64) (*Report, error)) {
	t.Helper()
	ours := band{low: math.Inf(1)}
	for seed := range 5 {
		r, err := run(uint64(seed + 1))
		if err != nil {
			t.Fatal(err)
		}
		v := float64(r.MakespanNs)
		ours = band{min(ours.low, v), ours.mean + v/5, max(ours.high, v)}
	}
	if ours.low != theirs.low || ours.high != theirs.high || math.Abs(ours.mean-theirs.mean) > 1 {
		t.Errorf("%s: seeds 1 to 5 take %.0f ns, theirs %.0f (least, mean, most)", name, ours, theirs)
	}
}

// judge says whether a scenario is within the band that was set for its kind.
func (o *outcome) judge(share float64) {
	switch d := o.ours/o.theirs - 1; {
	case share == 0:
		o.verdict = "drawn; one seed of theirs"
	case d <= share && d >= -share:
		o.verdict = fmt.Sprintf("hit: within %g %%", 100*share)
	default:
		o.verdict = fmt.Sprintf("missed: %g %% allowed", 100*share)
	}
}

// ns3Cases compares all scenarios of the HPCC simulator.
func ns3Cases(t *testing.T, m *meter) (all []outcome) {
	files, seeds := unpack(t, "ns3_inputs.tar.gz"), bands(t)
	names, _ := filepath.Glob(folder + "ns3/*.json")
	for _, name := range names {
		var want struct {
			Name     string
			CC       string
			Done     int
			Makespan float64            `json:"makespan_ns"`
			CPU      float64            `json:"run_cpu_s"`
			Peak     map[string]float64 `json:"peak_queue_bytes"`
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		config := want.Name + "/config.txt"
		if files[config] == nil || want.Done == 0 {
			continue
		}
		o := outcome{name: want.Name, theirs: want.Makespan, cpu: want.CPU}
		for _, p := range want.Peak { //lint:sorted a maximum of all
			o.peak = max(o.peak, p)
		}
		if band, many := seeds[want.Name]; many {
			fiveSeeds(t, want.Name, band, func(seed uint64) (*Report, error) {
				return NS3(config, options(files, seed))
			})
		}
		o.average(t, m, 1, func(seed uint64) (*Report, error) { return NS3(config, options(files, seed)) })
		o.judgeNs3()
		all = append(all, o)
	}
	return all
}

// htsimCases compares all scenarios of htsim that end.
func htsimCases(t *testing.T, m *meter) (all []outcome) {
	files := unpack(t, "htsim_inputs.tar.gz")
	names, _ := filepath.Glob(folder + "htsim/*.json")
	for _, name := range names {
		var want struct {
			Name   string
			Binary string
			Args   []string
			Finish struct{ Max float64 } `json:"finish_us"`
			CPU    float64               `json:"user_cpu_s"`
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		h := Htsim{Matrix: find(files, want.Name+".cm"), CC: "nscc", Balance: "mixed",
			Topo: find(files, "ls16x8.topo")}
		for i := 0; i+1 < len(want.Args); i++ {
			switch v := want.Args[i+1]; want.Args[i] {
			case "-topo":
				h.Topo = find(files, path.Base(v))
			case "-load_balancing_algo":
				h.Balance = v
			case "-mtu":
				h.MTU, _ = strconv.Atoi(v)
			}
		}
		if want.Binary == "htsim_roce" {
			h.CC, h.Balance = "roce", "ecmp"
		}
		if h.Matrix == "" || slices.Contains(want.Args, "-out_of_order") {
			continue
		}
		o := outcome{name: want.Name, theirs: 1e3 * want.Finish.Max, cpu: want.CPU}
		share, seeds := 0.05, 5
		switch {
		case h.Balance == "ecmp" && h.CC == "nscc":
			seeds = 1 // theirs: equal seeds hash flows to equal paths
		case h.Balance == "ecmp" || h.Balance == "oblivious":
			share = 0
		}
		o.average(t, m, seeds, func(seed uint64) (*Report, error) {
			return RunHtsim(h, options(files, seed))
		})
		o.judge(share)
		all = append(all, o)
	}
	return all
}

// find returns the file of a base name.
func find(files map[string][]byte, base string) string {
	for name := range files { //lint:sorted base names are unique
		if path.Base(name) == base {
			return name
		}
	}
	return ""
}

// TestReferencePage compares every reference run with its band, and writes the
// table of docs/results/PACKETS.md with SIMCCL_UPDATE=1.
func TestReferencePage(t *testing.T) {
	if testing.Short() {
		t.Skip("runs each reference scenario several times: without -short")
	}
	const head = "| scenario | theirs, µs | ours, µs | difference | seeds | deepest queue, kB: theirs / " +
		"ours | their CPU, s | ratio | verdict |\n|---|---|---|---|---|---|---|---|---|\n"
	var b strings.Builder
	var all []outcome
	m := newMeter(t)
	for _, part := range []struct {
		title string
		cases []outcome
	}{{"### HPCC on ns-3", ns3Cases(t, m)}, {"### htsim", htsimCases(t, m)}} {
		fmt.Fprintf(&b, "%s\n\n%s", part.title, head)
		all = append(all, part.cases...)
		for _, o := range part.cases {
			missed := strings.HasPrefix(o.verdict, "missed")
			if why := known[o.name]; missed && why != "" {
				o.verdict += "; " + why
			}
			b.WriteString(o.row())
			if missed != (known[o.name] != "") {
				t.Errorf("%s: %.3f us, theirs %.3f: %s", o.name, o.ours/1e3, o.theirs/1e3, o.verdict)
			}
			if o.peak > 0 && (o.ourPk > 1.15*o.peak+20000 || o.ourPk < 0.85*o.peak) &&
				!strings.Contains(o.name, "hpcc") && o.seeds == 1 {
				t.Errorf("%s: deepest queue %.0f bytes, theirs %.0f", o.name, o.ourPk, o.peak)
			}
		}
		b.WriteString("\n")
	}
	if os.Getenv("SIMCCL_UPDATE") == "" {
		return
	}
	rewrite(t, "<!-- speed -->\n", speedTable(all, m)+hopsTable(t, m))
	rewrite(t, "<!-- table -->\n", b.String())
}

// rewrite replaces the part of the page from a mark to the next, with
// SIMCCL_UPDATE=1.
func rewrite(t *testing.T, mark, part string) {
	t.Helper()
	if os.Getenv("SIMCCL_UPDATE") == "" {
		return
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := bytes.Cut(text, []byte(mark))
	if !ok {
		t.Fatalf("%s has no line %s", page, mark)
	}
	_, rest, more := bytes.Cut(after, []byte("<!-- end -->\n"))
	if !more {
		t.Fatalf("%s has no <!-- end --> after %s", page, mark)
	}
	if err := os.WriteFile(page, []byte(string(before)+mark+strings.TrimRight(part, "\n")+"\n<!-- end -->\n"+
		string(rest)), 0o644); err != nil {
		t.Fatal(err)
	}
}
