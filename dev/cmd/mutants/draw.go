package main

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// draws yields places by the seed: each kind equally often, with -cited so many of each rule, with -given
// all. The order of a kind's places is by their keys, so that a change elsewhere leaves it as it is.
func (o *options) draws(places []*Place) iter.Seq[*Place] {
	if o.cited {
		return o.citedDraws(places)
	} else if o.given != "" {
		return slices.Values(places)
	}
	byKind := map[string][]*Place{}
	for _, p := range places {
		byKind[p.Kind] = append(byKind[p.Kind], p)
	}
	for _, of := range byKind {
		slices.SortFunc(of, func(a, b *Place) int { return o.byHash(a.Key(), b.Key()) })
	}
	kinds := []string{number, negated, shifted, connected, sign, removed}
	return func(yield func(*Place) bool) {
		r := rand.New(rand.NewPCG(o.seed, 0))
		for range len(places) * 100 {
			kind := kinds[r.IntN(len(kinds))]
			if of := byKind[kind]; len(of) > 0 {
				if byKind[kind] = of[1:]; !yield(of[0]) {
					return
				}
			}
		}
	}
}

// byHash orders texts by the seed. FNV would do but for texts that differ in their last letters alone, as
// equal changes of one function do: their hashes are neighbours, so that one drawn would bring the others.
func (o *options) byHash(a, b string) int {
	hash := func(s string) uint64 {
		h := sha256.Sum256(fmt.Appendf(nil, "%d %s", o.seed, s))
		return binary.LittleEndian.Uint64(h[:])
	}
	return cmp.Or(cmp.Compare(hash(a), hash(b)), cmp.Compare(a, b))
}

// rule names what a citation belongs to.
func (p *Place) rule() string { return p.File + " " + p.Func + " " + p.Cites }

// citedDraws yields so many places of each rule, in an order by the seed, numbers and conditions first.
func (o *options) citedDraws(places []*Place) iter.Seq[*Place] {
	rules := map[string][]*Place{}
	for _, p := range places {
		if p.Cites != "" {
			rules[p.rule()] = append(rules[p.rule()], p)
		}
	}
	names := make([]string, 0, len(rules))
	for name := range rules {
		names = append(names, name)
	}
	slices.SortFunc(names, o.byHash)
	return func(yield func(*Place) bool) {
		for nth := range o.each {
			for _, name := range names {
				of := rules[name]
				if nth == 0 {
					slices.SortFunc(of, func(a, b *Place) int { return o.byHash(a.Key(), b.Key()) })
				}
				if nth < len(of) && !yield(of[nth]) {
					return
				}
			}
		}
	}
}

//go:embed equivalent.txt
var equivalentTable string

//go:embed hardware.txt
var hardwareTable string

// same are the keys of mutants that are equal to the code, with the reason.
type same map[string]string

// reasons reads a table: a key a line, and below it, indented, the reason.
func reasons(name, table string) (same, error) {
	s := same{}
	key := ""
	n := 0
	for line := range strings.Lines(table) {
		n++
		switch text := strings.TrimSpace(line); {
		case text == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			if key != "" && s[key] == "" {
				return nil, fmt.Errorf("%s:%d: %s has no reason: write it below, indented", name, n-1, key)
			}
			key = text
		case key == "":
			return nil, fmt.Errorf("%s:%d: a reason of nothing", name, n)
		default:
			s[key] = strings.TrimSpace(s[key] + " " + text)
		}
	}
	if key != "" && s[key] == "" {
		return nil, fmt.Errorf("%s:%d: %s has no reason: write it below, indented", name, n, key)
	}
	return s, nil
}

// unknown lists keys that no place has, where all rooms are looked at.
func (s same) unknown(places []*Place, rooms []string) (bad []string) {
	if rooms != nil {
		return nil
	}
	there := map[string]bool{}
	for _, p := range places {
		there[p.Key()] = true
	}
	for key := range s {
		if !there[key] {
			bad = append(bad, key)
		}
	}
	slices.Sort(bad)
	return bad
}

func (s same) without(places []*Place) []*Place {
	return slices.DeleteFunc(places, func(p *Place) bool { return s[p.Key()] != "" })
}

// reachable are places without those of files that only hardware reaches; of these it prints how many there
// are, and why.
func reachable(w io.Writer, places []*Place, files same) ([]*Place, error) {
	count := map[string]int{}
	places = slices.DeleteFunc(places, func(p *Place) bool {
		_, out := files[p.File]
		if out {
			count[p.File]++
		}
		return out
	})
	sum := 0
	for _, name := range slices.Sorted(maps.Keys(count)) {
		sum += count[name]
		fmt.Fprintf(w, "%s: %d places are left out: %s\n", name, count[name], files[name])
	}
	if sum > 0 {
		fmt.Fprintf(w, "%d of %d places are left out, which only hardware reaches (-hardware draws them)\n",
			sum, sum+len(places))
	}
	for name := range files {
		if _, err := os.Stat(name); err != nil {
			return nil, fmt.Errorf("hardware.txt: %w", err)
		}
	}
	return places, nil
}

// show prints the survivors and the count, and with -cited the rules that they are of.
func show(w io.Writer, all []row, o *options) (survivors int) {
	tested, open := 0, 0
	for i := range all {
		r := &all[i]
		if r.Verdict == undecided {
			open++
			fmt.Fprintf(w, "%s: %s\n\t%s\n", r.Verdict, &r.Place, r.Key())
		}
		if r.Verdict == unusable || r.Verdict == undecided {
			continue
		}
		if tested++; r.Verdict == dies {
			continue
		}
		survivors++
		if o.cited {
			fmt.Fprintf(w, "%s: no test decides %s of %s\n", r.Cites, r.Func, r.File)
		}
		fmt.Fprintf(w, "%s: %s\n\t%s\n", r.Verdict, &r.Place, r.Key())
	}
	fmt.Fprintf(w, "%d of %d mutants survive\n", survivors, tested)
	if open > 0 {
		fmt.Fprintf(w, "%d more are undecided: the tests of what imports them were not asked\n", open)
	}
	if o.cited {
		showHeld(w, all)
	}
	return survivors
}

// showHeld prints what holds rules, of each the best that any of its mutants has, and the rules without a
// case.
func showHeld(w io.Writer, all []row) {
	ranks := []string{byStory, byPackage, byImporter, byNone}
	best := map[string]int{}
	mutants, rules := make([]int, len(ranks)), make([]int, len(ranks))
	for i := range all {
		r := &all[i]
		if r.Verdict == unusable || r.Verdict == undecided {
			continue
		}
		held := slices.Index(ranks, cmp.Or(r.Held, byNone))
		mutants[held]++
		if before, ok := best[r.rule()]; !ok || held < before {
			best[r.rule()] = held
		}
	}
	for _, name := range slices.Sorted(maps.Keys(best)) {
		if rules[best[name]]++; ranks[best[name]] == byNone {
			fmt.Fprintf(w, "no case: %s\n", name)
		}
	}
	for i, rank := range ranks {
		fmt.Fprintf(w, "%s: %d rules, %d mutants\n", rank, rules[i], mutants[i])
	}
}
