package release

import "github.com/simccl/simccl/rules"

// neighbour is a public release without rules of its own: those of Of are nearer to
// its source than the older neighbour's. Differs is what the two decide differently
// by src/graph, enqueue.cc, init.cc and scheduler of the tags; "" for nothing.
type neighbour struct {
	Release, Of rules.Release
	Differs     string
}

// between are the public tags from 2.21 to 2.30 whose nearest rules are a newer
// release's. Others have rules of their own (docs/VERSIONS.md).
var between = []neighbour{
	// init.cc:461 of v2.26.5: the work FIFO alone
	{rules.Release{Major: 2, Minor: 26, Patch: 3}, rules.Release{Major: 2, Minor: 26, Patch: 6}, ""},
	// equal in these files
	{rules.Release{Major: 2, Minor: 26, Patch: 5}, rules.Release{Major: 2, Minor: 26, Patch: 6}, ""},
	// enqueue.cc:43: kernels that do not load
	{rules.Release{Major: 2, Minor: 27, Patch: 6}, rules.Release{Major: 2, Minor: 27, Patch: 7}, ""},
	{rules.Release{Major: 2, Minor: 28, Patch: 7}, rules.Release{Major: 2, Minor: 28, Patch: 9},
		// graph/tuning.cc:165, 197
		"the cost model of NVLSTree differs (14 for 20.9 us of network latency, and 43.1 for 43.8 GB/s a " +
			"channel of sm_100 on four nodes)"},
	{rules.Release{Major: 2, Minor: 29, Patch: 2}, rules.Release{Major: 2, Minor: 29, Patch: 7}, of2297},
	{rules.Release{Major: 2, Minor: 29, Patch: 3}, rules.Release{Major: 2, Minor: 29, Patch: 7}, of2297},
	{rules.Release{Major: 2, Minor: 30, Patch: 3}, rules.Release{Major: 2, Minor: 30, Patch: 7}, of2307},
	{rules.Release{Major: 2, Minor: 30, Patch: 4}, rules.Release{Major: 2, Minor: 30, Patch: 7}, of2307},
}

const (
	// graph/search.cc:987, graph/tuning.cc:179, sym_kernels.cc of v2.29.3.
	of2297 = "on sm_100 the search has no 80 GB/s between nodes, Ring LL128 34.5 for 40 GB/s a channel; " +
		"kernels of symmetric memory differ"
	// sym_kernels.cc, transport/nvls.cc of v2.30.4.
	of2307 = "graphs, channels and cost model are nearer to 2.30.7 than to 2.29.7, and were not compared " +
		"line by line"
)
