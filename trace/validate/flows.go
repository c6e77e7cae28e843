package validate

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/simccl/simccl/trace/chrome"
)

// flow is the state of the arrows with one id.
type flow struct {
	starts, ends []mark
	again        bool // another arrow with the id is complete
}

// flowBytes is the size of an arrow without its key, doneBytes that of one known to be complete.
const (
	flowBytes = 240
	doneBytes = 48
)

// flowID is a hash that represents the key of a complete arrow.
type flowID [2]uint64

var flowSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// flowKey identifies an arrow.
type flowKey struct{ cat, name, id string }

func (k flowKey) compare(o flowKey) int {
	return cmp.Or(strings.Compare(k.cat, o.cat), strings.Compare(k.name, o.name), strings.Compare(k.id, o.id))
}

func (k flowKey) bytes() int64 { return int64(len(k.cat) + len(k.name) + len(k.id) + 2) }

// idOf hashes a key to 128 bits: complete arrows are remembered by these only.
func idOf(key flowKey) (id flowID) {
	const odd = 0x9e3779b97f4a7c15
	for i, seed := range flowSeeds {
		id[i] = (maphash.String(seed, key.id)*odd+maphash.String(seed, key.name))*odd + maphash.String(seed,
			key.cat)
	}
	return id
}

func (c *checker) arrow(e *chrome.Event) {
	if e.Phase == 't' { // an intermediate step
		return
	}
	k := flowKey{e.Cat, e.Name, e.ID}
	f := c.flows[k]
	if f == nil {
		f = &flow{}
		if len(c.done) > 0 {
			_, f.again = c.done[idOf(k)]
		}
		c.flows[k] = f
		c.keep(k.bytes()+flowBytes, e.Line)
	}
	m := mark{e.TS, e.Line, e.Phase == 's'}
	if m.at < c.arrowAt {
		c.unsorted = true
	}
	if f.again && m.at < c.settledAt && c.err == nil {
		c.err = outOfOrder(m.line)
	}
	c.arrowAt = max(c.arrowAt, m.at)
	if m.out {
		c.rep.Flows++
		f.starts = append(f.starts, m)
	} else {
		f.ends = append(f.ends, m)
	}
	if len(f.starts)+len(f.ends) > 2 {
		c.keep(spanBytes, e.Line)
	}
	c.mark(c.track(e), m)
}

// settleFlows frees complete arrows; only their ids remain.
func (c *checker) settleFlows() {
	c.settledAt = c.arrowAt
	for k, f := range c.flows { //lint:sorted each on its own
		if len(f.starts) != 1 || len(f.ends) != 1 || f.ends[0].at < f.starts[0].at {
			continue
		}
		if !f.again {
			c.done[idOf(k)] = struct{}{}
			c.keep(doneBytes, f.ends[0].line)
		}
		delete(c.flows, k)
		c.kept.Free(k.bytes() + flowBytes)
	}
}

// checkFlow reports ends of an arrow without a start of their own at or before them.
func (c *checker) checkFlow(k flowKey, f *flow) {
	id := bare(k.id)
	byTime := func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.line, b.line)) }
	slices.SortFunc(f.starts, byTime)
	slices.SortFunc(f.ends, byTime)
	if c.rep.Info.Part != nil && (len(f.starts) == 0 || len(f.ends) == 0) {
		return // the other end is in another rank's file
	}
	for i, end := range f.ends {
		switch {
		case len(f.starts) == 0 && !f.again:
			c.ours(end.line, "flow", "arrow %s ends, but never starts", id)
		case i >= len(f.starts):
			c.ours(end.line, "flow", "arrow %s ends twice", id)
		case end.at < f.starts[i].at:
			c.ours(end.line, "flow", "arrow %s ends at %s before it starts at %s in line %d", id, end.at,
				f.starts[i].at, f.starts[i].line)
		}
	}
	for _, start := range f.starts[min(len(f.starts), len(f.ends)):] {
		c.warn(start.line, "flow", "arrow %s starts, but never ends", id)
	}
}
