package root

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// identifyEntry is the JSON output for one file.
type identifyEntry struct {
	File     string   `json:"file"`
	Kind     string   `json:"kind"`
	Commands []string `json:"commands"`
	// Also are further kinds that the file has, such as a table within a log.
	Also []string `json:"also,omitempty"`
	// Line and Column are the position at which the kind was recognised, counted from 1.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Inside lists the compression that was removed, outermost first.
	Inside []string `json:"inside,omitempty"`
	Note   string   `json:"note,omitempty"`
}

// maxFiles is the largest number of files in folders that are examined.
const maxFiles = 1000

// IdentifyOptions are the flags and arguments of identify.
type IdentifyOptions struct {
	Names []string // files, folders, - for standard input
}

// Identify returns `simccl identify`.
func Identify(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "identify FILE|DIR|-...",
		Short: "Say what files are, and which commands take them",
		Long: `identify says what each file is by its content, whatever its name, the prefixes of
launchers in front of its lines, the report that it lies in or its compression, and
which commands take it. All commands recognise files in this way.

The first 64 MiB of a file are looked at. Of a folder each file is named, up to 1000,
without links; - is standard input; pipes and devices are not opened. Exit status 7
where a file is of no kind that simccl knows, 8 where one cannot be read.`,
		Example: "  simccl identify dgx.xml nccl.log.gz measured.txt\n  simccl identify net.json --json\n" +
			"  gunzip -c nccl.log.gz | simccl identify -",
		RunE: cli.RunOf(a, func(args []string) cli.Runner { return &IdentifyOptions{Names: args} })}
}

// Run prints an entry for each file; files that cannot be read are reported in the error at the end.
func (o *IdentifyOptions) Run(ctx context.Context, a *cli.App) error {
	if len(o.Names) == 0 {
		return fail.Usage("identify: name at least one file, or - for standard input")
	}
	entries := []identifyEntry{}
	var unread error
	for _, name := range o.Names {
		found, err := of(a, name)
		if entries = append(entries, found...); err != nil {
			unread = errors.Join(unread, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	err := show(a, entries)
	unknown := 0
	for _, e := range entries {
		if e.Kind == inputs.Unknown.String() {
			unknown++
		}
	}
	switch {
	case err != nil:
		return err
	case unread != nil:
		return fail.Input(unread)
	case unknown > 0:
		return fail.Check("%d of %d files are of no kind that simccl knows", unknown, len(entries))
	}
	return nil
}

// of returns the entries of an argument; a folder also has entries for its files.
func of(a *cli.App, name string) ([]identifyEntry, error) {
	if name == "-" {
		data, err := head(a, func() (fs.File, error) { return os.Stdin, nil }, "standard input")
		return []identifyEntry{entry(name, data)}, err
	}
	info, err := os.Stat(a.Path(name))
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return folder(a, name)
	case !info.Mode().IsRegular():
		return []identifyEntry{{File: name, Kind: inputs.Unknown.String(), Commands: []string{},
			Note: special(info.Mode()) + ", not opened; redirect it and write -"}}, nil
	}
	data, err := head(a, func() (fs.File, error) { return os.Open(a.Path(name)) }, name)
	if err != nil {
		return nil, err
	}
	return []identifyEntry{entry(name, data)}, nil
}

// special names the type of a file that is no regular file.
func special(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// head reads the beginning of a file. It ends when the command is interrupted.
func head(a *cli.App, open func() (fs.File, error), name string) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		f, err := open()
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer f.Close()
		data, err := bounded.Read(io.LimitReader(f, inputs.Look), name, inputs.Look)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-a.Context().Done():
		return nil, a.Context().Err()
	}
}

// entry recognises a content and returns its Entry.
func entry(name string, data []byte) identifyEntry {
	v := inputs.Of(data)
	e := identifyEntry{File: name, Kind: v.Kind().String(), Commands: v.Commands(), Inside: v.Wrapped,
		Note: v.Note}
	for i, f := range v.Found {
		if i == 0 {
			e.Line, e.Column, e.Note = f.Line, f.Col, f.Kind.Hint()
			continue
		}
		e.Also = append(e.Also, f.Kind.String())
	}
	return e
}

// folder returns the entries of a folder and of the files below it.
func folder(a *cli.App, name string) ([]identifyEntry, error) {
	out := []identifyEntry{{File: name, Kind: "folder", Commands: []string{}}}
	err := filepath.WalkDir(a.Path(name), func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case a.Context().Err() != nil:
			return a.Context().Err()
		case !d.Type().IsRegular():
			return nil
		case len(out) > maxFiles:
			a.Warn("%s: more than %d files; the others are left out", name, maxFiles)
			return filepath.SkipAll
		}
		rel, err := filepath.Rel(a.Path(name), at)
		if err != nil {
			return err
		}
		found, err := of(a, filepath.Join(name, rel))
		for _, e := range found {
			out[0].Commands = merge(out[0].Commands, e.Commands)
		}
		out = append(out, found...)
		return err
	})
	return out, err
}

// takeFolders are the commands that take the folder of files that they take.
var takeFolders = []string{"replay", "workload show", "workload lint", "workload convert", "workload slice",
	"workload scale", "advise",
	"check", "sweep merge", "sweep show", "sweep status"}

// merge appends the commands that accept a folder.
func merge(all, more []string) []string {
	for _, c := range more {
		c = strings.TrimSuffix(c, " (the folder)")
		if slices.Contains(takeFolders, c) && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// most is the largest number of commands in a row of the table.
const most = 3

func show(a *cli.App, entries []identifyEntry) error {
	if a.JSON {
		return a.PrintJSON(entries)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tKIND\tTAKEN BY")
	for _, e := range entries {
		taken := strings.Join(e.Commands[:min(len(e.Commands), most)], ", ")
		if n := len(e.Commands) - most; n > 0 {
			taken += fmt.Sprintf(" and %d more (--json)", n)
		}
		taken = cmp.Or(taken, "-")
		kind := strings.Join(append([]string{e.Kind}, e.Also...), " + ")
		if e.Note != "" {
			taken += "; " + e.Note
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.File, kind, taken)
	}
	return w.Flush()
}
