package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/gen"
)

// Validate reports every member that means nothing by itself, as joined
// *FieldErrors. What depends on files, such as the number of GPUs, is checked by
// Load.
func (s *Spec) Validate() error {
	var c checks
	c.machine(&s.Machine)
	if _, _, err := release.Select(s.NCCL.Version); err != nil {
		c.add("nccl.version", s.NCCL.Version, err.Error(), "")
	}
	c.env(s.NCCL.Env)
	c.workload(&s.Workload)
	c.kernel(s)
	c.engine(s)
	for i, text := range s.Network.Faults {
		if _, err := parseFault(text); err != nil {
			c.add(fmt.Sprintf("network.faults[%d]", i), text, err.Error(), "")
		}
	}
	c.outputs(&s.Outputs)
	for i := range s.Grid {
		if len(s.Grid[i].Values) == 0 {
			c.add(fmt.Sprintf("grid[%d].values", i), "", "an axis without values makes no point", "")
			return errors.Join(c.errs...)
		}
	}
	if len(s.Grid) > 0 && len(c.errs) == 0 {
		c.grid(s)
	}
	return errors.Join(c.errs...)
}

// checks collects complaints.
type checks struct{ errs []error }

func (c *checks) add(path, value, problem, hint string) {
	c.errs = append(c.errs, &FieldError{Path: path, Value: value, Problem: problem, Hint: hint})
}

// word complains unless value is empty or one of the words.
func (c *checks) word(path, value string, words ...string) {
	if value != "" && !slices.Contains(words, value) {
		c.add(path, value, "not known", "write "+oneOf(words))
	}
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// atLeast complains about a number below its least value.
func (c *checks) atLeast(path string, value, least int) {
	if value < least {
		c.add(path, fmt.Sprint(value), fmt.Sprintf("must be at least %d", least), "")
	}
}

// MaxNodes bounds the nodes of a machine, so that it stays within a gigabyte: half a million GPUs in
// nodes of 8.
const MaxNodes = 1 << 16

func (c *checks) machine(m *Machine) {
	left := MaxNodes
	for i, n := range m.Nodes {
		path := fmt.Sprintf("machine.nodes[%d].count", i)
		c.atLeast(path, n.Count, 0)
		if left -= min(max(n.Count, 1), MaxNodes+1); left < 0 {
			c.add(path, fmt.Sprint(n.Count), fmt.Sprintf("more than %d nodes in all", MaxNodes), "")
			break
		}
	}
	c.atLeast("machine.gpus", m.GPUs, 0)
	c.atLeast("machine.nvlinkDomain", m.NVLinkDomain, 0)
	c.word("machine.multicast", m.Multicast, "auto", "on", "off")
}

func (c *checks) env(env map[string]string) {
	for _, name := range sorted(env) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			c.add("nccl.env."+name, "", fmt.Sprintf("%q is no name of a variable", name), "")
		}
	}
}

func (c *checks) workload(w *Workload) {
	if w.Train != (gen.Request{}) {
		if !reflect.DeepEqual(*w, Workload{Train: w.Train}) {
			c.add("workload.train", w.Train.Model, "takes the place of operation, sizes and job",
				"leave one of them out")
		} else if member, err := w.Train.Check(); err != nil {
			c.add("workload.train."+member, "", err.Problem, err.Hint)
		}
		return
	}
	if w.Job != "" {
		if !reflect.DeepEqual(*w, Workload{Job: w.Job}) {
			c.add("workload.job", w.Job, "takes the place of operation and sizes", "leave one of them out")
		}
		return
	}
	if OfServing(w.Op) {
		c.serving(w)
		return
	}
	f, err := coll.ParseFunc(w.Op)
	if err != nil {
		c.add("workload.op", w.Op, err.Error(), "")
	}
	c.pairs(w)
	if len(w.Sizes) > 0 && w.Range != (Range{}) {
		c.add("workload.sizes", "", "sizes take the place of a range", "leave one of them out")
	}
	if _, err := w.AllSizes(); err != nil {
		c.errs = append(c.errs, err)
	}
	if _, err := w.AllTypes(); err != nil {
		c.add("workload.types", strings.Join(w.Types, ","), err.Error(), "")
	}
	if _, err := w.AllReductions(f); err != nil {
		c.add("workload.reductions", strings.Join(w.Reductions, ","), err.Error(), "")
	}
	c.atLeast("workload.root", w.Root, -1)
	c.atLeast("workload.cycles", w.Cycles, 0)
	if c.atLeast("workload.group", w.Group, 0); w.Group > maxGroup {
		c.add("workload.group", fmt.Sprint(w.Group), fmt.Sprintf("at most %d operations are planned together",
			maxGroup), "")
	}
	c.atLeast("workload.unalign", w.Unalign, 0)
	c.atLeast("workload.device", w.Device, 0)
	c.atLeast("workload.deviceBlocks", w.DeviceBlocks, 0)
	c.word("workload.buffers", w.Buffers, "plain", "registered", "windows")
	if w.CTAPolicy < 0 || w.CTAPolicy > 2 {
		c.add("workload.ctaPolicy", fmt.Sprint(w.CTAPolicy), "not known",
			"write 0 for default, 1 for efficiency, 2 for no blocks")
	}
}

// maxGroup bounds the operations of a group: nccl-tests' tables have up to 100.
const maxGroup = 1024

func (c *checks) engine(s *Spec) {
	e := &s.Engine
	words := []string{"alpha", "step", "flow"}
	if s.Workload.IsJob() {
		words = []string{"alpha", "step", "share"}
	}
	c.word("engine.fidelity", e.Fidelity, words...)
	c.word("engine.fold", e.Fold, Folds()...)
	c.word("engine.skip", e.Skip, "auto", "off")
	c.word("engine.jitter", e.Jitter, "drawn", "off")
	c.word("engine.launch", e.Launch, "eager", "graph")
	c.atLeast("engine.processes", e.Processes, 0)
	c.atLeast("engine.threads", e.Threads, 0)
	if s.Workload.Group > 1 {
		switch {
		case e.Fidelity == "alpha":
			c.add("workload.group", fmt.Sprint(s.Workload.Group), "a formula knows no groups",
				"leave fidelity alpha out")
		case e.Rivals:
			c.add("workload.group", fmt.Sprint(s.Workload.Group),
				"rivals are compared one operation at a time", "leave one of them out")
		case s.Outputs.Trace != "" || s.Outputs.Profile != "" || s.Outputs.Ops != "":
			c.add("workload.group", fmt.Sprint(s.Workload.Group), "files show a single operation",
				"leave the group out")
		}
	}
	if s.Machine.Split != "" {
		switch {
		case s.Outputs.Trace != "" || s.Outputs.Profile != "" || s.Outputs.Ops != "":
			c.add("machine.split", s.Machine.Split, "files show a single operation",
				"leave the files out, or run a job")
		case coll.Variable(s.Workload.Op):
			c.add("machine.split", s.Machine.Split, "groups of ranks that each do an "+coll.AllToAllV+
				" are not simulated", "leave the split out, or write alltoall")
		case e.Rivals:
			c.add("machine.split", s.Machine.Split, "rivals are compared one operation at a time",
				"leave one of them out")
		case s.Workload.IsJob():
			c.add("machine.split", s.Machine.Split, "a job says its communicators itself",
				"leave the split out")
		}
	}
	if e.Blocking < 0 || e.Blocking > 3 {
		c.add("engine.blocking", fmt.Sprint(e.Blocking), "not known", "write 0, 1, 2 or 3")
	}
	if e.Launch == "graph" && (e.Blocking != 0 || e.CPUTime) {
		c.add("engine.launch", "graph", "a replay neither blocks nor is launched one by one", "write eager")
	}
	c.word("network.model", s.Network.Model, netpreset.Models()...)
	if member, problem, hint := netpreset.Refused(netpreset.Choice{Model: s.Network.Model, CC: s.Network.CC,
		Balance: s.Network.Balance}, e.Fidelity, e.Fold); member != "" {
		c.add("network."+member,
			cmp.Or(map[string]string{"cc": s.Network.CC, "balance": s.Network.Balance}[member],
				s.Network.Model), problem, hint)
	}
	switch {
	case e.Fidelity == "step" && s.Network.Fabric != "":
		c.add("engine.fidelity", "step", "has an ideal network", "leave the fabric out, or write flow")
	case e.Fidelity == "alpha" && (s.Network.Fabric != "" || len(s.Network.Faults) > 0):
		c.add("engine.fidelity", "alpha", "is a formula that knows no network and no faults",
			"leave fabric and faults out")
	}
}

func (c *checks) outputs(o *Outputs) {
	for _, f := range []struct {
		path, name string
		ends       []string
	}{{"outputs.trace", o.Trace, []string{".json", ".json.gz", ".json.zst", ".pftrace", ".pftrace.gz",
		".pftrace.zst"}}, {"outputs.profile", o.Profile, []string{".pb.gz"}},
		{"outputs.ops", o.Ops, []string{".csv", ".goal"}}} {
		if f.name != "" && !slices.ContainsFunc(f.ends, func(e string) bool {
			return strings.HasSuffix(f.name, e)
		}) {
			c.add(f.path, f.name, "the name must end in "+oneOf(f.ends), "")
		}
	}
	c.word("outputs.detail", o.Detail, nccl.Simulated...)
	c.word("outputs.style", o.Style, "lanes", "nccl")
	if err := chrome.CheckPath(o.Trace, chrome.Options{NCCLStyle: o.Style == "nccl"}); err != nil {
		c.add("outputs.style", o.Style, err.Error(), "")
	}
	if o.MaxEvents < -1 {
		c.add("outputs.maxEvents", fmt.Sprint(o.MaxEvents), "must be at least -1", "")
	}
}

// grid validates each axis by its values, one at a time: every value must make a
// valid Spec with the others at their first.
func (c *checks) grid(s *Spec) {
	first := s.Clone()
	for a := range s.Grid {
		for v, value := range s.Grid[a].Values {
			one := first.Clone()
			one.Grid = nil
			err := set(&one, s.Grid[a].Path, value)
			if err == nil {
				err = one.Validate()
			}
			if err != nil {
				c.add(fmt.Sprintf("grid[%d].values[%d]", a, v), string(value), err.Error(), "")
			}
		}
	}
	if _, err := s.Points(); err != nil {
		c.add("grid", "", err.Error(), "")
	}
}

func (m *Machine) multicast() comm.Multicast {
	switch m.Multicast {
	case "on":
		return comm.MulticastOn
	case "off":
		return comm.MulticastOff
	}
	return comm.MulticastAuto
}

// Size is one size of a sweep.
type Size struct {
	Asked units.Bytes
	// Exact sizes are shown as asked; those of a range are rounded to whole
	// elements of all ranks, as nccl-tests rounds them.
	Exact bool
}

// AllSizes lists the sizes of a workload. Errors are *FieldErrors.
func (w *Workload) AllSizes() ([]Size, error) {
	var out []Size
	if len(w.Counts) > 0 {
		return w.ofCounts()
	}
	for i, text := range w.Sizes {
		n, err := units.ParseBytes(text)
		if err != nil {
			return nil, &FieldError{Path: fmt.Sprintf("workload.sizes[%d]", i), Value: text,
				Problem: err.Error()}
		}
		out = append(out, Size{n, true})
	}
	if len(w.Sizes) > 0 {
		return out, nil
	}
	b, err := w.Range.Bounds()
	if err != nil {
		return nil, err
	}
	list, err := b.Sizes()
	if err != nil {
		return nil, &FieldError{Path: "workload.range", Problem: err.Error()}
	}
	for _, n := range list {
		out = append(out, Size{units.Bytes(n), false})
	}
	return out, nil
}

// AllTypes lists the element types of a workload.
func (w *Workload) AllTypes() ([]coll.DataType, error) {
	return typesNamed(w.Types)
}

// AllReductions lists the reductions of an operation of a workload.
func (w *Workload) AllReductions(f coll.Func) ([]coll.RedOp, error) {
	return reductionsNamed(w.Reductions, f)
}

// AllRoots lists the root ranks of an operation; -1 means none.
func (w *Workload) AllRoots(f coll.Func, ranks int) ([]int, error) {
	switch {
	case w.Root < -1 || w.Root >= ranks:
		return nil, &FieldError{Path: "workload.root", Value: fmt.Sprint(w.Root),
			Problem: fmt.Sprintf("must be a rank from 0 to %d", ranks-1)}
	case !f.Rooted():
		return []int{-1}, nil
	case w.Root == -1:
		all := make([]int, ranks)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	return []int{w.Root}, nil
}
