package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Kind is the form of a variable's value.
type Kind uint8

// Kinds.
const (
	Number Kind = iota // strtoll, base 0
	Flag               // a Number of which only zero and not zero matter
	Text               // as it is
	Path               // a file's name
	Level              // a path kind, LOC … SYS, or an old digit 0 … 5
	List               // names per collective, NCCL_ALGO's grammar
)

var kindNames = [...]string{"number", "flag", "text", "file", "level", "list"}

// String names the kind as ENV.md does.
func (k Kind) String() string { return kindNames[k] }

// Var is one variable. Exactly one of the following holds: it is honoured
// (NoEffect and Unsupported are empty), it has no effect here, or it would have
// one in NCCL and is not supported.
type Var struct {
	Name        string // with its prefix: NCCL_ALGO
	Kind        Kind
	Default     string // as NCCL has it; "auto" where NCCL computes it
	Room        string // the room that takes it into account, or the part of NCCL
	Meaning     string
	Source      string // file:line of NCCL v2.28.9, below src/
	NoEffect    string // why nothing here depends on it
	Unsupported string // what of NCCL is missing here
}

// Honoured reports whether simccl takes the variable into account.
func (v *Var) Honoured() bool { return v.NoEffect == "" && v.missing() == "" }

// missing reports what of NCCL is not there: what the table says, or that no
// room has a setting for the variable.
func (v *Var) missing() string {
	if v.NoEffect == "" && v.Unsupported == "" && !bound[v.Name] {
		return "nothing here reads it yet"
	}
	return v.Unsupported
}

// bound are the variables that fill a field of some Params, and those that the
// commands look up themselves.
var bound = func() map[string]bool {
	m := map[string]bool{
		"NCCL_TOPO_FILE": true, "NCCL_TOPO_DUMP_FILE": true, "NCCL_GRAPH_FILE": true,
		"NCCL_GRAPH_DUMP_FILE": true,
		"NCCL_CONF_FILE":       true, "NCCL_COLLNET_ENABLE": true, "SIMCCL_COLLNET": true,
		"SIMCCL_SECRET":  true,
		"SIMCCL_LIBNCCL": true, "SIMCCL_NCCL_VERSION": true, "SIMCCL_PROFILER_PLUGIN": true,
		"SIMCCL_MEMORY":     true,
		"NCCL_TUNER_PLUGIN": true, "NCCL_TUNER_CONFIG_FILE": true,
	}
	for _, b := range new(Config).bindings() {
		m[b.name] = true
	}
	return m
}()

// reasons are those that several variables share; in the tables @name means one.
var reasons = map[string]string{
	"initTime": "it changes how a communicator starts and how long that takes, and starting is not " +
		"simulated",
	"logging":   "it changes what NCCL prints; simccl prints its own",
	"hostSide":  "it concerns the host's threads and memory; no decision and no modelled time depends on it",
	"noReg":     "every rank is a process of its own",
	"noSym":     "windows are taken to fit",
	"noGIN":     "GPU-initiated networking is not simulated",
	"noRAS":     "it concerns NCCL's monitor of running jobs",
	"noPlugin":  "simccl loads no plugin; what a plugin would say is not known",
	"realOnly":  "it names a device of a live machine; a simulated machine has the NICs that its file has",
	"oneComm":   "it concerns communicators made from others; one communicator is simulated",
	"notInTime": "the model of time does not take it into account",

	// RCCL's variables.
	"buildOption":  buildOption,
	"planless":     "plans of AMD's machines have its default alone",
	"timesAlone":   "no decision depends on it, and times are those of its default",
	"netOff":       "it is read only where send/recv of one host goes over the network, which is refused",
	"noCopies":     "copy engines serve symmetric windows, of which machines of AMD have none here",
	"ownRings":     ownRings,
	"oldSchedules": "MSCCL is of releases without rules here",
}

// Vars lists every variable, sorted by part of NCCL.
func Vars() []Var { return slices.Clone(vars) }

// vars are NCCL's variables and simccl's own.
var vars = rows("variables.txt", ncclTable)

//go:embed variables.txt
var ncclTable string

// rows reads a table: a line a variable, whose columns are the fields of Var. The last two are one: "no
// effect" or "not supported" and the reason, of which @name is one of reasons.
func rows(file, text string) (list []Var) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		c := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		for i := range c {
			c[i] = strings.TrimSpace(c[i])
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		kind := -1
		if len(c) > 1 {
			kind = slices.Index(kindNames[:], c[1])
		}
		if len(c) != 6 && len(c) != 8 || kind < 0 {
			panic(fmt.Sprintf("config/%s:%d: no row of the table: %s", file, n, line))
		}
		v := Var{Name: c[0], Kind: Kind(kind), Default: c[2], Room: c[3], Meaning: c[4], Source: c[5]}
		if len(c) == 8 {
			why := c[7]
			if name, shared := strings.CutPrefix(why, "@"); shared {
				why = reasons[name]
			}
			to, known := map[string]*string{"no effect": &v.NoEffect, "not supported": &v.Unsupported}[c[6]]
			if !known || why == "" {
				panic(fmt.Sprintf("config/%s:%d: no reason: %s", file, n, line))
			}
			*to = why
		}
		list = append(list, v)
	}
	return list
}
