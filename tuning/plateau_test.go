package tuning_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// TestSegmentsKnowThePlateau: from 64 bytes for each rank and channel on (tuning.cc:594) the latency of Ring
// Simple is longer. A slow tree wins there for some bytes though the ring wins before and behind, within one
// octave: segments that were not cut at that size would not show it.
func TestSegmentsKnowThePlateau(t *testing.T) {
	const nodes, channels, step = 4, 12, 64 * 4 * 12
	in := tuning.Input{NRanks: nodes, NNodes: nodes, LocalRanks: 1, MaxLocalRanks: 1, Channels: channels,
		MinSM: 80,
		MaxSM: 80, CPUArch: 1, CPUVendor: 1, TreePattern: search.SplitTree}
	for id, bw := range map[int]units.GBps{search.RingID: 0.16335343, search.TreeID: 0.011788274} {
		in.Graphs[id] = &search.Graph{ID: id, NChannels: channels, BWIntra: 40, BWInter: bw,
			TypeIntra: topo.PathNVL,
			TypeInter: topo.PathPIX}
	}
	for id := range in.Graphs {
		if in.Graphs[id] == nil {
			in.Graphs[id] = &search.Graph{ID: id}
		}
	}
	m, err := tuning.New(in, tuning.Params{Rules: rules.Default(), Proto: units.Some("Simple")})
	if err != nil {
		t.Fatal(err)
	}
	segments, err := m.Segments(tuning.Op{Func: coll.AllReduce, Type: coll.Float32}, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[units.Bytes]coll.Algorithm{step - 4: coll.Ring, step: coll.Tree,
		4096: coll.Ring} {
		c, err := m.Choose(tuning.Op{Func: coll.AllReduce, Type: coll.Float32, Count: int64(bytes / 4)})
		if err != nil || c.Algo != want {
			t.Errorf("%d bytes: the model takes %v (%v), want %v", bytes, c.Algo, err, want)
		}
		for _, s := range segments {
			if s.From <= bytes && bytes <= s.To && s.Algo != want {
				t.Errorf("%d bytes: the segment says %+v, want %v", bytes, s, want)
			}
		}
	}
}
