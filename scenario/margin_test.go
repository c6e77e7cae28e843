package scenario

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
)

// TestWindowsOfUnequalHosts: in a window of an alltoall between hosts of different speeds
// transfers meet others than in the whole operation. Its time is 13 % off, and its row says that
// it may be.
func TestWindowsOfUnequalHosts(t *testing.T) {
	s := small("alltoall", "256M")
	s.Machine.Nodes = []Nodes{{"h200x4-h2x2.xml", 3}, {"aws-p4d.xml", 2}}
	s.Engine.Launch, s.Engine.NoProof = "graph", true
	opt := Options{Files: os.DirFS(golden.Root(t, "testdata", "topos")), Settings: config.Sources{
		NoEnv: true}}
	var times, margins []float64
	for _, skip := range []string{"", "off"} {
		s.Engine.Skip = skip
		r, err := Run(context.Background(), s, opt)
		if err != nil {
			t.Fatal(err)
		}
		times, margins = append(times, float64(r.Rows[0].Out.Time)), append(margins, r.Rows[0].Facts.Margin)
	}
	if off := math.Abs(times[0]/times[1] - 1); off < 0.03 || off > margins[0] {
		t.Errorf("%.1f %% off where %.0f %% are said; at least 3 %%, or the test shows nothing", 100*off,
			100*margins[0])
	}
}
