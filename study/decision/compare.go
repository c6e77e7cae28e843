package decision

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Difference is one place where two documents part, in NCCL's words:
// "AllReduce 8 B to 1 MiB: Tree LL → Ring LL", "ring graph channels: 8 → 16".
type Difference struct {
	What string // the range of sizes, or the quantity
	Was  string // the stored value; "none" where there is none
	Is   string
}

// String formats the difference on one line.
func (d Difference) String() string { return d.What + ": " + d.Was + " → " + d.Is }

// MarshalText returns String, for JSON.
func (d Difference) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Differences lists the differences of two documents.
type Differences struct {
	First  []Difference // the first of each section
	Count  int
	Hashed bool // of some sections no more is known than that they differ
	shown  int  // of the current section
}

// shownDifferences is the largest number of differences listed per section, or per kind of change of the
// choices, so that none hides the others.
const shownDifferences = 12

func (d *Differences) add(what, was, is string) {
	d.Count++
	if d.shown++; d.shown <= shownDifferences {
		d.First = append(d.First, Difference{what, was, is})
	}
}

// Compare compares a stored document with the current whole document (Encode). The stored one is either a
// whole document, whose numbers must agree to 1e-5 relative and all else exactly, or a Summary, which must
// agree exactly. The error reports a text that is neither.
func Compare(want, got []byte) (Differences, error) {
	var d Differences
	var w, g map[string]any
	if err := json.Unmarshal(want, &w); err != nil {
		return d, err
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return d, err
	}
	if w == nil {
		return d, errors.New("no document of inspect --json, nor of check --update")
	}
	if _, ok := w[formKey]; ok {
		stored, err := parseSummary(want)
		if err != nil {
			return d, err
		}
		now, err := Summarize(got)
		if err != nil {
			return d, err
		}
		d.summaries(stored, now)
		return d, nil
	}
	d.documents(w, g)
	return d, nil
}

// documents compares whole documents, the choices first.
func (d *Differences) documents(w, g map[string]any) {
	was, wOK := choicesOf(w["selection"])
	is, gOK := choicesOf(g["selection"])
	if wOK && gOK {
		d.choices(was, is)
	}
	for _, key := range sectionKeys(w, g) {
		if key == "selection" && wOK && gOK {
			continue
		}
		d.shown = 0
		old, inW := w[key]
		now, inG := g[key]
		n := namer{w, g}
		walk([]any{key}, field{old, inW}, field{now, inG}, func(at []any, was, is string) {
			d.add(n.name(at), was, is)
		})
	}
}

// documentOrder is the order of the sections in a document.
var documentOrder = []string{"reference", "nNodes", "gpusPerNode", "nRanks", "env", "notes", "topoXml",
	"system", "paths", "graphs",
	"domains", "graphXml", "graphsFinal", "channels", "tuning", "selection"}

// sectionKeys lists the keys of two documents in their order; unknown ones are the
// last, in alphabetical order.
func sectionKeys[V any](w, g map[string]V) []string {
	rank := func(k string) int {
		if i := slices.Index(documentOrder, k); i >= 0 {
			return i
		}
		return len(documentOrder)
	}
	keys := unionKeys(w, g)
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

// unionKeys lists the keys of either map in alphabetical order.
func unionKeys[V any](w, g map[string]V) []string {
	both := map[string]V{}
	maps.Copy(both, w)
	maps.Copy(both, g)
	return slices.Sorted(maps.Keys(both))
}
