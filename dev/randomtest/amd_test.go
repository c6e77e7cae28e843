package whole

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/tuning"
)

// thinned is a topology file without some of its GPUs, NICs, links and PCI devices.
func thinned(t *testing.T, text []byte, r *rand.Rand) []byte {
	t.Helper()
	share := map[string]float64{"gpu": .1, "net": .1, "nic": .06, "pci": .02, "cpu": .01}
	if r.IntN(4) == 0 { // most such files are refused, for a link of one side only
		share["xgmi"] = .05
	}
	var out bytes.Buffer
	in, enc := xml.NewDecoder(bytes.NewReader(text)), xml.NewEncoder(&out)
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && r.Float64() < share[e.Name.Local] {
			if err := in.Skip(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := enc.EncodeToken(token); err != nil {
			t.Fatal(err)
		}
	}
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// decided makes the document of a machine and proves the plans of what RCCL chooses on it. It reports whether
// the machine was taken; an error of a type that users meet is an answer.
func decided(file []byte, version string, nodes int) (taken bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	opt := site.Options()
	opt.Files = fstest.MapFS{"a.xml": {Data: file}}
	r, err := rules.For("rccl-" + version)
	if err != nil {
		return false, err
	}
	opt.Settings = config.Sources{Rules: r, NoEnv: true}
	s, err := scenario.Load(&scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "a.xml",
		Count: nodes}}}}, opt)
	if err != nil {
		return false, nil //nolint:nilerr // a machine that RCCL refuses
	}
	c := s.Comm
	if _, err := decision.New(c, decision.Given{Nodes: nodes, GPUsPerNode: c.NRanks / nodes}); err != nil {
		return true, fmt.Errorf("document: %w", err)
	}
	for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast,
		coll.AllToAll} {
		for _, count := range []int64{64, 1 << 18, 1 << 22} {
			pl, _, err := c.Plan(comm.Op{Func: f, Type: coll.Float32, RedOp: coll.Sum, Count: count})
			var refused *plan.UnsupportedError
			var none *tuning.NoChoiceError
			if errors.As(err, &refused) || errors.As(err, &none) || errors.Is(err, tuning.ErrOneRank) {
				continue
			}
			if err == nil {
				err = check.Plan(pl)
			}
			if err != nil {
				return true, fmt.Errorf("%s of %d: %w", f, count, err)
			}
		}
	}
	return true, nil
}

// TestThinnedMachinesOfAMD: RCCL's rules answer on any part of AMD's machines: without some GPUs, NICs, XGMI
// links and PCI devices there is no panic, and the plans of what is chosen are proven.
func TestThinnedMachinesOfAMD(t *testing.T) {
	files, err := filepath.Glob(golden.Shared(t, "rccl", "topos") + "/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	times := 3
	if testing.Short() {
		files, times = files[:7], 1
	}
	taken, all := 0, 0
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for k := range times {
			r := rand.New(rand.NewPCG(uint64(i), uint64(k)))
			file, nodes := thinned(t, text, r), 1+r.IntN(3)
			for _, version := range []string{"2.30.4", "2.28.3"} {
				ok, err := decided(file, version, nodes)
				if all++; ok {
					taken++
				}
				if err != nil {
					t.Errorf("%s, seed %d, %d nodes, RCCL %s: %v", filepath.Base(name), k, nodes,
						version, err)
				}
			}
		}
	}
	t.Logf("%d of %d machines taken", taken, all)
	if 2*taken < all {
		t.Errorf("%d of %d machines were refused", all-taken, all)
	}
}
