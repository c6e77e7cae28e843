package accuracy

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/sim/gpu"
)

// quantities names the parameters that can be fitted.
func quantities(c *gpu.Class) map[string]*float64 {
	return map[string]*float64{
		"GapLL": &c.KernelGap[0], "GapLL128": &c.KernelGap[1], "GapSimple": &c.KernelGap[2], "P2PGap": &c.P2PGap, "Flag": &c.Flag,
		"PerByte": &c.Simple.PerByte, "Load": &c.Simple.Load, "Store": &c.Simple.Store, "Local": &c.Simple.Local,
		"Pack8": &c.Simple.Pack8, "Pack4": &c.Simple.Pack4, "Pack2": &c.Simple.Pack2, "Pack1": &c.Simple.Pack1,
		"Saturation": &c.Simple.Saturation, "Slice": &c.Simple.Slice, "PerThreads": &c.Simple.PerThreads, "SliceLocal": &c.Simple.SliceLocal, "Drain": &c.Simple.Drain, "Post": &c.Simple.Post, "Fence": &c.Simple.Fence,
		"LLBase": &c.LL.Trip.Base, "LLRecv": &c.LL.Trip.Recv, "LLSend": &c.LL.Trip.Send, "LLLoad": &c.LL.Trip.Load, "LLStore": &c.LL.Trip.Store, "LLSkew": &c.LL.Trip.Skew, "LLHBM": &c.LL.Trip.HBM, "LLFirst": &c.LL.First, "LLHop": &c.LL.Hop, "LLOp": &c.LL.Op,
		"L128Base": &c.LL128.Trip.Base, "L128Recv": &c.LL128.Trip.Recv, "L128Send": &c.LL128.Trip.Send, "L128Load": &c.LL128.Trip.Load, "L128Store": &c.LL128.Trip.Store, "L128Skew": &c.LL128.Trip.Skew, "L128HBM": &c.LL128.Trip.HBM, "L128First": &c.LL128.First, "L128Hop": &c.LL128.Hop, "L128Op": &c.LL128.Op,
		"L2": &c.Memory.L2, "L2Knee": &c.Memory.L2Knee, "JitSlice": &c.Jitter.Slice, "JitOp": &c.Jitter.Op, "JitChannel": &c.Jitter.Channel,
		"ShareLL": &c.LinkShare[0], "LinkEff": &c.LinkEff,
	}
}

// TestFit searches parameters by coordinates in log space over every STEP-th
// size (2 by default): FIT=Name,… SHOW=sets ROUNDS=n.
func TestFit(t *testing.T) {
	names := os.Getenv("FIT")
	if names == "" {
		t.Skip("a fit, by FIT=parameter,… SHOW=set prefix,…")
	}
	l := newLab(t)
	sets, err := Read(golden.Root(t, "testdata", "measured", "h200x4"))
	if err != nil {
		t.Fatal(err)
	}
	pts := trainingPoints(sets)
	score := func() float64 {
		s := 0.0
		for _, p := range pts {
			x := math.Log(l.predict(t, p) / p.Graph)
			w := 1.0
			if p.Bytes >= 1<<20 {
				w = 1.5
			}
			s += w * (math.Abs(x) + 3*x*x)
		}
		return s / float64(len(pts))
	}
	q := quantities(&l.class)
	list := strings.Split(names, ",")
	step := map[string]float64{}
	for _, n := range list {
		if q[n] == nil {
			t.Fatalf("no parameter %q", n)
		}
		step[n] = 0.15
	}
	best := score()
	fmt.Printf("%d points, start %.4f\n", len(pts), best)
	rounds, _ := strconv.Atoi(os.Getenv("ROUNDS"))
	for r := 0; r < max(1, rounds); r++ {
		for _, n := range list {
			old, hit := *q[n], false
			for _, d := range []float64{step[n], -step[n]} {
				*q[n] = old * math.Exp(d)
				if v := score(); v < best {
					best, hit = v, true
					step[n] = d * 1.3
					break
				}
				*q[n] = old
			}
			if !hit {
				step[n] *= 0.5
			}
		}
		fmt.Printf("round %d: %.4f", r, best)
		for _, n := range list {
			fmt.Printf(" %s=%.4g", n, *q[n])
		}
		fmt.Println()
	}
}

// trainingPoints picks every STEP-th size of the sets named in SHOW, of the
// operations named in ONLY.
func trainingPoints(sets []*Set) []*Point {
	every := 2
	if v, err := strconv.Atoi(os.Getenv("STEP")); err == nil {
		every = v
	}
	only := os.Getenv("ONLY")
	var pts []*Point
	for _, s := range sets {
		use := false
		for _, p := range strings.Split(os.Getenv("SHOW"), ",") {
			use = use || strings.HasPrefix(s.Name, p)
		}
		for i := range s.Points {
			p := &s.Points[i]
			if use && !s.SHM && p.Index%every == 0 && (only == "" || strings.Contains(","+only+",", ","+p.Func.TestName()+",")) {
				pts = append(pts, p)
			}
		}
	}
	return pts
}
