package tuning_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/tuning"
)

// TestPluginsChannelsAreBounded: the channels that a tuner plugin writes are bounded by those that the
// algorithm has (enqueue.cc:1973): NVLS by its own, the others by the communicator's. A row that leaves them
// to the plugin, and an operation without a row, have the plugin's.
func TestPluginsChannelsAreBounded(t *testing.T) {
	host := ""
	for _, bus := range []string{"11", "12", "13", "14"} {
		host += "  gpu " + bus + "\n    nvlink switch\n"
	}
	m := ruletest.Comm(t, "cpu 0\n"+host, 1).Model
	if m.In.NVLSChannels >= m.In.Channels {
		t.Fatalf("%d channels, %d of NVLS", m.In.Channels, m.In.NVLSChannels)
	}
	for _, c := range []struct {
		algo          coll.Algorithm
		channels, own int // of the row, of the plugin
		want          int
	}{
		{coll.NVLS, 64, 1, m.In.NVLSChannels}, {coll.NVLS, 3, 1, 3}, {coll.NVLS, -1, 2, 2},
		{coll.Ring, 64, 1, m.In.Channels}, {coll.Ring, 3, 1, 3}, {coll.Ring, -1, 2, 2},
		{coll.Tree, 64, 1, m.In.Channels},
	} {
		m.Params.Plugin = &tuning.Plugin{Channels: c.own,
			Rows: []tuning.Row{{Func: coll.AllReduce, Max: 1 << 40,
				Algo: c.algo, Proto: coll.Simple, Channels: c.channels, Nodes: -1, Ranks: -1, Pipe: -1,
				Registered: -1}}}
		o := tuning.Op{Func: coll.AllReduce, Type: coll.Float32, Count: 64 << 20}
		choice, err := m.Choose(o)
		if err != nil || choice.Algo != c.algo || choice.MaxChannels != c.want || !choice.Steered {
			t.Errorf("%v on %d channels: %v on %d (%v), want %d", c.algo, c.channels, choice.Algo,
				choice.MaxChannels, err,
				c.want)
		}
		o.Func = coll.AllGather
		if choice, err = m.Choose(o); err != nil || choice.MaxChannels > c.own {
			t.Errorf("without a row: %d channels (%v), the plugin has %d", choice.MaxChannels, err, c.own)
		}
	}
}
