package packet

import "slices"

// routes finds shortest paths. Hosts forward nothing.
type routes struct {
	net    *Network
	links  []link
	ports  [][]int32 // links out of a node
	sorted [][]int32 // the same by neighbour, one a neighbour: the last cable
	hostOf []int32
	to     map[int32]*tree
}

// tree is the distances of nodes from a host and the order in which a
// breadth-first search met them.
type tree struct {
	dist []int16 // -1: not reached
	rank []int32
	most int
}

func newRoutes(n *Network, links []link, ports [][]int32, hostOf []int32) routes {
	r := routes{net: n, links: links, ports: ports, hostOf: hostOf, sorted: make([][]int32, n.Nodes), to: map[int32]*tree{}}
	for v, out := range ports {
		s := slices.Clone(out)
		slices.SortStableFunc(s, func(a, b int32) int { return int(links[a].to) - int(links[b].to) })
		k := 0
		for i, id := range s {
			if i+1 < len(s) && links[s[i+1]].to == links[id].to {
				continue
			}
			s[k] = id
			k++
		}
		r.sorted[v] = s[:k]
	}
	return r
}

// towards makes sure that there is a tree of dst and that src is in it.
func (r *routes) towards(dst, src int32, flow int) error {
	t := r.to[dst]
	if t == nil {
		t = r.search(dst)
		r.to[dst] = t
	}
	if t.dist[src] < 0 {
		return wrong("flow %d: no path from node %d to node %d", flow, src, dst)
	}
	t.most = max(t.most, int(t.dist[src]))
	return nil
}

func (r *routes) search(dst int32) *tree {
	t := &tree{dist: make([]int16, r.net.Nodes), rank: make([]int32, r.net.Nodes)}
	for i := range t.dist {
		t.dist[i] = -1
	}
	t.dist[dst] = 0
	queue := []int32{dst}
	for i := 0; i < len(queue); i++ {
		for _, id := range r.sorted[queue[i]] {
			next := r.links[id].to
			if t.dist[next] >= 0 {
				continue
			}
			t.dist[next] = t.dist[queue[i]] + 1
			if r.net.Switch[next] {
				t.rank[next] = int32(len(queue))
				queue = append(queue, next)
			}
		}
	}
	return t
}

// longest is the most links that a route has.
func (r *routes) longest() int {
	m := 1
	for _, t := range r.to { //lint:sorted a maximum of all
		m = max(m, t.most)
	}
	return m
}

// address is the IPv4 address of a host in the HPCC simulator.
func address(node int32) uint32 {
	return 0x0b000001 + uint32(node/256)<<16 + uint32(node%256)<<8
}

// fill writes the links from src to dst of a flow with these ports, chosen at
// each switch by the hash of addresses and ports with the switch as seed.
func (r *routes) fill(path []int32, src, dst int32, sport, dport uint16) int {
	t := r.to[dst]
	key := [3]uint32{address(src), address(dst), uint32(sport) | uint32(dport)<<16}
	n := 0
	for at := src; at != dst; n++ {
		pick, choices := 0, r.choices(t, at)
		if choices > 1 && r.net.Switch[at] {
			pick = int(murmur(key, uint32(at)) % uint32(choices))
		}
		path[n] = r.nth(t, at, pick)
		at = r.links[path[n]].to
	}
	return n
}

// nearer says whether a link leads one hop closer to the root of a tree.
func (r *routes) nearer(t *tree, id int32) bool {
	to := r.links[id].to
	return t.dist[to] == t.dist[r.links[id].from]-1 && (r.net.Switch[to] || t.dist[to] == 0)
}

// choices counts the next hops of a node.
func (r *routes) choices(t *tree, at int32) int {
	n := 0
	for _, id := range r.sorted[at] {
		if r.nearer(t, id) {
			n++
		}
	}
	return n
}

// nth returns the link to the next hop of a place in the order of the search.
func (r *routes) nth(t *tree, at int32, pick int) int32 {
	best, after := int32(-1), int32(-1)
	for range pick + 1 {
		best = -1
		for _, id := range r.sorted[at] {
			rank := t.rank[r.links[id].to]
			if r.nearer(t, id) && rank > after && (best < 0 || rank < t.rank[r.links[best].to]) {
				best = id
			}
		}
		after = t.rank[r.links[best].to]
	}
	return best
}

// murmur is MurmurHash3's 32-bit variant over three words.
func murmur(key [3]uint32, seed uint32) uint32 {
	h := seed
	for _, k := range key {
		k *= 0xcc9e2d51
		k = k<<15 | k>>17
		k *= 0x1b873593
		h ^= k
		h = h<<13 | h>>19
		h = h*5 + 0xe6546b64
	}
	h ^= 12
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
