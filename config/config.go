package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Config is all settings, and the Params of every room made from them.
type Config struct {
	values map[string]Value // of the variables that the release reads
	unread map[string]Value // of all others

	// Rules are those of the release; every room's Params have them too.
	Rules *rules.Ruleset

	Topo    topo.Params
	Search  search.Params
	Connect connect.Params
	Tuning  tuning.Params
	Plan    plan.Params
	// Registration is what concerns registered buffers and windows.
	Registration comm.Registration
	Preset       preset.Settings
	IB           netcfg.IB     // for hardware runs
	Socket       netcfg.Socket // for hardware runs
}

// Comm gathers the settings of a communicator. Multicast and graphs from files
// are the caller's to add.
func (c *Config) Comm() comm.Params {
	return comm.Params{Rules: c.Rules, Search: c.Search, Connect: c.Connect, Tuning: c.Tuning, Plan: c.Plan,
		Registration: c.Registration, Access: c.Topo.Access, Preset: c.Preset}
}

// Load merges the sources (flag before environment before file before
// default), fills every room's Params and lists what a user should know. The
// error is an *Error: a setting with which NCCL refuses to start.
func Load(s Sources) (*Config, []Warning, error) {
	vals, warns, err := gather(s)
	if err != nil {
		return nil, warns, err
	}
	r := s.Rules
	if r == nil {
		r = rules.Default()
	}
	service := netcfg.DefaultService()
	c := &Config{values: vals, unread: map[string]Value{}, Rules: r, Topo: topo.ParamsOf(r),
		Search: search.Params{Rules: r}, Connect: connect.Params{Rules: r}, Tuning: tuning.Params{Rules: r},
		IB: netcfg.IB{Service: &service}}
	for _, name := range slices.Sorted(maps.Keys(vals)) {
		v := byName[name]
		if err := refuse(r, name, vals[name]); err != nil {
			return nil, warns, err
		}
		if v == nil || !v.readBy(r) {
			if w, is := unknown(r, name, vals[name]); is && vals[name].Origin.Kind != Plugin {
				warns = append(warns, w)
			}
			c.unread[name] = vals[name]
			delete(vals, name)
			continue
		}
		w, err := c.check(v)
		if err != nil {
			return nil, warns, &Error{Var: name, Text: vals[name].Text, Origin: vals[name].Origin, Err: err}
		}
		warns = append(warns, w...)
	}
	for _, b := range c.bindings() {
		c.fill(b)
	}
	// P2P switched off takes NVLink domains apart, unless they are asked for (init.cc:914).
	if l := c.Topo.P2PLevel; l.Set && l.Value == topo.PathLOC && c.Number("NCCL_MNNVL_ENABLE").Or(2) != 1 {
		c.Topo.SplitHosts = true
	}
	c.Connect.CollNet = c.Number("NCCL_COLLNET_ENABLE").Value == 1 && c.Number("SIMCCL_COLLNET").Value != 0
	c.Topo.CollNet = c.Connect.CollNet
	return c, warns, nil
}

// Cancel makes every stage check periodically whether to continue: f returns nil, or why
// to end, as a context's Err does.
func (c *Config) Cancel(f func() error) {
	c.Topo.Cancelled, c.Search.Cancelled, c.Connect.Cancelled, c.Plan.Cancelled = f, f, f, f
}

// byName finds a variable.
var byName = func() map[string]*Var {
	m := make(map[string]*Var, len(vars))
	for _, list := range [][]Var{vars, rcclVars} {
		for i := range list {
			m[list[i].Name] = &list[i]
		}
	}
	return m
}()

// Value returns what the sources said of a variable; its Origin is Default
// where they said nothing.
func (c *Config) Value(name string) Value { return c.values[name] }

// Text returns a variable's text; set but empty counts as set.
func (c *Config) Text(name string) units.Opt[string] {
	if v, ok := c.values[name]; ok {
		return units.Some(v.Text)
	}
	return units.Opt[string]{}
}

// Number returns a variable's number as NCCL reads it: unset where it is
// empty, does not fit, or says -2 for a variable whose default is computed.
func (c *Config) Number(name string) units.Opt[int64] {
	v, ok := c.values[name]
	if !ok || v.Text == "" {
		return units.Opt[int64]{}
	}
	n, _, fits := ParseNumber(v.Text)
	if !fits || n == -2 && computed[name] {
		return units.Opt[int64]{}
	}
	return units.Some(n)
}

// computed are the variables whose -2 means "NCCL computes it".
var computed = map[string]bool{
	"NCCL_MIN_NRINGS": true, "NCCL_MAX_NRINGS": true, "NCCL_MIN_NCHANNELS": true, "NCCL_MAX_NCHANNELS": true,
	"NCCL_BUFFSIZE": true, "NCCL_LL_BUFFSIZE": true, "NCCL_LL128_BUFFSIZE": true, "NCCL_NTHREADS": true,
	"NCCL_LL128_NTHREADS": true, "NCCL_NET_OVERHEAD": true, "NCCL_NET_GDR_READ": true,
	"NCCL_P2P_READ_ENABLE":        true,
	"NCCL_NVLSTREE_MAX_CHUNKSIZE": true, "NCCL_CUMEM_ENABLE": true, "NCCL_IB_ADAPTIVE_ROUTING": true,
	"NCCL_NET_SHARED_BUFFERS": true, "NCCL_NSOCKS_PERTHREAD": true, "NCCL_SOCKET_NTHREADS": true,
}

// check validates one value: the error is what NCCL fails with.
func (c *Config) check(v *Var) ([]Warning, error) {
	val := c.values[v.Name]
	var problem, hint string
	switch v.Name {
	case "NCCL_ALGO", "NCCL_PROTO":
		if c.Rules.Tuning.ListsOfAll {
			break // names that it does not know are passed over
		}
		if v.Name == "NCCL_PROTO" {
			if _, err := coll.ParseProtocolMask(val.Text, coll.Mask{}); err != nil {
				return nil, err
			}
			break
		}
		if _, err := coll.ParseAlgorithmMask(val.Text, coll.Mask{}); err != nil {
			return nil, err
		}
	case "NCCL_NET_MERGE_LEVEL":
		if topo.ParseMergeLevel(val.Text) == topo.PathLOC && !strings.HasPrefix(val.Text, "LOC") {
			problem, hint = "no such level; NCCL takes it for LOC, which fuses nothing",
				"write LOC, PORT, PIX, PXB, P2C, PXN, PHB or SYS"
		}
	case "NCCL_NETDEVS_POLICY":
		if _, ok := topo.ParseNetDevsPolicy(val.Text); !ok {
			problem, hint = "not recognised; NCCL takes AUTO", "write AUTO, ALL or MAX:n with n above 0"
		}
	case "NCCL_NET":
		if n := val.Text; !strings.EqualFold(n, "IB") && !strings.EqualFold(n, "Socket") {
			problem, hint = "names a plugin that is not known here; the nets stay as the file has them",
				"write IB or Socket"
		}
	case "NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL":
		if !topo.ParseLevel(val.Text).Set {
			levels := levelNames()
			problem, hint = "no such level; NCCL ignores it", "write one of "+strings.Join(levels, " ")
			if n := Nearest(strings.ToUpper(val.Text), levels); n != "" {
				hint = "write " + n
			}
		}
	default:
		if val.Text != "" && (v.Kind == Number || v.Kind == Flag) {
			problem, hint = numberTrouble(val.Text)
		}
	}
	if err := cmp.Or(c.outOfRange(v.Name), misnamed(v.Name, val.Text)); err != nil {
		return nil, err
	}
	var warns []Warning
	warn := func(problem, hint string) {
		warns = append(warns, Warning{Var: v.Name, Text: val.Text, Origin: val.Origin, Problem: problem,
			Hint: hint})
	}
	if problem != "" {
		warn(problem, hint)
	}
	if m := v.missing(); m != "" && !harmless(v.Name, val.Text) {
		warn("is not supported: "+m, "")
	}
	return warns, nil
}

// levelNames are the levels that NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL know.
func levelNames() []string {
	var names []string
	for k := topo.PathLOC; k <= topo.PathSYS; k++ {
		names = append(names, k.String())
	}
	return names
}

// unknown warns of a variable that looks like NCCL's and is not. Plugins have
// names of their own below these prefixes.
func unknown(r *rules.Ruleset, name string, v Value) (Warning, bool) {
	own := strings.HasPrefix(name, rcclPrefix) // of a process that may run with both libraries
	if !strings.HasPrefix(name, "NCCL_") && !strings.HasPrefix(name, "SIMCCL_") &&
		(!own || r.Library != rules.RCCL && v.Origin.Kind == Environment) {
		return Warning{}, false
	}
	for _, own := range []string{"NCCL_PROFILE_", "NCCL_INSPECTOR_", "NCCL_TESTS_", "SIMCCL_UPDATE",
		"SIMCCL_SHARDS", "SIMCCL_REQUIRE", "SIMCCL_SHARED", "SIMCCL_SPEEDSCOPE"} {
		if strings.HasPrefix(name, own) {
			return Warning{}, false
		}
	}
	if name == "NCCL_VERSION" && v.Origin.Kind == Environment {
		// of NVIDIA's container images, for their build; a user who sets it for simccl means more
		return Warning{}, false
	}
	w := Warning{Var: name, Text: v.Text, Origin: v.Origin, Problem: r.Name() + " reads no such variable"}
	if in, ok := laterIn(name); ok && in.Holds(r.Release) {
		w.Problem = notModelled
		return w, true
	}
	if strings.HasPrefix(name, "SIMCCL_") {
		w.Problem = "simccl reads no such variable"
	}
	if in := readIn(name); in.Since.Compare(r.Release) > 0 {
		w.Problem += fmt.Sprintf("; NCCL %d.%d does", in.Since.Major, in.Since.Minor)
		return w, true
	} else if in.Until != (rules.Release{}) {
		w.Problem += fmt.Sprintf("; NCCL did before %s", in.Until)
		return w, true
	}
	known := vars
	if r.Library == rules.RCCL {
		known = slices.Concat(vars, rcclVars)
	}
	all := make([]string, 0, len(known))
	for i := range known {
		all = append(all, known[i].Name)
	}
	if n := Nearest(name, all); n != "" {
		w.Hint = "write " + n
	}
	return w, true
}

// Nearest returns the word of a list that a misspelt one most likely means, or "".
func Nearest(word string, list []string) string {
	best, at := max(1, len(word)/4)+1, ""
	for _, l := range list {
		if d := distance(word, l); d < best {
			best, at = d, l
		}
	}
	return at
}

// distance counts edits: a letter changed, added or dropped, or two
// neighbours swapped.
func distance(a, b string) int {
	prev, cur, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range cur {
		cur[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(cur[j]+1, next[j-1]+1, cur[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], prev[j-2]+1)
			}
		}
		prev, cur, next = cur, next, prev
	}
	return cur[len(b)]
}
