package logcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/ncclog"
)

// Input is what a check reads.
type Input struct {
	Log *ncclog.Log
	// Topo is a topology file that replaces what the log says; nil for none. Its
	// nodes are equal, as many as the log names.
	Topo *File
	// Env are settings NAME=VALUE beside the log's.
	Env []string
	// Version replaces the log's release; "" for that of the log.
	Version string
}

// File is bytes with a name.
type File struct {
	Name string
	Data []byte
}

// Report is the outcome.
type Report struct {
	Version  string              `json:"version"` // whose rules were applied
	Logged   string              `json:"logged"`  // the release that the log names
	Equal    bool                `json:"equal"`
	Sections map[string]*Section `json:"sections"`
	Comms    int                 `json:"communicators"`
	Notes    []string            `json:"notes"`

	github bool // annotations after the text
}

// Section is one part of what NCCL logs.
type Section struct {
	Compared int    `json:"compared"` // lines
	Equal    int    `json:"equal"`
	First    string `json:"first"` // the first difference, "" if there is none
	// Differences are all that are listed, the choices in ranges of sizes.
	Differences []string `json:"differences,omitempty"`
}

// maxDifferences bounds what a section lists.
const maxDifferences = 20

// Names are the sections in the order of NCCL's initialisation, with the source
// that decides them.
var Names = [...]struct{ Name, Rule string }{
	{"system", "graph/topo.cc, graph/paths.cc"}, {"graphs", "graph/search.cc"}, {"trees", "graph/connect.cc, graph/trees.cc"},
	{"rings", "graph/rings.cc, graph/connect.cc"}, {"channels", "init.cc, graph/connect.cc, graph/paths.cc"}, {"table", "graph/tuning.cc"},
	{"routes", "transport.cc, graph/paths.cc"}, {"choices", "graph/tuning.cc, enqueue.cc"},
}

// NothingError says that a log has no communicator to compare.
type NothingError struct{ Why string }

func (e *NothingError) Error() string {
	return "nothing can be compared: " + e.Why + "; run NCCL with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING"
}

// Check compares every communicator of a log. The error is a *NothingError, a
// *PrintError, a *ShapeError, an error of the release (rules.For) or of the
// topology.
func Check(in Input) (*Report, error) {
	version := in.Version
	if version == "" {
		version = in.Log.Version
	}
	r, note, err := release.Select(version)
	if err != nil {
		return nil, err
	}
	rep := &Report{Version: r.Version(), Logged: in.Log.Version, Equal: true, Sections: map[string]*Section{}, Notes: []string{}}
	for _, n := range Names {
		rep.Sections[n.Name] = &Section{}
	}
	if note != "" {
		rep.note("%s", note)
	}
	rep.preface(in, r)
	why := "no line says Init START"
	for _, c := range in.Log.Comms {
		site, note, err := machineOf(in, c, r)
		if err != nil {
			return nil, err
		}
		if site == nil {
			why = note
			rep.note("%s", note)
			continue
		}
		if note != "" {
			rep.note("%s", note)
		}
		rep.Comms++
		rep.compare(c, site)
	}
	if rep.Comms == 0 {
		return nil, &NothingError{why}
	}
	for _, s := range rep.Sections {
		rep.Equal = rep.Equal && s.Equal == s.Compared && s.First == ""
	}
	return rep, nil
}

func (rep *Report) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(rep.Notes, text) {
		rep.Notes = append(rep.Notes, text)
	}
}

// preface notes what holds for the whole log.
func (rep *Report) preface(in Input, r *rules.Ruleset) {
	switch {
	case in.Log.Version == "":
		rep.note("the log names no version; the rules are those of %s", r.Version())
	case in.Version != "" && in.Log.Version != r.Version():
		rep.note("NCCL %s wrote the log; the rules are those of %s", in.Log.Version, r.Version())
	}
	if in.Log.Torn > 0 {
		rep.note("%d lines were written over by another process and are left out", in.Log.Torn)
	}
	if in.Log.Unplaced > 0 {
		rep.note("%d choices are of communicators whose initialisation is not logged", in.Log.Unplaced)
	}
	if _, left := settings(in.Log); len(left) > 0 {
		rep.note("%s is set and its file is not available", strings.Join(left, ", "))
	}
}

// machineOf makes simccl's communicator for one of a log. A nil site has a
// note why it was left out, another one of what was assumed, "" for nothing.
func machineOf(in Input, c *ncclog.Communicator, r *rules.Ruleset) (*scenario.Site, string, error) {
	env, _ := settings(in.Log)
	env = append(env, in.Env...)
	cast := ncclog.Unknown
	for _, k := range c.Ranks {
		cast = max(cast, k.Multicast)
	}
	if in.Topo != nil {
		m := &machine{files: memory{in.Topo.Name: in.Topo.Data}}
		m.spec.Nodes = []scenario.Nodes{{Topo: in.Topo.Name, Count: max(1, c.Ranks[0].NNodes)}}
		m.spec.GPUs = c.Ranks[0].LocalRanks
		site, err := m.load(r.Version(), env, cast)
		if err == nil && site.Comm.NRanks != c.NRanks {
			return nil, fmt.Sprintf("communicator %s has %d ranks, %s with %d nodes %d", c.ID, c.NRanks, in.Topo.Name, m.spec.Nodes[0].Count, site.Comm.NRanks), nil
		}
		return site, "", err
	}
	nodes, err := nodesOf(in.Log, c, r)
	if err != nil {
		return nil, "", err
	}
	if len(nodes) == 0 {
		return nil, fmt.Sprintf("communicator %s: no rank printed its system", c.ID), nil
	}
	var notes []string
	for _, n := range nodes {
		notes = append(notes, n.notes...)
	}
	site, _, err := likeliest(in, c, r, nodes, env, cast)
	return site, strings.Join(notes, "; "), err
}

// likeliest makes the communicator with each compute capability that the log
// allows and takes the first that agrees in most lines, with its machine.
func likeliest(in Input, c *ncclog.Communicator, r *rules.Ruleset, nodes []*printed, env []string, cast ncclog.Known) (*scenario.Site, *machine, error) {
	var best *scenario.Site
	var of *machine
	most := -1
	sms := candidates(in.Log, nodes, &r.Topo)
	for _, sm := range sms {
		m, err := fromLog(c, nodes, r, sm)
		if err != nil {
			return nil, nil, err
		}
		site, err := m.load(r.Version(), env, cast)
		if err != nil {
			return nil, nil, err
		}
		if m.sm = sm; len(sms) == 1 {
			return site, m, nil
		}
		trial := &Report{Sections: map[string]*Section{}}
		for _, n := range Names {
			trial.Sections[n.Name] = &Section{}
		}
		trial.compare(c, site)
		equal := 0
		for _, s := range trial.Sections {
			equal += s.Equal
		}
		if equal > most {
			best, of, most = site, m, equal
		}
	}
	return best, of, nil
}
