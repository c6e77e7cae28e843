package tuning

import "github.com/simccl/simccl/coll"

// Plugin is what NCCL's example tuner plugin does with its file: the first row that
// matches an operation, and whose algorithm and protocol are on, makes that choice
// free (ext-tuner/example/plugin.c of v2.28.9, getCollInfo).
type Plugin struct {
	Rows []Row
	// Channels is the bound of an operation that no row gives one. The plugin writes 1
	// before it looks at its rows (plugin.c:359), and NCCL takes what it writes
	// (enqueue.cc:1973): such an operation runs on one channel.
	Channels int
}

// Row is a row of the plugin's file. -1 in Nodes, Ranks, Pipe and Registered matches
// any; in Channels it leaves them to Plugin.Channels.
type Row struct {
	Func       coll.Func
	Min, Max   uint64 // bytes, both included, as Op.NBytes counts them
	Algo       coll.Algorithm
	Proto      coll.Protocol
	Channels   int
	Nodes      int
	Ranks      int
	Pipe       int // operations per channel that a group holds
	Registered int // 0 no, 1 yes
}

// Matches reports whether the row is meant for an operation of so many bytes on so
// many nodes and ranks.
func (r *Row) Matches(o Op, bytes uint64, nodes, ranks int) bool {
	meant := func(want, is int) bool { return want == -1 || want == is }
	registered := 0
	if o.Registered {
		registered = 1
	}
	return r.Func == o.Func && r.Min <= bytes && bytes <= r.Max && meant(r.Nodes, nodes) &&
		meant(r.Ranks, ranks) &&
		meant(r.Pipe, max(o.Pipe, 1)) && meant(r.Registered, registered)
}

// Row is the index of the row that decides for an operation, -1 for none: the model's
// own choice holds then, on Channels channels.
func (p *Plugin) Row(m *Model, o Op) int {
	n := uint64(o.NBytes(m.In.NRanks))
	times := m.times(o, n)
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Matches(o, n, m.In.NNodes, m.In.NRanks) && times[r.Algo][r.Proto] != Off {
			return i
		}
	}
	return -1
}

// steer makes the choice of the row that decides free and returns the bound of
// channels, 0 for the model's.
func (m *Model) steer(c *Choice) int {
	p := m.Params.Plugin
	if p == nil {
		return 0
	}
	channels, i := p.Channels, p.Row(m, c.Op)
	if i >= 0 {
		r := &p.Rows[i]
		if c.Times[r.Algo][r.Proto] = 0; r.Channels != -1 {
			channels = r.Channels
		}
	}
	return channels
}

// most is how many channels an algorithm has.
func (m *Model) most(a coll.Algorithm) int {
	if a == coll.NVLS || a == coll.NVLSTree {
		return m.In.NVLSChannels
	}
	return m.In.Channels
}
