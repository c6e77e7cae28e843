package streams

import "github.com/simccl/simccl/units"

// The blocks of a persistent kernel, or clusters of them, process tiles one after the other until none is
// left, then end. The first tiles of each cluster are fixed; after these it takes the next tile that no
// cluster has. So a kernel with blocks that wait for SMs takes longer only if these blocks begin so late that
// their own tiles are processed last. In the last round of tiles some SMs are idle, and a collective's kernel
// can begin there.

// tiled is a persistent kernel whose tiles are known.
type tiled struct {
	own     int32      // fixed tiles of each cluster
	left    int64      // tiles that no cluster has begun, and that are fixed to none
	waiting int32      // clusters that have no SMs yet
	running int32      // groups of clusters that process tiles in step
	cluster int32      // SMs of one cluster
	tile    units.Time // time of one tile
}

// ownTiles is the number of tiles that are fixed to a cluster from the start. Measured: on H200 a product of
// 4096 x 4096 matrices (4 rounds of tiles of 42 us) takes 213 us instead of 169 if one cluster waits for an
// SM until the last round, 192 if it waits for 111 us; 8192 behaves likewise
// (testdata/measured/h200x2/kernels.txt).
const ownTiles = 2

// maxRounds bounds the number of tiles per block in the model.
const maxRounds = 256

// tiles returns the tiled kernel of a compute task; ok is false if its tiles are not known.
func (r *run) tiles(x *task) (k tiled, ok bool) {
	w := x.work
	if w == nil || !w.Persistent || w.Tiles <= 0 || max(1, w.PerSM) > 1 || x.waves > 1 {
		return k, false
	}
	k.cluster = max(1, w.Cluster)
	if x.fill < k.cluster {
		k.cluster = 1
	}
	k.waiting = int32(min(int64(x.fill/k.cluster), w.Tiles))
	tiles := min(w.Tiles, int64(k.waiting)*maxRounds) // more rounds do not change the result
	k.own = ownTiles
	if tiles < int64(k.own)*int64(k.waiting) {
		k.own = 1
	}
	k.left = tiles - int64(k.own)*int64(k.waiting)
	rounds := (tiles + int64(k.waiting) - 1) / int64(k.waiting)
	k.tile = units.Time(x.total / float64(rounds))
	return k, k.tile > 0
}

// beginTiles begins the clusters of a tiled kernel for which there are free SMs.
func (r *run) beginTiles(t int32) {
	x := &r.tasks[t]
	g := &r.gpus[x.rank]
	k := &r.tiled[x.op]
	n := min(k.waiting, g.free/k.cluster)
	if n == 0 {
		return
	}
	k.waiting -= n
	k.running++
	g.free -= n * k.cluster
	x.held += n * k.cluster
	group := r.newTask(tileTask)
	y := &r.tasks[group]
	y.rank, y.node, y.op, y.held, y.waves = r.tasks[t].rank, r.tasks[t].node, t, n*k.cluster, k.own
	r.timers.schedule(group, r.now+k.tile)
}

// endTile ends a tile of a group of clusters: each takes its next tile, or ends if none is left.
func (r *run) endTile(group int32) {
	y := &r.tasks[group]
	t := y.op
	x := &r.tasks[t]
	k := &r.tiled[x.op]
	if y.waves--; y.waves > 0 {
		r.timers.schedule(group, r.now+k.tile)
		return
	}
	n := int32(min(int64(y.held/k.cluster), k.left))
	k.left -= int64(n)
	over := y.held - n*k.cluster
	if n > 0 {
		y.waves = 1
		r.timers.schedule(group, r.now+k.tile)
	}
	if over == 0 {
		return
	}
	g := &r.gpus[x.rank]
	g.free += over
	x.held -= over
	y.held -= over
	rank := x.rank
	if n == 0 {
		r.endTask(group)
		k.running--
	}
	if k.running == 0 && k.waiting == 0 {
		r.freeTile = append(r.freeTile, x.op)
		r.endCompute(t)
		return
	}
	r.freed(rank)
}

// newTiled stores a tiled kernel and returns its index.
func (r *run) newTiled(k tiled) int32 {
	if n := len(r.freeTile); n > 0 {
		i := r.freeTile[n-1]
		r.freeTile = r.freeTile[:n-1]
		r.tiled[i] = k
		return i
	}
	r.tiled = append(r.tiled, k)
	return int32(len(r.tiled) - 1)
}
