package release

import "github.com/simccl/simccl/rules"

// equal are the public tags from 2.21 to 2.30 that decide what another does, whose rules
// answer: src/graph, enqueue.cc, init.cc, transport and scheduler of both were compared word by
// word (docs/VERSIONS.md). Others have rules of their own.
var equal = map[rules.Release]rules.Release{
	// proxy.cc, transport/net_ib.cc and profiling differ; init.cc:461 of v2.26.5: the work FIFO
	{Major: 2, Minor: 26, Patch: 3}: {Major: 2, Minor: 26, Patch: 6},
	// the same words
	{Major: 2, Minor: 26, Patch: 5}: {Major: 2, Minor: 26, Patch: 6},
	// enqueue.cc:43: kernels that do not load
	{Major: 2, Minor: 27, Patch: 6}: {Major: 2, Minor: 27, Patch: 7},
	// proxy.cc:538 alone
	{Major: 2, Minor: 29, Patch: 3}: {Major: 2, Minor: 29, Patch: 2},
	// the same words
	{Major: 2, Minor: 30, Patch: 4}: {Major: 2, Minor: 30, Patch: 3},
}
