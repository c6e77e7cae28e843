// Package route finds the shortest paths of a packet network, with next hops in the order of the HPCC
// simulator, and chooses among them by hash (ECMP).
//
// In: nodes, which of them are switches, and links. Out: the links of a route, and tables of next hops. It
// must not know frames or time.
package route

import (
	"slices"
	"sync"
)

// Link is a directed link; 2i and 2i+1 are the directions of cable i.
type Link struct{ From, To int32 }

// Routes finds shortest paths by breadth-first search from each destination. Hosts forward nothing.
type Routes struct {
	mu       sync.Mutex // guards next of trees, in Fill
	isSwitch []bool
	links    []Link
	sorted   [][]int32 // by node: outgoing links, ordered by neighbour (compare)
	to       map[int32]*tree
}

// tree is the result of a search from one host: the distance of each node and the order in which nodes were
// found.
type tree struct {
	dist []int16 // -1: unreachable
	rank []int32
	most int       // longest route asked for
	next [][]int32 // by node: next hops in order, found when first needed
}

// New makes the routes of a network, using one cable (the last) to each neighbour.
func New(isSwitch []bool, links []Link) *Routes { return build(isSwitch, links, false) }

// All is New using every parallel cable.
func All(isSwitch []bool, links []Link) *Routes { return build(isSwitch, links, true) }

func build(isSwitch []bool, links []Link, all bool) *Routes {
	r := &Routes{isSwitch: isSwitch, links: links, sorted: make([][]int32, len(isSwitch)),
		to: map[int32]*tree{}}
	for i, l := range links {
		r.sorted[l.From] = append(r.sorted[l.From], int32(i))
	}
	for v, s := range r.sorted {
		slices.SortStableFunc(s, func(a, b int32) int { return r.compare(links[a].To, links[b].To) })
		k := 0
		for i, id := range s {
			if !all && i+1 < len(s) && links[s[i+1]].To == links[id].To {
				continue
			}
			s[k] = id
			k++
		}
		r.sorted[v] = s[:k]
	}
	return r
}

// compare orders neighbours as ns-3 does, whose tables are sorted by address in memory: hosts before switches
// by number, switches from last to first (large allocations are mapped downwards). The order shows in
// networks of three tiers.
func (r *Routes) compare(a, b int32) int {
	switch {
	case r.isSwitch[a] != r.isSwitch[b] && r.isSwitch[b]:
		return -1
	case r.isSwitch[a] != r.isSwitch[b]:
		return 1
	case r.isSwitch[a]:
		return int(b) - int(a)
	}
	return int(a) - int(b)
}

// Remove removes a cable and discards all routes.
func (r *Routes) Remove(cable int) {
	for v := range r.sorted {
		r.sorted[v] = slices.DeleteFunc(r.sorted[v], func(id int32) bool { return int(id)/2 == cable })
	}
	clear(r.to)
}

// Both is Towards in both directions.
func (r *Routes) Both(a, b int32) bool { return r.Towards(b, a) && r.Towards(a, b) }

// Towards finds the routes to dst unless they are known, and reports whether one starts at src.
func (r *Routes) Towards(dst, src int32) bool {
	t := r.to[dst]
	if t == nil {
		t = r.search(dst)
		r.to[dst] = t
	}
	if t.dist[src] >= 0 {
		t.most = max(t.most, int(t.dist[src]))
	}
	return t.dist[src] >= 0
}

func (r *Routes) search(dst int32) *tree {
	n := len(r.isSwitch)
	t := &tree{dist: make([]int16, n), rank: make([]int32, n), next: make([][]int32, n)}
	for i := range t.dist {
		t.dist[i] = -1
	}
	t.dist[dst] = 0
	queue := []int32{dst}
	for i := 0; i < len(queue); i++ {
		for _, id := range r.sorted[queue[i]] {
			next := r.links[id].To
			if t.dist[next] >= 0 {
				continue
			}
			t.dist[next] = t.dist[queue[i]] + 1
			if r.isSwitch[next] {
				t.rank[next] = int32(len(queue))
				queue = append(queue, next)
			}
		}
	}
	return t
}

// Longest returns the most links of any route asked for.
func (r *Routes) Longest() int {
	m := 1
	for _, t := range r.to { //lint:sorted a maximum of all
		m = max(m, t.most)
	}
	return m
}

// Key is the header fields that switches hash.
type Key struct {
	Src, Dst     int32
	SPort, DPort uint16
}

// Back returns the key of the opposite direction.
func (k Key) Back() Key { return Key{Src: k.Dst, Dst: k.Src, SPort: k.DPort, DPort: k.SPort} }

// Address returns a host's IPv4 address in the HPCC simulator.
func Address(node int32) uint32 {
	return 0x0b000001 + uint32(node/256)<<16 + uint32(node%256)<<8
}

// Hash is MurmurHash3 (32 bits) over addresses and ports, seeded by the switch.
func (k Key) Hash(node int32) uint32 {
	return murmur([3]uint32{Address(k.Src), Address(k.Dst), uint32(k.SPort) | uint32(k.DPort)<<16},
		uint32(node))
}

// Fill writes a route into path, either along the given cables or by hashing k at each switch, and returns
// its number of links. It may be called concurrently.
func (r *Routes) Fill(path []int32, k Key, along []int32) int {
	for i, at := 0, k.Src; i < len(along); i++ {
		if path[i] = 2 * along[i]; r.links[path[i]].From != at {
			path[i]++
		}
		at = r.links[path[i]].To
	}
	if len(along) > 0 {
		return len(along)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.to[k.Dst]
	n := 0
	for at := k.Src; at != k.Dst; n++ {
		next := t.next[at]
		if next == nil {
			next = r.after(t, at, nil)
			t.next[at] = next
		}
		pick := 0
		if len(next) > 1 && r.isSwitch[at] {
			pick = int(k.Hash(at) % uint32(len(next)))
		}
		path[n] = next[pick]
		at = r.links[path[n]].To
	}
	return n
}

// after appends the links from a node to its next hops, in the order of the search.
func (r *Routes) after(t *tree, at int32, to []int32) []int32 {
	from := len(to)
	for _, id := range r.sorted[at] {
		if r.nearer(t, id) {
			to = append(to, id)
		}
	}
	slices.SortFunc(to[from:], func(a, b int32) int {
		return int(t.rank[r.links[a].To] - t.rank[r.links[b].To])
	})
	return to
}

// nearer reports whether a link leads one hop closer to the tree's root.
func (r *Routes) nearer(t *tree, id int32) bool {
	l := r.links[id]
	return t.dist[l.To] == t.dist[l.From]-1 && (r.isSwitch[l.To] || t.dist[l.To] == 0)
}

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

// choice is a range of Tables.links: the next hops of one switch to one host.
type choice struct{ at, n int32 }

// Tables are the next hops of every switch to every host, for adaptive routing. Equal sets of a switch are
// stored once.
type Tables struct {
	nodes  int
	rowOf  []int32
	choice []choice
	links  []int32
}

// Tables builds the tables for the destinations asked for so far.
func (r *Routes) Tables() *Tables {
	n := len(r.isSwitch)
	t := &Tables{nodes: n, rowOf: make([]int32, n)}
	for v := range n {
		if !r.isSwitch[v] {
			continue
		}
		t.rowOf[v] = int32(len(t.choice) / n)
		t.choice = append(t.choice, make([]choice, n)...)
		row, seen := t.choice[len(t.choice)-n:], []choice{} // distinct choices of this switch
		for dst := range n {
			tree := r.to[int32(dst)]
			if tree == nil || tree.dist[v] < 0 {
				continue
			}
			from := len(t.links)
			t.links = r.after(tree, int32(v), t.links)
			found := t.links[from:]
			c := choice{int32(from), int32(len(found))}
			for _, o := range seen {
				if slices.Equal(t.links[o.at:o.at+o.n], found) {
					c, t.links = o, t.links[:from]
					break
				}
			}
			if int(c.at) == from {
				seen = append(seen, c)
			}
			row[dst] = c
		}
	}
	return t
}

// Next returns the links from a switch towards a host, in the order of the search; empty: unreachable.
func (t *Tables) Next(at, dst int32) []int32 {
	c := t.choice[int(t.rowOf[at])*t.nodes+int(dst)]
	return t.links[c.at : c.at+c.n]
}
