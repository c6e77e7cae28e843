package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// again reads FROM COUNT: steps of the list that were before, once more.
func (r *reader) again(w []word) error {
	if len(w) != 3 || len(r.p.Lists) == 0 {
		return r.fail(w[0].col, "write again 4 12 within a list, for the twelve steps from its fifth on",
			"again has two numbers and is in a list")
	}
	l := &r.p.Lists[len(r.p.Lists)-1]
	from, err := strconv.Atoi(w[1].text)
	if err != nil || from < 0 || from >= len(l.Steps) {
		return r.fail(w[1].col, "count them from 0", "%s is none of the %d steps before it", w[1].text,
			len(l.Steps))
	}
	count, err := strconv.Atoi(w[2].text)
	if err != nil || count < 1 || count > MaxSteps {
		return r.fail(w[2].col, fmt.Sprintf("write a number from 1 to %d", MaxSteps), "%s steps", w[2].text)
	}
	if err := r.room(count * max(len(r.ranks), 1)); err != nil {
		return err
	}
	shift := int32(len(l.Steps) - from)
	l.Steps = slices.Grow(l.Steps, count)
	for i := from; i < from+count; i++ {
		s := l.Steps[i]
		s.Deps = r.shifted(s.Deps, shift)
		l.Steps = append(l.Steps, s)
	}
	return nil
}

// depsRoom is the number of dependencies that are allocated at a time.
const depsRoom = 1 << 14

// shifted returns the dependencies plus by, for steps that repeat earlier ones at a later position.
func (r *reader) shifted(deps []int32, by int32) []int32 {
	if len(deps) == 0 {
		return nil
	}
	if cap(r.deps)-len(r.deps) < len(deps) {
		r.deps = make([]int32, 0, max(depsRoom, len(deps)))
	}
	n := len(r.deps)
	for _, d := range deps {
		r.deps = append(r.deps, d+by)
	}
	return r.deps[n:len(r.deps):len(r.deps)]
}

// gpu parses NAME and the parameters of the roofline.
func (r *reader) gpu(w []word) error {
	const hint = "write gpu H100, and where times are by its roofline type=bfloat16 efficiency=0.6 " +
		"memory-efficiency=0.8 overhead=2000000"
	if len(w) < 2 || r.p.GPU.Name != "" {
		return r.fail(w[0].col, hint, "the GPU has a name, and there is one")
	}
	name, err := r.name(w[1])
	if err != nil {
		return err
	}
	if name == "" {
		return r.fail(w[1].col, hint, "the GPU has no name")
	}
	g := GPU{Name: name}
	for _, x := range w[2:] {
		key, value := option(x)
		ok := true
		switch key {
		case "type":
			if g.Type, err = coll.ParseDataType(value.text); err != nil {
				return r.fail(value.col, "", "%v", err)
			}
		case "efficiency":
			g.Efficiency, ok = fraction(value.text)
		case "memory-efficiency":
			g.MemoryEfficiency, ok = fraction(value.text)
		case "class":
			g.Class, err = r.name(value)
			if ok = g.Class != ""; err != nil {
				return err
			}
		case "overhead":
			g.Overhead, ok = picoseconds(value.text)
		default:
			return r.fail(x.col, hint, "%s is not known here", x.text)
		}
		if !ok {
			return r.fail(value.col, hint, "%s: %s", key, value.text)
		}
	}
	if (g.Efficiency > 0) != (g.MemoryEfficiency > 0) || g.Efficiency == 0 &&
		(g.Overhead > 0 || g.Type != 0) {
		return r.fail(w[0].col, hint, "a roofline has efficiencies of matrix products and of memory")
	}
	r.p.GPU = g
	return nil
}

// fraction parses a number greater than 0 and at most 1.
func fraction(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f > 0 && f <= 1
}

// memory parses the memory use of the fullest GPU.
func (r *reader) memory(w []word) error {
	m := &r.p.Memory
	if *m != (Memory{}) {
		return r.fail(w[0].col, "leave one out", "memory is given twice")
	}
	for _, x := range w[1:] {
		key, value := option(x)
		to := map[string]*units.Bytes{"parameters": &m.Parameters, "gradients": &m.Gradients,
			"optimizer": &m.Optimizer, "activations": &m.Activations}[key]
		n, err := strconv.ParseInt(value.text, 10, 64)
		if to == nil || err != nil || n < 0 || n > math.MaxInt64/8 {
			return r.fail(x.col, "write parameters=, gradients=, optimizer= and activations= with bytes",
				"%s is not known here", x.text)
		}
		*to = units.Bytes(n)
	}
	return nil
}

// formatGPU writes the lines of the GPU and of its memory, where they are known.
func (p *Program) formatGPU(b *strings.Builder) {
	if g := &p.GPU; g.Name != "" {
		fmt.Fprintf(b, "gpu %s", quote(g.Name))
		if g.Class != "" {
			fmt.Fprintf(b, " class=%s", quote(g.Class))
		}
		if g.Efficiency > 0 {
			fmt.Fprintf(b, " type=%s efficiency=%s memory-efficiency=%s", g.Type.TestName(),
				strconv.FormatFloat(g.Efficiency, 'g', -1, 64), strconv.FormatFloat(g.MemoryEfficiency, 'g',
					-1, 64))
			if g.Overhead > 0 {
				fmt.Fprintf(b, " overhead=%d", int64(g.Overhead))
			}
		}
		b.WriteByte('\n')
	}
	if m := &p.Memory; *m != (Memory{}) {
		fmt.Fprintf(b, "memory parameters=%d gradients=%d optimizer=%d activations=%d\n", m.Parameters,
			m.Gradients, m.Optimizer, m.Activations)
	}
}

// callee returns the communicator of a call: by name, or, for NAME* in a list of each rank, the one that the
// list's first rank is a member of.
func (r *reader) callee(w word) (at int32, each bool, err error) {
	bare, each := eachRank(w)
	prefix, err := r.name(bare)
	if err != nil {
		return 0, false, err
	}
	name := prefix
	if each {
		name += EachRank
	}
	if at, ok := r.comms[name]; ok {
		return at, false, nil
	}
	if !each || len(r.ranks) == 0 {
		return 0, false, r.fail(w.col, "write comm "+w.text+" … before it", "no communicator %s", name)
	}
	if r.names == nil {
		r.names = newFamilies(r.p)
	}
	if at = r.names.comm(prefix, r.ranks[0]); at < 0 {
		return 0, false,
			r.fail(w.col, fmt.Sprintf("write comm %s0 …, comm %s1 … before it, of which each rank is in one",
				prefix, prefix), "rank %d is in no communicator %s, or a rank is in two", r.ranks[0], name)
	}
	return at, true, nil
}

// addName records the name of a list and fails if it is already taken.
func (r *reader) addName(name string, col int) error {
	if r.lists[name] {
		return r.fail(col, "", "list %s for the second time", name)
	}
	r.lists[name] = true
	return nil
}

// eachRank cuts the sign of a list or a communicator of each rank from a word.
func eachRank(w word) (word, bool) {
	text, each := strings.CutSuffix(w.text, EachRank)
	return word{text, w.col}, each && text != ""
}

// listSteps is the number of steps whose memory a list itself takes, for the limit.
const listSteps = 4

// listOfEach notes that each of these ranks has a list like the one that begins.
func (r *reader) listOfEach(each bool, name string, ranks []int32, col int) error {
	if !each {
		return nil
	}
	r.ranks = ranks
	if err := r.room(listSteps * len(ranks)); err != nil {
		return err
	}
	for _, rank := range ranks {
		if err := r.addName(name+strconv.Itoa(int(rank)), col); err != nil {
			return err
		}
	}
	return nil
}
