package config

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
)

// rcclPrefix begins the variables that RCCL alone reads.
const rcclPrefix = "RCCL_"

// Reasons that several of RCCL's variables and features share.
const (
	buildOption = "it is of a build with an option that AMD's sources leave off"
	ownRings    = "rings and trees of a user's are not modelled"
)

// Feature is a part of RCCL that is not modelled as a whole.
type Feature string

const (
	// WarpSpeed is a wavefront in place of a block of threads a channel.
	WarpSpeed Feature = "WarpSpeed"
	// GDA is AllToAll by NICs that kernels drive (rocSHMEM).
	GDA Feature = "GDA"
	// MSCCL is schedules from files of RCCL's, with MSCCL++.
	MSCCL Feature = "MSCCL"
)

// features say of which builds or releases a feature is, and what to write in place of a variable of it.
var features = map[Feature][2]string{
	WarpSpeed: {buildOption, ""},
	GDA: {"AllToAll by rocSHMEM is of a build with an option that AMD's sources leave off",
		"write RCCL_ROCSHMEM_ENABLE=0, by which RCCL sends and receives"},
	MSCCL: {"its schedules are of ROCm 6 and 7.0 to 7.2, whose releases have no rules here; builds of " +
		"2.28.3 leave it off, and 2.30.4 has none", "write RCCL_MSCCL_ENABLE=0 and RCCL_MSCCLPP_ENABLE=0"},
}

// featureOf is the feature that a variable belongs to, if it is refused for that.
func featureOf(name string) Feature {
	switch {
	case strings.HasPrefix(name, "RCCL_WARP_SPEED"):
		return WarpSpeed
	case strings.HasPrefix(name, "RCCL_ROCSHMEM"):
		return GDA
	case strings.HasPrefix(name, "RCCL_MSCCL"):
		return MSCCL
	}
	return ""
}

// UnmodelledError refuses a variable that would change what RCCL decides: of a feature, or alone.
type UnmodelledError struct {
	Feature Feature // "": none of them
	Why     string
	Write   string // instead; "": leave the variable unset
}

func (e *UnmodelledError) Error() string {
	what := "not modelled: "
	if e.Feature != "" {
		what = string(e.Feature) + " is not modelled: "
	}
	return what + e.Why + "; " + cmp.Or(e.Write, "leave it unset")
}

// refused are the variables of RCCL with a bearing on decisions or plans that is not modelled, with the value
// besides the default by which nothing changes. NCCL_RINGS is RCCL's too, but read under NCCL's prefix.
var refused = map[string]string{
	"NCCL_RINGS": "", "NCCL_RINGS_REMAP": "", "RCCL_TREES": "", "RCCL_ENABLE_INTRANET": "0",
	"RCCL_REDUCED_CU_ENABLE": "0", "RCCL_WARP_SPEED_FORCE_ENABLE": "0", "RCCL_WARP_SPEED_ENABLE": "0",
	"RCCL_ALL_TO_ALL_PIVOT_ENABLE": "0", "RCCL_PIVOT_ALLTOALL_ENABLE": "1", "RCCL_UNROLL_FACTOR": "-1",
	"RCCL_P2P_BATCH_ENABLE": "-1", "RCCL_P2P_BATCH_THRESHOLD": "65536", "RCCL_P2P_SHIFT_SIZE": "-1",
	"RCCL_P2P_NET_DISABLE": "1", "RCCL_PXN_OPT_QP_USAGE": "0", "RCCL_ROCSHMEM_ENABLE": "0",
	"RCCL_MSCCL_ENABLE": "0", "RCCL_MSCCL_FORCE_ENABLE": "0", "RCCL_MSCCLPP_ENABLE": "0",
	"RCCL_MSCCLPP_FORCE_ENABLE": "0",
}

// rcclVars are the variables of RCCL 2.30.4 and 2.28.3 beside NCCL's.
var rcclVars = rows("rccl.txt", rcclTable)

//go:embed rccl.txt
var rcclTable string

// table are the variables that the release reads.
func (c *Config) table() []Var {
	if c.Rules.Library != rules.RCCL {
		return vars
	}
	return append(vars[:len(vars):len(vars)], rcclVars...)
}

// readBy reports whether a release reads the variable.
func (v *Var) readBy(r *rules.Ruleset) bool {
	if strings.HasPrefix(v.Name, rcclPrefix) {
		return r.Library == rules.RCCL
	}
	return v.In().Holds(r.Release)
}

// misnamed is the error of RCCL_OVERRIDE_ALGO or RCCL_OVERRIDE_PROTO with a word that names nothing, which no
// choice would follow.
func misnamed(name, text string) error {
	var known []string
	switch name {
	case "RCCL_OVERRIDE_ALGO":
		for _, a := range coll.Algorithms() {
			known = append(known, a.String())
		}
	case "RCCL_OVERRIDE_PROTO":
		for _, p := range coll.Protocols() {
			known = append(known, p.String())
		}
	}
	if len(known) == 0 || text == "" || slices.ContainsFunc(known, func(k string) bool {
		return strings.EqualFold(k, text)
	}) {
		return nil
	}
	return fmt.Errorf("%q is not known; write one of %s", text, strings.Join(known, ", "))
}

// harmless reports whether a variable of RCCL has the value by which nothing changes that is not modelled.
func harmless(name, text string) bool {
	same, ok := refused[name]
	return ok && text != "" && text == same
}

// refuse is the error of a variable that would change what RCCL decides in a way that is not modelled.
func refuse(r *rules.Ruleset, name string, v Value) error {
	if _, ok := refused[name]; r.Library != rules.RCCL || !ok || v.Text == "" || harmless(name, v.Text) {
		return nil
	}
	why := ownRings
	if row := byName[name]; row != nil {
		if why = row.Unsupported; v.Text == row.Default {
			return nil
		}
	}
	e := &UnmodelledError{Feature: featureOf(name), Why: why}
	if of, ok := features[e.Feature]; ok {
		e.Why, e.Write = of[0], of[1]
	}
	return &Error{Var: name, Text: v.Text, Origin: v.Origin, Err: e}
}

// rcclBindings fill what RCCL's variables change.
func (c *Config) rcclBindings() []binding {
	t, p := &c.Tuning.AMD, &c.Preset
	return []binding{
		{"RCCL_MODEL_MATCHING_DISABLE", func(n int64) { p.Off = n != 0 }},
		{"RCCL_MODEL_REVERSAL_DISABLE", func(n int64) { p.Forwards = n != 0 }},
		{"RCCL_DISABLE_RAIL_TREES", func(n int64) { p.NoRails = n != 0 }},
		{"RCCL_DISABLE_NET_OVERRIDE", func(n int64) { p.OwnNets = n != 0 }},
		{"RCCL_LL128_FORCE_ENABLE", func(n int64) { t.LL128 = n != 0 }},
		{"RCCL_CHANNEL_TUNING_ENABLE", func(n int64) { t.NoWindows = n == 0 }},
		{"RCCL_THREADS_PER_BLOCK", &t.Threads},
		{"RCCL_OVERRIDE_ALGO", &t.Algo}, {"RCCL_OVERRIDE_PROTO", &t.Proto},
		{"RCCL_AINIC_ROCE", &t.AINIC},
		{"RCCL_DDA_ENABLE", func(n int64) { t.NoDDA = n == 0 }},
		{"RCCL_DDA_THRESHOLD", &t.DDAMost},
		{"RCCL_DIRECT_ALLGATHER_DISABLE", func(n int64) { t.NoDirectGather = n != 0 }},
		{"RCCL_DIRECT_ALLGATHER_THRESHOLD", &t.DirectGatherMost},
		{"RCCL_DIRECT_REDUCE_SCATTER_DISABLE", func(n int64) { t.NoDirectScatter = n != 0 }},
		{"RCCL_HIERARCHICAL_ALLGATHER", func(n int64) { t.NoHierarchy = n != 1 }},
		{"RCCL_DISABLE_REDUCE_COPY_PIPELINING", func(n int64) { t.NoPipeline = n != 0 }},
		{"RCCL_PIPELINE_ALL_DATA_TYPES", func(n int64) { t.PipelineAll = n != 0 }},
		{"NCCL_LOCAL_REGISTER", func(n int64) { // 0 by RCCL's default (rccl_wrap.cc:526, not in 2.28.3)
			t.NoDirectGather = t.NoDirectGather || n != 0 && c.Rules.Tuning.DirectAsked
		}},
		{"NCCL_MIN_NCHANNELS", &t.MinChannels}, {"NCCL_MAX_NCHANNELS", &t.MaxChannels},
	}
}
