// Package flags declares the flags of commands in tables: one table per struct, one row per flag and member
// that it sets. The row determines the registration of the flag, its group in help, and its name in errors
// about the member.
//
// What it must not know: what a flag means.
package flags

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Value is the kinds of values that a flag can set. Each use of a []string flag appends one value; []int and
// []float64 are one list with commas.
type Value interface {
	bool | int | int64 | uint32 | uint64 | float64 | string | []string | []int | []float64 | time.Duration
}

// Row declares one flag.
type Row struct {
	name     string
	members  []string
	register func(*pflag.FlagSet)
}

// Of declares the flag --name with the short form -letter (empty: none), which sets *to; def is its default.
// A word of the usage in backquotes names the value. members are the names by which errors refer to the flag:
// a member of a scenario.Spec by its JSON path, "workload.root", or a member of a request by its Go name,
// "Root" (package fail).
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
		case *[]int:
			f.IntSliceVarP(p, name, letter, any(def).([]int), usage)
		case *[]float64:
			f.Float64SliceVarP(p, name, letter, any(def).([]float64), usage)
		case *time.Duration:
			f.DurationVarP(p, name, letter, any(def).(time.Duration), usage)
		}
	}}
}

// Group is a group of flags about one subject.
type Group struct {
	Title string // in help; empty: the command's own, "Flags"
	Rows  []Row
}

// In returns the rows as a group with a title; "" is the command's own group.
func In(title string, rows ...Row) Group { return Group{title, rows} }

// Keys of the annotations of a pflag.Flag.
const (
	group   = "simccl_group"
	members = "simccl_members"
	used    = "simccl_used"
)

// Register declares the flags of a table.
func Register(f *pflag.FlagSet, table ...Group) {
	for _, g := range table {
		for _, r := range g.Rows {
			r.register(f)
			f.Lookup(r.name).Annotations = map[string][]string{members: r.members, group: {g.Title}}
		}
	}
}

// Titles of groups that several commands have.
const (
	Machine = "Machine"
	Network = "Network between nodes"
	Sizes   = "Sizes and types"
	Model   = "Model"
	Output  = "Output"
)

// many is the number of flags up to which help shows no groups.
const many = 15

// Section is a group of flags as help shows it.
type Section struct {
	Title string
	Flags *pflag.FlagSet
}

// Titles of the sections of flags that are in no group: the command's own, and those that all
// commands have.
const (
	own    = "Flags"
	global = "Global Flags"
)

// Sections returns the flags of a command by group, in the order of their declaration; a command with few
// flags has one group. Flags of all commands are the last.
func Sections(c *cobra.Command) []Section {
	c.InitDefaultHelpFlag()
	local, n := c.LocalFlags(), 0
	local.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			n++
		}
	})
	if n <= many {
		return []Section{{own, local}, {global, c.InheritedFlags()}}
	}
	byTitle := map[string]*pflag.FlagSet{}
	titles := []string{own}
	add := func(title string, f *pflag.Flag) {
		set := byTitle[title]
		if set == nil {
			set = pflag.NewFlagSet(title, pflag.ContinueOnError)
			set.SortFlags = false
			if byTitle[title] = set; title != own {
				titles = append(titles, title)
			}
		}
		set.AddFlag(f)
	}
	sorted := c.Flags().SortFlags
	c.Flags().SortFlags = false
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if local.Lookup(f.Name) != nil && f.Name != "help" {
			add(cmp.Or(strings.Join(f.Annotations[group], ""), own), f)
		}
	})
	c.Flags().SortFlags = sorted
	add(global, local.Lookup("help"))
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) { add(global, f) })
	var out []Section
	for _, t := range titles {
		if set := byTitle[t]; set != nil {
			out = append(out, Section{t, set})
		}
	}
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

// MostUsed returns the flags listed as most used, each with the first clause of its usage.
func MostUsed(c *cobra.Command) *pflag.FlagSet {
	out := pflag.NewFlagSet(used, pflag.ContinueOnError)
	out.SortFlags = false
	for _, name := range strings.Fields(c.Annotations[used]) {
		if f := c.Flags().Lookup(name); f != nil {
			short := *f
			if i := strings.IndexAny(f.Usage, ";(:"); i > 0 {
				short.Usage = strings.TrimRight(f.Usage[:i], " ")
			}
			out.AddFlag(&short)
		}
	}
	return out
}
