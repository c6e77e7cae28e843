package decision

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Difference is one place where two documents part.
type Difference struct {
	Path string // of the value in the document: "graphs[0].nchannels"
	What string // "was 8, is 16"
}

// String is path and difference.
func (d Difference) String() string { return d.Path + ": " + d.What }

// MarshalText is String, for JSON.
func (d Difference) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Differences lists where two documents part.
type Differences struct {
	First []Difference // the first of them
	Count int
}

// Compare compares two documents: numbers to 1e-5 of themselves, all else exactly.
func Compare(want, got []byte) (Differences, error) {
	var d Differences
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		return d, err
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return d, err
	}
	d.compare("", w, g)
	return d, nil
}

const (
	shownDifferences = 20
	tolerance        = 1e-5
)

func (d *Differences) add(at, format string, args ...any) {
	if d.Count++; d.Count <= shownDifferences {
		d.First = append(d.First, Difference{strings.TrimPrefix(at, "."), fmt.Sprintf(format, args...)})
	}
}

func (d *Differences) compare(at string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			d.add(at, "was an object, is %s", short(got))
			return
		}
		d.compareKeys(at, w, g)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			d.add(at, "had %d elements, has %d", len(w), len(g))
			return
		}
		for i := range w {
			d.compare(fmt.Sprintf("%s[%d]", at, i), w[i], g[i])
		}
	case float64:
		g, ok := got.(float64)
		if !ok || math.Abs(w-g) > tolerance*max(math.Abs(w), math.Abs(g), 1e-9) {
			d.add(at, "was %v, is %s", w, short(got))
		}
	default:
		if want != got {
			d.add(at, "was %s, is %s", short(want), short(got))
		}
	}
}

func (d *Differences) compareKeys(at string, w, g map[string]any) {
	keys := map[string]bool{}
	for k := range w {
		keys[k] = true
	}
	for k := range g {
		keys[k] = true
	}
	sorted := make([]string, 0, len(keys))
	for k := range keys {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	for _, k := range sorted {
		_, inW := w[k]
		_, inG := g[k]
		switch {
		case !inG:
			d.add(at+"."+k, "is missing")
		case !inW:
			d.add(at+"."+k, "is new: %s", short(g[k]))
		default:
			d.compare(at+"."+k, w[k], g[k])
		}
	}
}

func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 60 {
		return string(text[:57]) + "..."
	}
	return string(text)
}
