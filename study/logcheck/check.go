package logcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/study/ncclog"
)

// Input is the log to check, and what replaces or completes its content.
type Input struct {
	Log *ncclog.Log
	// Topo is a topology file that replaces the log's system print; nil for none. All nodes have it; their
	// number is the log's.
	Topo *File
	// Env lists settings NAME=VALUE in addition to the log's.
	Env []string
	// Version replaces the log's release; "" for the log's own.
	Version string
}

// File is a named content.
type File struct {
	Name string
	Data []byte
}

// Report is the result of a check.
type Report struct {
	Version  string              `json:"version"` // whose rules were applied
	Logged   string              `json:"logged"`  // the release that the log names
	Equal    bool                `json:"equal"`
	Sections map[string]*Section `json:"sections"`
	Comms    int                 `json:"communicators"`
	Notes    []string            `json:"notes"`

	library string // NCCL or RCCL
	github  bool   // annotations after the text

	absent map[int]int              // lines of a rank that are not in the log
	left   int                      // lines that were written over
	pieces map[string][]ncclog.Text // lines without a prefix, by their text
}

// Section is the comparison of one part of NCCL's log: systems, graphs, rings, ….
type Section struct {
	Compared int    `json:"compared"` // lines
	Equal    int    `json:"equal"`
	First    string `json:"first"` // the first difference, "" if there is none
	// Differences are all that are listed, the choices in ranges of sizes.
	Differences []string `json:"differences,omitempty"`
}

// maxDifferences is the largest number of differences that a section lists.
const maxDifferences = 20

// Names are the sections in the order of NCCL's initialisation, with the source
// that decides them.
var Names = [...]struct{ Name, Rule string }{
	{"system", "graph/topo.cc, graph/paths.cc"}, {"graphs", "graph/search.cc"},
	{"trees", "graph/connect.cc, graph/trees.cc"},
	{"rings", "graph/rings.cc, graph/connect.cc"}, {"channels", "init.cc, graph/connect.cc, graph/paths.cc"},
	{"table", "graph/tuning.cc"},
	{"routes", "transport.cc, graph/paths.cc"}, {"choices", "graph/tuning.cc, enqueue.cc"},
}

// NothingError reports that a log has no communicator to compare.
type NothingError struct{ Why string }

func (e *NothingError) Error() string {
	return "nothing can be compared: " + e.Why +
		"; run NCCL with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING"
}

// Check compares every communicator of a log. The error is a *NothingError, a
// *PrintError, a *ShapeError, an error of the release (rules.For) or of the
// topology.
func Check(in Input) (*Report, error) {
	r, note, err := release.Select(in.version())
	if err != nil {
		return nil, err
	}
	rep := newReport(in.Log)
	rep.Version, rep.Logged = r.Version(), in.Log.Version
	if note != "" {
		rep.note("%s", note)
	}
	why := "no line says which ranks there are"
	for _, c := range in.Log.Comms {
		f, note, err := in.explain(c, r)
		if err != nil {
			return nil, err
		}
		if f == nil {
			why = note
			rep.note("%s", note)
			continue
		}
		for _, n := range f.notes {
			rep.note("%s", n)
		}
		if f.of != nil {
			for _, n := range f.of.notes {
				rep.note("%s", n)
			}
		}
		rep.Version, rep.library = f.site.Comm.Rules.Version(), f.site.Comm.Rules.Library.String()
		rep.Comms++
		rep.compare(c, f.site)
	}
	if rep.Comms == 0 {
		return nil, &NothingError{why}
	}
	rep.preface(in)
	for _, s := range rep.Sections {
		rep.Equal = rep.Equal && s.Equal == s.Compared && s.First == ""
	}
	return rep, nil
}

func newReport(log *ncclog.Log) *Report {
	rep := &Report{Equal: true, Sections: map[string]*Section{}, Notes: []string{}, absent: map[int]int{},
		pieces: map[string][]ncclog.Text{}}
	for _, n := range Names {
		rep.Sections[n.Name] = &Section{}
	}
	for _, p := range log.Pieces {
		rep.pieces[p.Text] = append(rep.pieces[p.Text], p)
	}
	return rep
}

// version returns the release whose rules are asked for, "" where nothing names one.
func (in *Input) version() string {
	if in.Version != "" {
		return in.Version
	}
	return in.Log.Version
}

func (rep *Report) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(rep.Notes, text) {
		rep.Notes = append(rep.Notes, text)
	}
}

// preface adds notes about the whole log.
func (rep *Report) preface(in Input) {
	switch {
	case in.Log.Version == "":
		rep.note("the log names no version; the rules are those of %s", rep.Version)
	case in.Version != "" && in.Log.Version != rep.Version:
		rep.note("%s wrote the log; the rules are those of %s", nameOf(in.Log.Version), rep.Version)
	}
	if n := in.Log.Torn + rep.left; n > 0 {
		rep.note("%d lines were written over by another process and are left out", n)
	}
	if n := in.Log.Unplaced; n > 0 {
		rep.note("%d choices are of communicators whose initialisation is not logged", n)
	}
	if _, left := settings(in.Log); len(left) > 0 {
		rep.note("%s is set and its file is not available", strings.Join(left, ", "))
	}
	if len(rep.absent) > 0 {
		rep.note("%s not in the log: only lines that are there are compared", absentText(rep.absent))
	}
}

// nameOf is a version of a log with its library.
func nameOf(version string) string {
	if v, ok := strings.CutPrefix(version, "rccl-"); ok {
		return "RCCL " + v
	}
	return "NCCL " + version
}

// maxAbsent is the largest number of ranks that a note names.
const maxAbsent = 4

// absentText formats the numbers of absent lines: "1 line of rank 0, 3 of rank 2".
func absentText(absent map[int]int) string {
	ranks := slices.Sorted(maps.Keys(absent))
	var parts []string
	total := 0
	for i, r := range ranks {
		total += absent[r]
		if i >= maxAbsent {
			continue
		}
		unit := ""
		if i == 0 {
			unit = map[bool]string{true: " line", false: " lines"}[absent[r] == 1]
		}
		parts = append(parts, fmt.Sprintf("%d%s of rank %d", absent[r], unit, r))
	}
	if n := len(ranks) - maxAbsent; n > 0 {
		return fmt.Sprintf("%d lines of %d ranks (%s, …)", total, len(ranks), strings.Join(parts, ", "))
	}
	return strings.Join(parts, ", ")
}
