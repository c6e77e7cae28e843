package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/reductions"
	"github.com/simccl/simccl/units"
)

// TestPairsGoOnWhereTheirFileEnds: what was compared before counts, a torn last line does not, and
// the pair that is furthest beyond its margin is shown first.
func TestPairsGoOnWhereTheirFileEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pairs")
	rows := `{"n":0,"request":"a","near_us":101,"exact_us":100,"margin":0.03}
{"n":1,"request":"b","skipped":"exact"}
{"n":2,"request":"c","near_us":110,"exact_us":100,"margin":0.05}
{"n":3,"requ`
	if err := os.WriteFile(file, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	broken, err := compare(context.Background(), file, &out, 1, 2, reductions.Within{})
	if err != nil || broken != 1 || !strings.HasPrefix(out.String(), "! +10.00 %") {
		t.Errorf("%d broken, %v:\n%s", broken, err, &out)
	}
}

// TestMarginsHold: approximate times of a few random requests are within their margins. make
// margins compares more.
func TestMarginsHold(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: seconds of exact runs")
	}
	file := filepath.Join(t.TempDir(), "pairs")
	var out strings.Builder
	within := reductions.Within{Time: units.Second, Memory: 1 << 30}
	broken, err := compare(context.Background(), file, io.MultiWriter(&out), 44, 10, within)
	if err != nil || broken > 0 {
		t.Errorf("%d broken, %v:\n%s", broken, err, &out)
	}
}
