package diagnose

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Suspects are simulated at so many sizes of a table: of the others the ratio lies between. Of more
// than many ranks they are tried on as many nodes as have these, where nothing describes a network.
const (
	sampled = 10
	many    = 32
)

// Times that differ from the expected ones by no more than quiet, as the root of the mean square of ln, are
// not explained: two machines of a kind differ so.
const quiet = 0.07

// equals is what is made of that: two machines that nothing distinguishes.
var equals = doubt{runs, 0.05}

// hunt is a search for suspects on one table.
type hunt struct {
	*work
	b        *bench
	es       []expected
	every    []float64          // ln of measured to expected time, at all rows
	rows     []int              // sampled rows
	on       *bench             // what suspects are tried on: b, or fewer of its nodes
	place    place              // what it has
	base     []float64          // us at sampled rows, without a suspect
	measured []float64          // ln of measured to expected time, at them
	spread   []float64          // what a difference of logarithms is measured by
	anchors  []int              // places in rows
	before   doubt              // before anything was tried
	slower   bool               // the machine is slower as a whole: what may be is named, whatever it is
	known    map[string]float64 // ratios by change, factor and row; NaN where the change cannot be
}

// suspects tries what may explain the first table whose times are off.
func (q *work) suspects(ctx context.Context) error {
	var worst *hunt
	most := 0.0
	for i, b := range q.benches {
		if b.table.partial() {
			continue
		}
		h := newHunt(q, b, q.expects[i])
		if r := h.rms(h.every); h.off() && (worst == nil || r > most) {
			worst, most = h, r
		}
	}
	if worst == nil {
		return nil
	}
	if err := worst.bench(ctx); err != nil {
		return err
	}
	if err := worst.byNICs(ctx); err != nil {
		return err
	}
	return worst.run(ctx)
}

// byNICs has suspects tried on nodes that no NVLink domain joins where the times are those of such nodes, by
// far: that is the first suspect, and the others are what their NICs lack beside it.
func (h *hunt) byNICs(ctx context.Context) error {
	r := h.b.table.run
	if r.Nodes < 2 || h.on.run.Site.Comm.NNodes >= r.Nodes || h.b.spec.Machine.NVLinkDomain == 1 {
		return nil
	}
	on := &bench{table: h.on.table, spec: h.on.spec.Clone(), opt: h.on.opt}
	on.spec.Machine.NVLinkDomain, on.spec.Machine.GPUs = 1, r.Ranks/r.Nodes
	if on.prepare() != nil || on.run.Site.Comm.NRanks != h.on.run.Site.Comm.NRanks {
		return nil // nodes without NICs
	}
	outs, err := on.simulate(ctx, on.run, h.rows)
	if err != nil {
		return err
	}
	t := tried{candidate: candidate{kind: "wrong-transport",
		what: "NVLink between nodes is not used: their " +
			"NICs carry what it should",
		prove: "NCCL_DEBUG=INFO: \"via NET\" between nodes of a domain, \"MNNVL\"; " +
			"nvidia-smi -q | grep -A4 Fabric; nvidia-imex-ctl -N",
		remedy: "start nvidia-imex on all nodes, give " +
			"containers /dev/nvidia-caps-imex-channels; unset NCCL_MNNVL_ENABLE; nodes of one domain"}}
	for k := range outs {
		t.ratio = append(t.ratio, outs[k].Result.Elapsed.Micros()/h.base[k])
	}
	last := len(h.rows) - 1
	if left := h.measured[last] - math.Log(t.ratio[last]); h.measured[last] < math.Ln2 ||
		math.Abs(left) > h.measured[last]/2 {
		return nil
	}
	h.rep.Suspects = append(h.rep.Suspects, h.suspect(&t))
	h.on, h.place, h.slower = on, placeOf(on), false
	for k := range h.rows {
		h.base[k] *= t.ratio[k]
		h.measured[k] -= math.Log(t.ratio[k])
		h.slower = h.slower || h.measured[k] > 2*h.spread[k]
	}
	h.anchor()
	return nil
}

// bench makes what suspects are tried on: the machine, or, of many ranks and where nothing
// describes a network between them, fewer of its nodes. Ratios of times are much the same there.
func (h *hunt) bench(ctx context.Context) error {
	site, t := h.b.run.Site, *h.b.table
	h.on = &bench{table: &t, spec: h.b.spec.Clone(), opt: h.b.opt}
	per := site.Comm.NRanks / max(site.Comm.NNodes, 1)
	n := max(2, many/per)
	if nodes := h.on.spec.Machine.Nodes; site.Comm.NRanks > many && n < site.Comm.NNodes &&
		site.Network == nil &&
		len(nodes) == 1 {
		nodes[0].Count = nodes[0].Count * n / site.Comm.NNodes // hosts, of which a domain has several
	}
	if err := h.on.prepare(); err != nil || h.on.run.Site.Comm.NRanks != h.on.run.Site.Comm.NNodes*per {
		h.on.spec.Machine.Nodes = h.b.spec.Machine.Nodes // a part of the machine is none by itself
		if err = h.on.prepare(); err != nil {
			return err
		}
	}
	on := h.on.run.Site.Comm
	h.place = placeOf(h.on)
	t.rows = slices.Clone(t.rows)
	for i := range t.rows {
		if r := &t.rows[i]; on.NRanks != site.Comm.NRanks {
			r.op.Count = coll.ExactSizes(t.fn, units.Bytes(r.bytes), r.op.Type, on.NRanks).Count
		}
	}
	if on.NNodes != site.Comm.NNodes {
		h.note("suspects were tried on %d of the %d nodes", on.NNodes, site.Comm.NNodes)
	}
	outs, err := h.on.simulate(ctx, h.on.run, h.rows)
	for k := range outs {
		h.base = append(h.base, outs[k].Result.Elapsed.Micros())
	}
	return err
}

func newHunt(q *work, b *bench, es []expected) *hunt {
	h := &hunt{work: q, b: b, es: es, known: map[string]float64{},
		slower: q.rep.Verdict == Slower || b.endsSlower(es)}
	for i, row := range b.table.rows {
		h.every = append(h.every, math.Log(row.us/es[i].us))
	}
	h.rows = h.sample()
	for _, i := range h.rows {
		h.measured = append(h.measured, h.every[i])
		below, _ := b.widths(b.table.rows[i].bytes)
		h.spread = append(h.spread, below/2)
	}
	h.before = doubt{0.08, median(h.spread)}
	h.anchor()
	return h
}

// plateau is the size from which on bandwidths hardly rise.
const plateau = 256 << 20

// endsSlower reports whether the last two sizes of a table's plateau are slower than expected, which is a
// lack of bandwidth whatever most sizes are.
func (b *bench) endsSlower(es []expected) bool {
	rows := b.table.rows
	last := len(rows) - 1
	slower := func(i int) bool { return judge(rows[i].us, es[i].least, es[i].most) == Slower }
	return last > 0 && rows[last-1].bytes >= plateau && slower(last-1) && slower(last)
}

// anchor chooses the rows at which suspects are tried first.
func (h *hunt) anchor() {
	h.anchors = nil
	z := func(k int) float64 { return math.Abs(h.measured[k]) / h.spread[k] }
	most := slices.MaxFunc(all(len(h.rows)), func(i, k int) int { return cmp.Compare(z(i), z(k)) })
	// Of sizes that are about as far off the smallest is simulated soonest.
	far := slices.IndexFunc(all(len(h.rows)), func(k int) bool { return z(k) >= 0.8*z(most) })
	// The least size says whether all of the curve is off, at little cost.
	for _, at := range []int{far, 0, len(h.rows) - 1} {
		if !slices.Contains(h.anchors, at) {
			h.anchors = append(h.anchors, at)
		}
	}
}

// sample spreads rows over the table, the smallest, the farthest off and the last that counts among
// them: beyond plateau sizes that are off as much as it say nothing new.
func (h *hunt) sample() (out []int) {
	rows := h.b.table.rows
	n := len(rows)
	for n > 2 && rows[n-2].bytes >= plateau && math.Abs(h.every[n-1]-h.every[n-2]) < 0.05 {
		n--
	}
	if n <= sampled {
		return all(n)
	}
	for i := range sampled {
		out = append(out, (i*(n-1)+(sampled-1)/2)/(sampled-1))
	}
	farthest := slices.MaxFunc(all(n), func(i, k int) int {
		return cmp.Compare(math.Abs(h.every[i]), math.Abs(h.every[k]))
	})
	if !slices.Contains(out, farthest) {
		out = append(out, farthest)
		slices.Sort(out)
	}
	return out
}

func (h *hunt) rms(d []float64) float64 {
	sum := 0.0
	for _, v := range d {
		sum += v * v
	}
	return math.Sqrt(sum / float64(max(len(d), 1)))
}

// off reports whether a size is outside of what is expected, or all are off by more than two machines of a
// kind differ: a fault whose curve fits is found within what a class may be off by, too.
func (h *hunt) off() bool {
	for i, row := range h.b.table.rows {
		if row.us > h.es[i].most || row.us < h.es[i].least {
			return true
		}
	}
	return h.rms(h.every) > quiet
}
