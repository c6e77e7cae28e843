package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/units"
)

// choiceKey is an operation and its size.
type choiceKey struct {
	fn   string
	size units.Bytes
}

// choice is a decision for one operation and size, as fields of Choice.
type choice map[string]any

// choicesOf converts the section selection to a table; ok is false if it has another form. A document of one
// rank has no such section and an empty table.
func choicesOf(section any) (table map[choiceKey]choice, ok bool) {
	list, ok := section.([]any)
	if !ok {
		return nil, section == nil
	}
	table = make(map[choiceKey]choice, len(list))
	for _, v := range list {
		c, _ := v.(map[string]any)
		fn, okFn := c["func"].(string)
		size, okSize := c["size"].(float64)
		if !okFn || !okSize {
			return nil, false
		}
		table[choiceKey{fn, units.Bytes(size)}] = c
	}
	return table, true
}

// String returns algorithm and protocol, or the reason why there are none.
func (c choice) String() string {
	switch {
	case c == nil:
		return "none"
	case c["algo"] == nil:
		return "refused with error " + field{c["error"], true}.String()
	}
	return field{c["algo"], true}.String() + " " + field{c["proto"], true}.String()
}

// choices adds the differences of two tables of choices: first other algorithms
// and protocols, then other channels, then other details. Neighbouring sizes with
// the same change are one.
func (d *Differences) choices(want, got map[choiceKey]choice) {
	var levels [numLevels][]Difference
	var last change
	var from, to units.Bytes
	flush := func() {
		if last.kind != "" {
			levels[last.level] = append(levels[last.level], Difference{last.fn + " " + sizes(from, to) +
				last.what, last.was, last.is})
		}
	}
	for _, k := range unionChoices(want, got) {
		c := changeOf(k, want[k], got[k])
		if c.kind == "" || c.kind != last.kind || c.fn != last.fn {
			flush()
			last, from = c, k.size
		}
		to = k.size
	}
	flush()
	for _, list := range levels {
		d.shown = 0
		for _, c := range list {
			d.add(c.What, c.Was, c.Is)
		}
	}
}

// unionChoices lists the keys of either table: the functions in NCCL's order, each by size.
func unionChoices(want, got map[choiceKey]choice) []choiceKey {
	both := map[choiceKey]choice{}
	maps.Copy(both, want)
	maps.Copy(both, got)
	order := words(funcs)
	return slices.SortedFunc(maps.Keys(both), func(a, b choiceKey) int {
		if a.fn != b.fn {
			if i, j := slices.Index(order, a.fn), slices.Index(order, b.fn); i != j {
				return i - j
			}
			return strings.Compare(a.fn, b.fn)
		}
		return int(max(-1, min(1, a.size-b.size)))
	})
}

// level ranks how much a choice differs.
type level int

const (
	otherAlgorithm level = iota // or protocol
	otherChannels
	otherDetails
	numLevels
)

// change is one difference of a choice from the stored one; changes of equal kind share a line of output.
type change struct {
	level    level
	fn, kind string // kind is empty where nothing differs
	what     string // the quantity, "" for the choice itself
	was, is  string
}

func changeOf(k choiceKey, w, g choice) change {
	fn := printable(k.fn)
	if was, is := w.String(), g.String(); was != is {
		return change{otherAlgorithm, fn, was + " → " + is, "", was, is}
	}
	if !equal(w["nChannels"], g["nChannels"]) {
		_, inW := w["nChannels"]
		_, inG := g["nChannels"]
		was, is := field{w["nChannels"], inW}.String(), field{g["nChannels"], inG}.String()
		what := " " + w.String() + " channels"
		return change{otherChannels, fn, what + was + " → " + is, what, was, is}
	}
	var parts []string
	first := change{level: otherDetails, fn: fn}
	walk(nil, field{map[string]any(w), true}, field{map[string]any(g), true}, func(at []any, was, is string) {
		name := choiceField(at)
		if first.kind == "" {
			first.kind, first.what, first.was, first.is = "fields", name, was, is
		}
		if part := choicePart(at); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	})
	if first.kind == "" {
		return change{}
	}
	first.kind = w.String() + ": " + strings.Join(parts, ", ")
	first.what = fmt.Sprintf(" %s %s (at %s %s)", w, strings.Join(parts, ", "), SizeText(k.size), first.what)
	return first
}

// choicePart returns the part of the decision to which a field belongs.
func choicePart(at []any) string {
	switch key, _ := at[0].(string); key {
	case "timeUs", "times":
		return "predicted time"
	case "lo", "mid", "hi", "striped":
		return "chunking"
	case "nWarps", "threads":
		return "threads"
	case "channelLo", "channelHi", "nMaxChannels":
		return "channels"
	default:
		return quantity(key)
	}
}

func choiceField(at []any) string {
	switch at[0] {
	case "timeUs":
		return "of the choice, us"
	case "times":
		if pair, ok := cellName(at[1:]); ok {
			return "of " + pair + ", us"
		}
	}
	return strings.TrimPrefix(plain(at), " ")
}

// sizes returns a range of sizes: "8 B to 1 MiB".
func sizes(from, to units.Bytes) string {
	if from == to {
		return SizeText(from)
	}
	return SizeText(from) + " to " + SizeText(to)
}

// SizeText is bytes in the largest binary unit that divides them.
func SizeText(n units.Bytes) string {
	for i, unit := range [...]string{"GiB", "MiB", "KiB"} {
		if one := units.Bytes(1) << (30 - 10*i); n >= one && n%one == 0 {
			return fmt.Sprintf("%d %s", n/one, unit)
		}
	}
	return fmt.Sprintf("%d B", n)
}
