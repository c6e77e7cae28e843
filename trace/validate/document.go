package validate

import (
	"fmt"
	"io"
)

// Document is a Report with the names and totals of its JSON output.
type Document struct {
	File     string   `json:"file"`
	Schema   string   `json:"schema,omitempty"`
	Events   int      `json:"events"`
	Tracks   int      `json:"tracks"`
	Slices   int      `json:"slices"`
	Arrows   int      `json:"arrows"`
	Counters int      `json:"counters"`
	Errors   int      `json:"errors"`
	Warnings int      `json:"warnings"`
	Problems []string `json:"problems"` // all of them
	LeftOut  int      `json:"problems_left_out,omitempty"`
	// Kinds counts problems that differ only in names and numbers.
	Kinds []Kind `json:"kinds"`
}

// Kind counts the problems of one kind.
type Kind struct {
	Rule    string `json:"rule"`
	Warning bool   `json:"warning"`
	Count   int    `json:"count"`
	First   string `json:"first"`
}

// Document describes a file that was checked with Options.All.
func (r *Report) Document(file string) *Document {
	d := &Document{File: file, Schema: r.Info.Schema, Events: r.Info.Events, Tracks: r.Tracks,
		Slices: r.Slices, Arrows: r.Flows, Counters: r.Counters,
		Errors: r.Errors, Warnings: r.Warnings, Problems: []string{}, LeftOut: r.LeftOut,
		Kinds: kindsOf(r.Problems)}
	for _, p := range r.All {
		d.Problems = append(d.Problems, p.String())
	}
	return d
}

// kindsOf groups problems by kind and counts them.
func kindsOf(list []Problem) []Kind {
	out := []Kind{}
	n, first := 0, ""
	for _, p := range list {
		if n++; n == 1 {
			first = p.String()
		}
		if p.Last {
			out = append(out, Kind{p.Rule, p.Warning, n + p.More, first})
			n = 0
		}
	}
	return out
}

// Text writes examples of the problems of a file, and its counts.
func (r *Report) Text(w io.Writer, file string) error {
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s:%s\n", file, p)
		if p.More > 0 {
			fmt.Fprintf(w, "%s: %d more of this kind [%s]\n", file, p.More, p.Rule)
		}
	}
	_, err := fmt.Fprintf(w,
		"%s: %d events on %d tracks: %d slices, %d arrows, %d counter values; %d errors, %d warnings\n",
		file, r.Info.Events, r.Tracks, r.Slices, r.Flows, r.Counters, r.Errors, r.Warnings)
	return err
}
