// Package flags declares the flags of commands: a table for each struct, in which a row is a
// flag beside the member that it sets. From the row follow the registration of the flag, its
// group in help, and its name in an error about the member.
//
// What it must not know: what a flag means.
package flags

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Value is what a flag can set. Of []string each use of the flag appends one; []float64 is
// one list with commas.
type Value interface {
	bool | int | int64 | uint32 | uint64 | float64 | string | []string | []float64 | time.Duration
}

// Row declares one flag.
type Row struct {
	name     string
	members  []string
	register func(*pflag.FlagSet)
}

// Of is the flag --name, with a letter -letter (empty: none), that sets *to, which is def
// without it. A word of the usage in backquotes stands for the value. The members are what
// errors name where the flag is meant: a member of a scenario.Spec by its path in JSON,
// "workload.root", or one of a request by its name in Go, "Root" (package fail).
func Of[T Value](to *T, name, letter string, def T, usage string, members ...string) Row {
	return Row{name, members, func(f *pflag.FlagSet) {
		switch p := any(to).(type) {
		case *bool:
			f.BoolVarP(p, name, letter, any(def).(bool), usage)
		case *int:
			f.IntVarP(p, name, letter, any(def).(int), usage)
		case *int64:
			f.Int64VarP(p, name, letter, any(def).(int64), usage)
		case *uint32:
			f.Uint32VarP(p, name, letter, any(def).(uint32), usage)
		case *uint64:
			f.Uint64VarP(p, name, letter, any(def).(uint64), usage)
		case *float64:
			f.Float64VarP(p, name, letter, any(def).(float64), usage)
		case *string:
			f.StringVarP(p, name, letter, any(def).(string), usage)
		case *[]string:
			f.StringArrayVarP(p, name, letter, any(def).([]string), usage)
		case *[]float64:
			f.Float64SliceVarP(p, name, letter, any(def).([]float64), usage)
		case *time.Duration:
			f.DurationVarP(p, name, letter, any(def).(time.Duration), usage)
		}
	}}
}

// Group is flags about one subject.
type Group struct {
	Title string // in help; empty: the command's own, "Flags"
	Rows  []Row
}

// In is the group of a title.
func In(title string, rows ...Row) Group { return Group{title, rows} }

// Keys of what a pflag.Flag is annotated with.
const (
	group   = "simccl_group"
	members = "simccl_members"
	used    = "simccl_used"
)

// Register declares the flags of a struct on a command.
func Register(c *cobra.Command, table ...Group) {
	f := c.Flags()
	for _, g := range table {
		for _, r := range g.Rows {
			r.register(f)
			flag := f.Lookup(r.name)
			flag.Annotations = map[string][]string{members: r.members, group: {g.Title}}
		}
	}
}

// Titles of groups that several commands have.
const (
	Machine  = "Machine"
	Network  = "Network between nodes"
	Sizes    = "Sizes and types"
	Measured = "Measurement"
	Model    = "Model"
	Output   = "Output"
)

// many is how many flags a command has at most without groups in its help.
const many = 15

// Section is a group of flags as help shows it.
type Section struct {
	Title string
	Flags *pflag.FlagSet
}

// Sections are the flags of a command in groups, in the order in which they were declared;
// of a command with few they are one group. Flags of a parent are left out.
func Sections(c *cobra.Command) []Section {
	own := c.LocalFlags()
	n := 0
	own.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	if n-1 <= many { // without --help
		return []Section{{"Flags", own}}
	}
	var out []Section
	at := map[string]int{}
	sorted := c.Flags().SortFlags
	c.Flags().SortFlags = false
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if own.Lookup(f.Name) == nil {
			return
		}
		title := "Flags"
		if g := f.Annotations[group]; len(g) > 0 && g[0] != "" {
			title = g[0]
		}
		i, known := at[title]
		if !known {
			i = len(out)
			at[title] = i
			set := pflag.NewFlagSet(title, pflag.ContinueOnError)
			set.SortFlags = false
			out = append(out, Section{title, set})
		}
		out[i].Flags.AddFlag(f)
	})
	c.Flags().SortFlags = sorted
	return out
}

// Most names the flags of a command that most of its users need, for the first screen of
// its help.
func Most(c *cobra.Command, names ...string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[used] = strings.Join(names, " ")
}

// MostUsed are those flags, each with the first clause of its usage alone.
func MostUsed(c *cobra.Command) *pflag.FlagSet {
	out := pflag.NewFlagSet(used, pflag.ContinueOnError)
	out.SortFlags = false
	for _, name := range strings.Fields(c.Annotations[used]) {
		if f := c.Flags().Lookup(name); f != nil {
			short := *f
			short.DefValue = ""
			if i := strings.IndexAny(f.Usage, ";(:"); i > 0 {
				short.Usage = strings.TrimRight(f.Usage[:i], " ")
			}
			out.AddFlag(&short)
		}
	}
	return out
}
