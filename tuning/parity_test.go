package tuning_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// doc is what a golden says that the model needs or answers.
type doc struct {
	NRanks int               `json:"nRanks"`
	Env    map[string]string `json:"env"`
	Args   []string          `json:"args"`
	System struct {
		GPUs []struct {
			SM int `json:"sm"`
		} `json:"gpus"`
		NVS []json.RawMessage `json:"nvs"`
	} `json:"system"`
	GraphsFinal []struct {
		Name         string  `json:"name"`
		ID           int     `json:"id"`
		Pattern      int     `json:"pattern"`
		NChannels    int     `json:"nChannels"`
		BWIntra      float32 `json:"bwIntra"`
		BWInter      float32 `json:"bwInter"`
		TypeIntra    string  `json:"typeIntra"`
		TypeInter    string  `json:"typeInter"`
		SameChannels int     `json:"sameChannels"`
		CrossNIC     int     `json:"crossNic"`
		LatencyInter float32 `json:"latencyInter"`
	} `json:"graphsFinal"`
	Channels struct {
		NChannels      int `json:"nChannels"`
		NVLSChannels   int `json:"nvlsChannels"`
		NNodes         int `json:"nNodes"`
		CPUArch        int `json:"cpuArch"`
		CPUVendor      int `json:"cpuVendor"`
		MaxTreePattern int `json:"maxTreePattern"`
		Ranks          []struct {
			Node int `json:"node"`
		} `json:"ranks"`
	} `json:"channels"`
	Tuning struct {
		Latencies  tuning.Cells `json:"latencies"`
		Bandwidths tuning.Cells `json:"bandwidths"`
		Thresholds [7][3]int64  `json:"threadThresholds"`
		MaxThreads [7][3]int    `json:"maxThreads"`
	} `json:"tuning"`
	Selection []struct {
		Func         string
		Size, Count  int64
		NBytes       int64
		Algo, Proto  string
		TimeUs       float32
		NMaxChannels int
		NWarps       int
		Threads      int
		Times        tuning.Times
		Error        int
	} `json:"selection"`
}

// docs keeps what was read: several tests walk all goldens.
var docs = map[string]*doc{}

func loadDoc(t testing.TB, path string) *doc {
	t.Helper()
	if d := docs[path]; d != nil {
		return d
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	d := new(doc)
	if err := json.NewDecoder(z).Decode(d); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	docs[path] = d
	return d
}

var kinds = map[string]topo.PathKind{
	"LOC": topo.PathLOC, "NVL": topo.PathNVL, "NVB": topo.PathNVB, "C2C": topo.PathC2C, "PIX": topo.PathPIX,
	"PXB": topo.PathPXB,
	"P2C": topo.PathP2C, "PXN": topo.PathPXN, "PHB": topo.PathPHB, "SYS": topo.PathSYS, "NET": topo.PathNET,
	"DIS": topo.PathDIS,
}

// input is the model's input as the golden gives it.
func (d *doc) input() tuning.Input {
	c := &d.Channels
	in := tuning.Input{
		NRanks: d.NRanks, NNodes: c.NNodes, TreePattern: search.Pattern(c.MaxTreePattern),
		Channels: c.NChannels, NVLSChannels: c.NVLSChannels, NVLS: c.NVLSChannels > 0,
		CPUArch: topo.CPUArch(c.CPUArch), CPUVendor: topo.CPUVendor(c.CPUVendor),
		NVSwitch: len(d.System.NVS) > 0, MinSM: math.MaxInt,
	}
	perNode := make([]int, c.NNodes)
	for _, r := range c.Ranks {
		perNode[r.Node]++
	}
	in.LocalRanks = perNode[c.Ranks[0].Node]
	for _, n := range perNode {
		in.MaxLocalRanks = max(in.MaxLocalRanks, n)
	}
	for _, g := range d.System.GPUs {
		in.MinSM, in.MaxSM = min(in.MinSM, g.SM), max(in.MaxSM, g.SM)
	}
	for _, g := range d.GraphsFinal {
		in.Graphs[g.ID] = &search.Graph{
			ID: g.ID, Name: g.Name, Pattern: search.Pattern(g.Pattern), NChannels: g.NChannels,
			BWIntra: units.GBps(g.BWIntra), BWInter: units.GBps(g.BWInter), LatencyInter: g.LatencyInter,
			TypeIntra: kinds[g.TypeIntra], TypeInter: kinds[g.TypeInter], SameChannels: g.SameChannels,
			CrossNIC: g.CrossNIC,
		}
	}
	return in
}

func (d *doc) params(t testing.TB) tuning.Params {
	p := tuning.Params{Rules: rules.Default()}
	num := func(dst *units.Opt[int64], v string) {
		var n int64
		if err := json.Unmarshal([]byte(v), &n); err != nil {
			t.Fatal(err)
		}
		*dst = units.Some(n)
	}
	for k, v := range d.Env {
		switch k {
		case "NCCL_ALGO":
			p.Algo = units.Some(v)
		case "NCCL_PROTO":
			p.Proto = units.Some(v)
		case "NCCL_THREAD_THRESHOLDS":
			p.ThreadThresholds = units.Some(v)
		case "NCCL_NTHREADS":
			num(&p.NThreads, v)
		case "NCCL_PAT_ENABLE":
			num(&p.PATEnable, v)
		case "NCCL_LL128_C2C":
			num(&p.LL128C2C, v)
		case "NCCL_NET_OVERHEAD":
			num(&p.NetOverheadNs, v)
		}
	}
	return p
}

// near compares to the nine digits that the goldens have.
func near(a, b float32) bool {
	return a == b || math.Abs(float64(a)-float64(b)) <= 1e-7*math.Max(math.Abs(float64(a)),
		math.Abs(float64(b)))
}

func nearCells(a, b tuning.Cells) bool {
	for f := range a {
		for i := range a[f] {
			for p := range a[f][i] {
				if !near(a[f][i][p], b[f][i][p]) {
					return false
				}
			}
		}
	}
	return true
}

// goldenFiles lists the project's own goldens and, unless short, the shared
// ones that are not among them.
func goldenFiles(t testing.TB) []string {
	own, _ := filepath.Glob("../testdata/topos/*.json.gz")
	more, _ := filepath.Glob("../testdata/topos/*/*.json.gz")
	own = append(own, more...)
	have := map[string]bool{}
	for _, f := range own {
		have[filepath.Base(f)] = true
	}
	if !testing.Short() {
		dir := os.Getenv("SIMCCL_SHARED")
		if dir == "" {
			dir = "../../shared"
		}
		all, _ := filepath.Glob(filepath.Join(dir, "golden", "*.json.gz"))
		if len(all) == 0 {
			t.Log("no ../shared/golden: the project's own goldens only")
		}
		for _, f := range all {
			if !have[filepath.Base(f)] {
				own = append(own, f)
			}
		}
	}
	if len(own) == 0 {
		t.Skip("no goldens: neither testdata/topos nor ../shared/golden")
	}
	sort.Strings(own)
	return own
}

// TestParity feeds every golden's final graphs and channels to the model and
// compares its table and every choice with NCCL 2.28.9's (graph/tuning.cc,
// enqueue.cc).
func TestParity(t *testing.T) {
	files := goldenFiles(t)
	tables, choices, ops, equalOps := 0, 0, 0, 0
	for _, path := range files {
		d, name := loadDoc(t, path), strings.TrimSuffix(filepath.Base(path), ".json.gz")
		m, err := tuning.New(d.input(), d.params(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if nearCells(m.Latency, d.Tuning.Latencies) && nearCells(m.Bandwidth, d.Tuning.Bandwidths) &&
			m.MaxThreads == d.Tuning.MaxThreads && m.ThreadThreshold == d.Tuning.Thresholds {
			tables++
		} else {
			t.Errorf("%s: table differs\n got lat %v\nwant lat %v\n got bw %v\nwant bw %v\n"+
				" got %v %v\nwant %v %v", name, m.Latency,
				d.Tuning.Latencies, m.Bandwidth, d.Tuning.Bandwidths, m.MaxThreads, m.ThreadThreshold,
				d.Tuning.MaxThreads, d.Tuning.Thresholds)
		}
		bad := 0
		for i := range d.Selection {
			ops++
			msg := checkChoice(m, d, i)
			if msg != "" {
				if bad == 0 {
					t.Errorf("%s: %s", name, msg)
				}
				bad++
				continue
			}
			equalOps++
		}
		if bad == 0 {
			choices++
		}
	}
	t.Logf("tables %d/%d, selections %d/%d, choices %d/%d", tables, len(files), choices, len(files), equalOps,
		ops)
}

// checkChoice compares one operation.
func checkChoice(m *tuning.Model, d *doc, i int) string {
	s := &d.Selection[i]
	f, err := coll.ParseFunc(s.Func)
	if err != nil {
		return err.Error()
	}
	c, err := m.Choose(tuning.Op{Func: f, Count: s.Count, Type: coll.Float32, RedOp: coll.Sum})
	if s.Error != 0 {
		var e *tuning.NoChoiceError
		if !errors.As(err, &e) || e.Code() != s.Error {
			return s.Func + ": want a refusal, got " + jsonText(c) + " and " + errText(err)
		}
		return ""
	}
	if err != nil {
		return s.Func + ": " + err.Error()
	}
	ok := int64(c.NBytes) == s.NBytes && c.Algo.String() == s.Algo && c.Proto.String() == s.Proto &&
		near(c.TimeUs, s.TimeUs) &&
		c.MaxChannels == s.NMaxChannels && c.Warps == s.NWarps && c.Threads == s.Threads
	for a := range c.Times {
		for p := range c.Times[a] {
			ok = ok && near(c.Times[a][p], s.Times[a][p])
		}
	}
	if !ok {
		return "got " + jsonText(c) + "\nwant " + jsonText(s)
	}
	return ""
}

func errText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
