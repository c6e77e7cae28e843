package gpu

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/fail"
)

// A tray of an NVL72 is distinguished from eight B200 by its Grace CPU; what the rack's
// switches reduce and copy, the looks of its proxy threads, the wait for memory and kernels of serving
// differ.
func TestNVL72(t *testing.T) {
	rack, board := ClassFor(100, true, true, true), ClassFor(100, true, true, false)
	if rack.Name != "nvl72-sm100" || board.Name != "nvswitch-sm100" {
		t.Fatalf("classes %s and %s", rack.Name, board.Name)
	}
	if rack.MulticastEff >= board.MulticastEff {
		t.Errorf("multicast over 72 GPUs keeps %g of a link, over 8 %g", rack.MulticastEff,
			board.MulticastEff)
	}
	for _, q := range Quantities() {
		own := q.Name == "multicast_eff" || q.Name == "nic_look" || q.Name == "simple_hbm" ||
			q.For == "serving"
		if !own && *q.At(&rack) != *q.At(&board) {
			t.Errorf("%s: %g and %g", q.Name, *q.At(&rack), *q.At(&board))
		}
	}
	if alone := ClassFor(90, false, false, true); alone.Name != "superchip-sm90" {
		t.Errorf("a GH200 without NVLinks is of class %s", alone.Name)
	}
	if spark := ClassFor(121, false, false, true); spark.Name != "superchip-sm121" {
		t.Errorf("a GB10 is of class %s", spark.Name)
	}
	if gh200 := ClassFor(90, true, false, true); gh200.Name != "superchip-sm90" {
		t.Errorf("GH200 is %s", gh200.Name)
	}
}

// H100 behind NVSwitch has a class of its own, whose links carry less than H200's, with multicast as much.
func TestClassOfModel(t *testing.T) {
	h200, h100 := NVSwitch90().Of("H200"), NVSwitch90().Of("H100")
	if h200.Name != "nvswitch-sm90" || h100.Name != "nvswitch-h100" {
		t.Fatalf("H200 is of class %s, H100 of %s", h200.Name, h100.Name)
	}
	multicast := h100.LinkEff * h100.MulticastEff / (h200.LinkEff * h200.MulticastEff)
	if h100.LinkEff > 0.98*h200.LinkEff || multicast < 0.99 || multicast > 1.01 {
		t.Errorf("links %g and %g, under multicast %g of H200's", h100.LinkEff, h200.LinkEff, multicast)
	}
	if a100 := ClassFor(80, true, true, false); a100.Of("H100").Name != a100.Name {
		t.Error("a model changes the class of another kind of machine")
	}
}

// TestBuiltIn reads every class that machines get, and finds each parameter's
// value and origin in it. A class that is not from published tables has none from there but
// those of kernels of serving, which were not measured on its machine.
func TestBuiltIn(t *testing.T) {
	used := map[string]bool{"mi325x": true} // as mi300x by its file
	all := []Class{ClassForArch("gfx90a", 104), ClassForArch("gfx942", 228), ClassForArch("gfx942", 304),
		ClassForArch("gfx950", 256), NVSwitch90().Of("H100")}
	for _, sm := range []int{70, 75, 80, 86, 89, 90, 100, 103, 120} {
		for _, nvlink := range []bool{false, true} {
			for k := range 4 {
				all = append(all, ClassFor(sm, nvlink, k&1 != 0, k&2 != 0))
			}
		}
	}
	for _, c := range all {
		used[c.Name] = true
		for _, q := range Quantities() {
			v, o := *q.At(&c), c.Origins[q.Name]
			if err := q.check(v); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			if o.Source == "" || o.Source == Measured && c.Name != "nvswitch-sm90" ||
				o.Source == Published && c.Source == Estimated && q.For != "serving" {
				t.Errorf("%s: %s is %q", c.Name, q.Name, o.Source)
			}
		}
	}
	if c := ClassForArch("gfx908", 120); c.Name != "" {
		t.Errorf("gfx908 has class %s", c.Name)
	}
	for _, name := range Names() {
		if c, err := Named(name); err != nil || c.Name != name || !used[name] {
			t.Errorf("class %s: name %q, error %v, machine found %v", name, c.Name, err, used[name])
		}
	}
	if _, err := Named("dgx-1"); err == nil || !strings.Contains(err.Error(), "nvswitch-sm90") {
		t.Errorf("unknown class: %v", err)
	}
}

// TestFormat keeps the measured class's file as Format writes it.
func TestFormat(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("classes", "nvswitch-sm90.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(want, "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Format(); string(got) != string(want) {
		t.Errorf("classes/nvswitch-sm90.json is not as Format writes it:\n%s", got)
	}
}

func TestTimesBase(t *testing.T) {
	base := NVSwitch90()
	c, err := Parse(
		[]byte(`{"format":"simccl machine class","name":"x","machine":"","source":"estimated","base":"nvswitch-sm90","uncertainty":0.3,
"parameters":{"flag":{"times":2,"source":"estimated","uncertainty":0.4,"note":"far"},"l2":{"value":1e6,"unit":"B","source":"spec sheet","uncertainty":0}}}`), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	if c.Flag != 2*base.Flag || c.Memory.L2 != 1e6 || c.LL.Hop != base.LL.Hop {
		t.Errorf("flag %g, L2 %g, LL hop %g", c.Flag, c.Memory.L2, c.LL.Hop)
	}
	if o := c.Origins["ll_hop"]; o.Source != Estimated || o.Uncertainty != 0.3 {
		t.Errorf("what another class measured is here %+v", o)
	}
}

func TestMistakes(t *testing.T) {
	head := "{\"format\": \"simccl machine class\", \"name\": \"x\", \"source\": \"estimated\", " +
		"\"uncertainty\": 0.1,\n"
	for _, x := range []struct{ text, want string }{
		{"[]", "f.json:1:1: an object"},
		{`{"format": "other"}`, "f.json:1:12: format \"other\"; write simccl machine class"},
		{head + `"base": "none"}`, "f.json:2:9: base: no machine class \"none\""},
		{head + `"base": "mesh-sm80", "parameters": {"speed": 1}}`,
			"f.json:2:37: no parameter is called \"speed\""},
		{head + `"base": "mesh-sm80", "parameters": {"flag": {"value": 1, "unit": "ns", "source": "estimated", "uncertainty": 0}}}`, "flag is in us, not in \"ns\""},
		{head + `"base": "mesh-sm80", "parameters": {"flag": {"value": -1, "unit": "us", "source": "estimated", "uncertainty": 0}}}`, "flag is -1 us"},
		{head + `"base": "mesh-sm80", "parameters": {"flag": {"unit": "us", "source": "estimated", "uncertainty": 0}}}`, "needs a value"},
		{head + `"base": "mesh-sm80", "parameters": {"flag": {"value": 1, "unit": "us", "source": "guess", "uncertainty": 0}}}`, "write measured, published tables, spec sheet or estimated"},
		{head + `"parameters": {"flag": {"times": 1, "source": "estimated", "uncertainty": 0}}}`,
			"name the base before"},
		{head + `"parameters": {}}`, "parameter gap_ll is missing"},
		{head + `"parameters": {"flag": 3}}`, "f.json:2:24: number where"},
		{head + `"parameters": {}} 7`, "something follows"},
		{head + `"name": "y"}`, "f.json:2:1: name is there twice"},
		{`{"format": "simccl machine class", "base": "mesh-sm80"}`, "name is missing"},
		{`{"format": `, "ends too early"},
	} {
		_, err := Parse([]byte(x.text), "f.json")
		var at *fail.FileError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s\n got %v\nwant %s", x.text, err, x.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	c := NVSwitch90()
	f.Add(c.Format())
	f.Add([]byte(
		`{"format":"simccl machine class","name":"x","source":"estimated","base":"mesh-sm80","uncertainty":1,"parameters":{"flag":{"times":2,"source":"estimated","uncertainty":0}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data, "f")
		if err != nil {
			return
		}
		for _, q := range Quantities() {
			if v := *q.At(&c); math.IsNaN(v) || v < q.Low {
				t.Errorf("%s is %g", q.Name, v)
			}
		}
	})
}

// TestSummarySaysTheErrorsOfSmallAndLargeSizes of a class that was fitted to published tables.
func TestSummarySaysTheErrorsOfSmallAndLargeSizes(t *testing.T) {
	c := Class{Name: "x", Source: Published, Uncertainty: .05, Regimes: []Regime{
		{Op: "a", From: 512, To: 4096, Points: 1, Mean: .02}, {Op: "b", From: 512, To: 4096, Points: 3,
			Mean: .06},
		{Op: "a", From: 1 << 20, To: 1 << 29, Points: 2, Mean: .03}}}
	const want = "machine class x: published tables, times within about 5 % (held out: 5.0 % " +
		"below " +
		"1 MiB, 3.0 % from there)"
	if got := c.Summary(NoNetwork); got != want {
		t.Errorf("%s", got)
	}
}

// TestQuantitiesTakenAfterOthers: what a class does not give is taken to be like another quantity that it
// does.
func TestQuantitiesTakenAfterOthers(t *testing.T) {
	got := map[string]string{}
	for _, q := range Quantities() {
		if q.Like != "" {
			got[q.Name] = q.Like
		}
	}
	want := map[string]string{"simple_slice_copy": "simple_slice_local", "ll_first_issue": "ll_first",
		"beside_wait": "beside_traffic"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNamedClassesAreOnesOwn: what a caller writes to a built-in class no other caller sees.
func TestNamedClassesAreOnesOwn(t *testing.T) {
	const name = "nvswitch-h100"
	c, err := Named(name)
	if err != nil || len(c.Origins) == 0 || len(c.Regimes) == 0 {
		t.Fatal(len(c.Origins), len(c.Regimes), err)
	}
	clear(c.Origins)
	c.Regimes[0].Mean = -1
	if d, _ := Named(name); len(d.Origins) == 0 || d.Regimes[0].Mean < 0 {
		t.Fatalf("%d origins, regime %+v", len(d.Origins), d.Regimes[0])
	}
}
