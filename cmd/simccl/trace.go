package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/validate"
	"github.com/spf13/cobra"
)

func newTrace(a *app) *cobra.Command {
	check := &cobra.Command{Use: "validate FILE…", Short: "Check that viewers can show a trace and that it is consistent",
		Long: `validate checks Chrome traces (.json, .json.gz): events nest, arrows join slices
and go forward in time, counters end at 0. On traces of other programs, what
only ours promise is a warning. Exit status 7 if there is an error, 8 if a file
is no trace.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("simccl trace validate: FILE missing")
			}
			var errs []error
			for _, f := range args {
				errs = append(errs, a.validate(f))
			}
			return worst(errs)
		}}
	return group("trace", "Check, compare and join traces", check)
}

// worst returns all errors, with the exit status of the first.
func worst(errs []error) error {
	joined := errors.Join(errs...)
	for _, err := range errs {
		if err != nil {
			return &statusError{code: status(err), err: joined}
		}
	}
	return nil
}

func (a *app) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	f, err := os.Open(name)
	return f, input(err)
}

type validateDoc struct {
	File     string   `json:"file"`
	Schema   string   `json:"schema,omitempty"`
	Events   int      `json:"events"`
	Tracks   int      `json:"tracks"`
	Slices   int      `json:"slices"`
	Arrows   int      `json:"arrows"`
	Counters int      `json:"counters"`
	Errors   int      `json:"errors"`
	Warnings int      `json:"warnings"`
	Problems []string `json:"problems"`
}

func (a *app) validate(name string) error {
	f, err := a.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	rep, err := validate.Check(f)
	var syntax *chrome.SyntaxError
	if errors.As(err, &syntax) {
		return input(fmt.Errorf("%s:%w", name, err))
	} else if err != nil {
		return input(fmt.Errorf("%s: %w", name, err))
	}
	doc := validateDoc{name, rep.Info.Schema, rep.Info.Events, rep.Tracks, rep.Slices, rep.Flows, rep.Counters, rep.Errors, rep.Warnings, []string{}}
	for _, p := range rep.Problems {
		doc.Problems = append(doc.Problems, p.String())
	}
	if a.json {
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(doc); err != nil {
			return err
		}
	} else {
		for _, p := range doc.Problems {
			fmt.Fprintf(a.out, "%s:%s\n", name, p)
		}
		fmt.Fprintf(a.out, "%s: %d events on %d tracks: %d slices, %d arrows, %d counter values; %d errors, %d warnings\n",
			name, doc.Events, doc.Tracks, doc.Slices, doc.Arrows, doc.Counters, doc.Errors, doc.Warnings)
	}
	if rep.Errors > 0 {
		return &statusError{code: exitCheck, quiet: true, err: fmt.Errorf("%s: %d errors", name, rep.Errors)}
	}
	return nil
}
