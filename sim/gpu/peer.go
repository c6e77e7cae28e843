package gpu

import "math"

// PeerCost is what kernels of serving cost, which move data between the memories of ranks
// without NCCL.
type PeerCost struct {
	// Gap is a kernel's fixed cost in a CUDA graph, Host what a framework's call costs its
	// thread without one.
	Gap, Host float64
	// Flag is a meeting of all ranks by flags in each other's memory.
	Flag float64
	// Load is the round trip of loads of 16 bytes a thread from one peer, More what each
	// further peer adds whose loads are in flight with them; Serial takes Load's place where
	// a store waits for each load, so that a thread loads from one peer after the other.
	Load, More, Serial float64
	// Multimem takes their place where the switch reduces what 1,024 threads load and copies what they store,
	// MultimemShare is what of a link's payload that reaches.
	Multimem, MultimemShare float64
	// Crowd is the share of a link that is lost where loads of ever more pairs meet, as
	// SymCost.CrowdLoad; Share is what of a link's payload loads reach.
	Crowd, Share float64
	// Dispatch and Combine of tokens by the normal kernels, and by those of low latency.
	Dispatch, Combine, LowDispatch, LowCombine TokenCost
	// Cross is what low-latency kernels and combine take longer where GPUs write between nodes, Relay
	// by how many times longer SMs take that pass on what comes from there.
	Cross, Relay float64
	// HybridToken and HybridRank are an SM's time for a token in HybridEP's kernels: in any
	// case, and for each rank of the nodes that get it.
	HybridToken, HybridRank float64
	// ElasticRead and ElasticWrite are what an SM reads and writes in DeepEP 2's kernels, in GB/s.
	ElasticRead, ElasticWrite float64
	// OneSided is what TensorRT-LLM's one-sided alltoall costs within an NVLink domain.
	OneSided OneSidedCost
	// Post is what a host takes to post a write of a block, Request a transfer's fixed cost.
	Post, Request float64
}

// OneSidedCost is what a dispatch costs that stores into the ranks' memory, and a combine that loads from it.
type OneSidedCost struct {
	// Dispatch and Combine are the fixed costs of both, Meet what the meeting of all ranks adds for each
	// doubling of their number, to a combine twice; Token is an SM's time for a token of a dispatch.
	Dispatch, Combine, Meet, Token float64
	// Share is what of a link's payload they reach, Crowd the part of that which is lost where many pairs of
	// GPUs share links to a switch.
	Share, Crowd float64
}

// TokenCost is what a kernel costs that dispatches tokens or combines them.
type TokenCost struct {
	// Gap is its fixed cost, Group what each group of warps of a block adds (low latency).
	Gap, Group float64
	// Token is an SM's time for a token, Copy for each of its copies, Wide for each 1,024
	// values of it; Rate is at what rate an SM moves copies, in GB/s, 0 where it is not
	// bound by that.
	Token, Copy, Wide, Rate float64
	// Share is what of a link's payload it reaches.
	Share float64
}

// SMTime is how long the SMs take for so many tokens a rank, in microseconds: copies of so
// many bytes each of a token of so many values, dealt out to blocks.
func (t *TokenCost) SMTime(tokens int64, copies float64, bytes, values int64, blocks int) float64 {
	each := t.Token + float64(t.Copy*copies) + float64(t.Wide*float64(values)/1024)
	if t.Rate > 0 {
		each += copies * float64(bytes) / (t.Rate * 1e3)
	}
	turns := float64(tokens) / float64(blocks)
	if t.Rate == 0 { // a block ends with a whole token
		turns = math.Max(1, turns)
	}
	return each * turns
}

// peerQuantities are those of kernels of serving.
func peerQuantities(add adder) {
	us := func(name, meaning string, at func(*Class) *float64) { add(name, "us", 0, 1e4, meaning, at) }
	us("peer_gap", "all_reduce over peers' memory: kernel's fixed cost in a CUDA graph",
		func(c *Class) *float64 { return &c.Peer.Gap })
	us("peer_host", "the same without a graph: a framework's call",
		func(c *Class) *float64 { return &c.Peer.Host })
	us("peer_flag", "meeting of all ranks by flags", func(c *Class) *float64 { return &c.Peer.Flag })
	us("peer_load", "round trip of loads of 16 bytes a thread from a peer",
		func(c *Class) *float64 { return &c.Peer.Load })
	us("peer_more", "on top for each further peer", func(c *Class) *float64 { return &c.Peer.More })
	us("peer_serial", "in place of peer_load where a store waits for each load",
		func(c *Class) *float64 { return &c.Peer.Serial })
	us("peer_multimem", "in place of peer_load where the switch reduces loads and copies stores",
		func(c *Class) *float64 { return &c.Peer.Multimem })
	add("peer_multimem_share", "1", tiny, 2, "share of a link's payload that such loads and stores reach",
		func(c *Class) *float64 { return &c.Peer.MultimemShare })
	add("peer_crowd", "1", 0, 0.9, "crowd, of such loads", func(c *Class) *float64 { return &c.Peer.Crowd })
	add("peer_share", "1", tiny, 2, "share of a link's payload that such loads reach",
		func(c *Class) *float64 { return &c.Peer.Share })
	for _, k := range []struct {
		name, what string
		at         func(*Class) *TokenCost
	}{
		{"ep_dispatch", "dispatch of tokens", func(c *Class) *TokenCost { return &c.Peer.Dispatch }},
		{"ep_combine", "combine of tokens", func(c *Class) *TokenCost { return &c.Peer.Combine }},
		{"ep_ll_dispatch", "low-latency dispatch", func(c *Class) *TokenCost { return &c.Peer.LowDispatch }},
		{"ep_ll_combine", "low-latency combine", func(c *Class) *TokenCost { return &c.Peer.LowCombine }},
	} {
		tokenQuantities(add, k.name, k.what, k.at)
	}
	us("ep_cross", "low latency and combine: on top where GPUs write between nodes", func(c *Class) *float64 {
		return &c.Peer.Cross
	})
	add("ep_relay", "1", 1, 100, "by how many times SMs take longer that pass on what comes from there",
		func(c *Class) *float64 { return &c.Peer.Relay })
	us("ep_hybrid_token", "HybridEP: an SM's time for a token",
		func(c *Class) *float64 { return &c.Peer.HybridToken })
	us("ep_hybrid_rank", "HybridEP: the same, for each rank of the nodes that get it",
		func(c *Class) *float64 { return &c.Peer.HybridRank })
	add("ep_elastic_read", "GB/s", tiny, 1e5, "DeepEP 2: what an SM reads",
		func(c *Class) *float64 { return &c.Peer.ElasticRead })
	add("ep_elastic_write", "GB/s", tiny, 1e5, "DeepEP 2: what an SM writes",
		func(c *Class) *float64 { return &c.Peer.ElasticWrite })
	us("ep_onesided_dispatch", "TensorRT-LLM's one-sided alltoall: dispatch's fixed cost",
		func(c *Class) *float64 { return &c.Peer.OneSided.Dispatch })
	us("ep_onesided_combine", "TensorRT-LLM's one-sided alltoall: combine's fixed cost",
		func(c *Class) *float64 { return &c.Peer.OneSided.Combine })
	us("ep_onesided_meet", "the same: on top for each doubling of ranks, to a combine twice",
		func(c *Class) *float64 { return &c.Peer.OneSided.Meet })
	us("ep_onesided_token", "the same: an SM's time for a token of a dispatch",
		func(c *Class) *float64 { return &c.Peer.OneSided.Token })
	add("ep_onesided_share", "1", tiny, 2, "the same: share of a link's payload that it reaches",
		func(c *Class) *float64 { return &c.Peer.OneSided.Share })
	add("ep_onesided_crowd", "1", 0, 0.9, "the same: crowd",
		func(c *Class) *float64 { return &c.Peer.OneSided.Crowd })
	us("kv_post", "transfer of a KV cache: host's time to post a write of a block",
		func(c *Class) *float64 { return &c.Peer.Post })
	us("kv_request", "transfer of a KV cache: fixed cost of a request",
		func(c *Class) *float64 { return &c.Peer.Request })
}

func tokenQuantities(add adder, name, what string, at func(*Class) *TokenCost) {
	us := func(suffix, meaning string, of func(*TokenCost) *float64) {
		add(name+suffix, "us", 0, 1e4, what+": "+meaning, func(c *Class) *float64 { return of(at(c)) })
	}
	us("_gap", "fixed cost", func(t *TokenCost) *float64 { return &t.Gap })
	us("_group", "on top for each group of warps of a block", func(t *TokenCost) *float64 { return &t.Group })
	us("_token", "an SM's time for a token", func(t *TokenCost) *float64 { return &t.Token })
	us("_copy", "for each copy of it", func(t *TokenCost) *float64 { return &t.Copy })
	us("_wide", "for each 1,024 values of it", func(t *TokenCost) *float64 { return &t.Wide })
	add(name+"_rate", "GB/s", 0, 1e5, what+": what an SM moves of copies; 0: they do not bound it",
		func(c *Class) *float64 { return &at(c).Rate })
	add(name+"_share", "1", tiny, 2, what+": share of a link's payload that it reaches",
		func(c *Class) *float64 { return &at(c).Share })
}
