package accuracy

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestHalvesOfPublishedTablesFollowFromTheirNames: which tables a fit may see does not depend on what
// is in them, and a name that is known stays in its half.
func TestHalvesOfPublishedTablesFollowFromTheirNames(t *testing.T) {
	var fitted string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if Fitted("S", name) {
			fitted += name
		}
	}
	if want := "abdeh"; fitted != want {
		t.Errorf("of names a to h %s are fitted, want %s", fitted, want)
	}
}

// TestVendorPageIsAsSimulated: docs/results/ACCURACY-GPUS.md has the errors of both halves, and README.md's
// table those of the unseen one.
func TestVendorPageIsAsSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: simulates every table of the page, 18 s of a processor")
	}
	page, err := VendorPage(t.Context(), os.DirFS(golden.Shared(t, "reference")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(golden.Root(t, "docs", "results", "ACCURACY-GPUS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page {
		t.Errorf("docs/results/ACCURACY-GPUS.md is not what go run ./dev/cmd/accuracy vendors page writes")
	}
}

// TestRegimesAreAsSimulated: a class that was fitted to sweeps states its errors at the sizes between.
func TestRegimesAreAsSimulated(t *testing.T) {
	tables := os.DirFS(golden.Shared(t, "reference"))
	for _, keys := range [][]string{{"a100"}, {"h100"}, {"b200", "gb200"}, {"b300", "gb300"}, {"rtxpro"}} {
		var points []Point
		for _, key := range keys {
			of, err := SimulateVendor(t.Context(), tables, key, "", true)
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, of...)
		}
		class, err := VendorClass(keys[0], "")
		if err != nil {
			t.Fatal(err)
		}
		if want := VendorRegimes(points); !reflect.DeepEqual(class.Regimes, want) {
			text, _ := json.Marshal(want)
			t.Errorf("sim/gpu/classes/%s.json, regimes:\n%s", class.Name,
				strings.ReplaceAll(string(text), "},{", "},\n{"))
		}
	}
}

// TestReadmeSaysTheAccuracyOfEachGPU: its table has the unseen half of docs/results/ACCURACY-GPUS.md.
func TestReadmeSaysTheAccuracyOfEachGPU(t *testing.T) {
	text, err := os.ReadFile(golden.Root(t, "docs", "results", "ACCURACY-GPUS.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, " | "); len(f) == 8 && f[3] == "unseen" {
			n++
			inReadme(t, strings.Join([]string{f[0], f[1], f[5], f[6]}, " | ")+" |")
		}
	}
	if n != len(Vendors) {
		t.Errorf("%d rows of %d GPUs", n, len(Vendors))
	}
}
