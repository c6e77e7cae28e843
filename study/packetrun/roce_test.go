package packetrun

import (
	"os"
	"testing"
)

// TestRoCESeeds: each seed hashes flows to the paths that it hashes them to in htsim_roce, whose last flows
// finished at these times (us, seeds 1 to 5).
func TestRoCESeeds(t *testing.T) {
	const dir = "../../packet/simfiles/testdata/"
	for _, c := range []struct {
		matrix, topo string
		finish       [5]float64
	}{
		{"roce32.cm", "ls8x4.topo", [5]float64{149.56, 141.256, 138.691, 143.448, 178.771}},
		{"roce16.cm", "fat2x2.topo", [5]float64{76.1533, 76.1533, 60.7693, 77.1568, 65.6317}},
	} {
		ours, theirs := 0.0, 0.0
		for i, finish := range c.finish {
			x := Htsim{Matrix: dir + c.matrix, Topo: dir + c.topo, CC: "roce", Balance: "ecmp"}
			r, err := RunHtsim(x, Options{Read: os.ReadFile, Seed: uint64(i + 1), Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			got := float64(r.MakespanNs) / 1e3
			if d := got/finish - 1; d > 0.03 || d < -0.03 {
				t.Errorf("%s, seed %d: finish %.3f us, htsim's %.3f", c.matrix, i+1, got, finish)
			}
			ours, theirs = ours+got, theirs+finish
		}
		if d := ours/theirs - 1; d > 0.01 || d < -0.01 {
			t.Errorf("%s: finish %.3f us as the mean of 5 seeds, htsim's %.3f", c.matrix, ours/5, theirs/5)
		}
	}
}
