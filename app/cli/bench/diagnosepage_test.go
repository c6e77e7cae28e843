package bench

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/diagnose"
)

// TestPageShowsBandSuspectsAndMarks: the page has the expected band, the curve of each suspect, and the
// devices marked that the first suspect is about.
func TestPageShowsBandSuspectsAndMarks(t *testing.T) {
	site, err := scenario.Load(&scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{
		{Topo: "dgx-h100", Count: 2}}}}, scenario.Options{Settings: config.Sources{NoEnv: true}})
	if err != nil {
		t.Fatal(err)
	}
	from := int64(1 << 20)
	r := &diagnose.Report{Verdict: diagnose.Slower, From: &from, Shape: "plateau",
		System: site.Cluster.Host(0).Systems[0],
		Sizes: []diagnose.Size{{Bytes: 8, Measured: 10, Expected: [3]float64{8, 10, 12}},
			{Bytes: 1 << 20, Measured: 90, Expected: [3]float64{40, 50, 60}}},
		Suspects: []diagnose.Suspect{{Kind: "nic-slow", Rank: 1, Prove: "<ibstat>", Curve: []diagnose.Point{
			{Bytes: 8,
				Us: 10}, {Bytes: 1 << 20, Us: 88}}}}}
	var b strings.Builder
	if err := (&DiagnoseOptions{Files: []string{"t.txt"}}).page(&b, r); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"<polygon", "1. nic-slow", "mlx5_0", ", suspected", "&lt;ibstat&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if n := strings.Count(page, ", suspected"); n != 8 {
		t.Errorf("%d devices are marked, want the 8 NICs", n)
	}
}
