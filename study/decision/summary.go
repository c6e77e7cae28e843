package decision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/units"
)

const (
	formKey     = "form" // the key that distinguishes a Summary from a whole document
	summaryForm = 2
)

// Summary is a short form of a document: the choices by ranges of sizes, and a hash of each section. It
// states NCCL's choices exactly; of other sections it shows whether they are equal, with floats to six digits
// (round).
type Summary struct {
	Form    int                `json:"form"`    // of this document: 2
	Version string             `json:"version"` // whose rules decided: "NCCL 2.28.9"
	Choices map[string][]Range `json:"choices"` // by operation, in the order of sizes
	Hashes  map[string]string  `json:"hashes"`  // by section; a section that is a number is there itself
}

// Range is neighbouring sizes (powers of two) with one choice.
type Range struct {
	From      units.Bytes `json:"from"`
	To        units.Bytes `json:"to"`
	Algorithm string      `json:"algorithm,omitempty"`
	Protocol  string      `json:"protocol,omitempty"`
	Channels  int         `json:"channels,omitempty"` // 0 where the choice has no split
	Error     int         `json:"error,omitempty"`    // NCCL's code of a refused operation
}

// Summarize returns the short form of a whole document (Encode).
func Summarize(whole []byte) (*Summary, error) {
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(whole, &sections); err != nil {
		return nil, err
	}
	s := &Summary{Form: summaryForm, Choices: map[string][]Range{}, Hashes: map[string]string{}}
	for _, name := range unionKeys(sections, nil) {
		sum, err := hashOf(sections[name])
		if err != nil {
			return nil, err
		}
		s.Hashes[name] = sum
	}
	if text, ok := sections["reference"]; ok {
		delete(s.Hashes, "reference")
		if err := json.Unmarshal(text, &s.Version); err != nil {
			return nil, err
		}
	}
	var list []Choice
	if text, ok := sections["selection"]; ok {
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
	}
	for _, c := range list {
		s.extend(c)
	}
	return s, nil
}

// extend adds a choice to the last range of its operation, or begins one.
func (s *Summary) extend(c Choice) {
	next := Range{From: c.Size, To: c.Size, Error: c.Error}
	if c.Chosen != nil {
		next.Algorithm, next.Protocol, next.Channels = c.Algo, c.Proto, c.NChannels
	}
	ranges := s.Choices[c.Func]
	if n := len(ranges); n > 0 {
		last := ranges[n-1]
		same := last
		same.From, same.To = next.From, next.To
		if same == next && last.To*2 == next.From {
			ranges[n-1].To = next.To
			return
		}
	}
	s.Choices[c.Func] = append(ranges, next)
}

const hashPrefix = "sha256:"

// hashOf returns the hash of a JSON value, independent of blanks and the order of keys: 16 hexadecimal digits
// of the hash of its JSON without blanks, keys sorted, floats rounded. The hash of a number is the number.
func hashOf(text []byte) (string, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // integers are compared as they are
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	if number, ok := v.(json.Number); ok {
		return number.String(), nil
	}
	canonical, err := json.Marshal(round(v, false))
	sum := sha256.Sum256(canonical)
	return hashPrefix + hex.EncodeToString(sum[:8]), err
}

// floats are the keys of a document below which every number is one, though its
// text may have no fraction (a time of 8388608 microseconds).
var floats = []string{"timeUs", "times", "latencies", "bandwidths"}

// round rounds floats to six significant digits, so that the last bits, which depend on whether the compiler
// fuses multiplication and addition, do not change a hash. Integers, such as counts and ids, are unchanged.
// all: v is below a key whose numbers are all floats.
func round(v any, all bool) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range unionKeys(v, nil) {
			v[key] = round(v[key], all || slices.Contains(floats, key))
		}
	case []any:
		for i := range v {
			v[i] = round(v[i], all)
		}
	case json.Number:
		if text := v.String(); all || strings.ContainsAny(text, ".eE") {
			if f, err := v.Float64(); err == nil {
				return json.Number(strconv.FormatFloat(f, 'g', 6, 64))
			}
		}
	}
	return v
}

// Encode prints the summary as JSON, a line a range and a line a hash.
func (s *Summary) Encode() ([]byte, error) {
	var b bytes.Buffer
	version, err := json.Marshal(s.Version)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "{\n\"form\": %d,\n\"version\": %s,\n\"choices\": {", s.Form, version)
	order := words(funcs)
	names := unionKeys(s.Choices, nil)
	slices.SortStableFunc(names, func(x, y string) int {
		return slices.Index(order, x) - slices.Index(order, y)
	})
	for i, fn := range names {
		fmt.Fprintf(&b, "%s\n %q: [", comma(i), fn)
		for j, r := range s.Choices[fn] {
			line, err := json.Marshal(r)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "%s\n  %s", comma(j), line)
		}
		b.WriteString("\n ]")
	}
	b.WriteString("\n},\n\"hashes\": {")
	for i, name := range sectionKeys(s.Hashes, nil) {
		fmt.Fprintf(&b, "%s\n %q: %q", comma(i), name, s.Hashes[name])
	}
	b.WriteString("\n}\n}\n")
	return b.Bytes(), nil
}

func comma(i int) string {
	if i > 0 {
		return ","
	}
	return ""
}

// parseSummary parses a short form and checks its ranges.
func parseSummary(text []byte) (*Summary, error) {
	var s Summary
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if s.Form != summaryForm {
		return nil, fmt.Errorf("form %d: this simccl reads form %d; write it anew with --update", s.Form,
			summaryForm)
	}
	for _, fn := range unionKeys(s.Choices, nil) {
		before := units.Bytes(0)
		for _, r := range s.Choices[fn] {
			if r.From <= before || r.To < r.From {
				return nil, fmt.Errorf("choices of %s: %d to %d bytes: sizes are positive and ascend; "+
					"write them anew with --update", printable(fn), r.From, r.To)
			}
			before = r.To
		}
	}
	return &s, nil
}

// table expands the ranges to a choice for every power of two.
func (s *Summary) table() map[choiceKey]choice {
	table := map[choiceKey]choice{}
	for _, fn := range unionKeys(s.Choices, nil) {
		for _, r := range s.Choices[fn] {
			c := choice{"nChannels": float64(r.Channels)}
			if r.Algorithm != "" {
				c["algo"], c["proto"] = r.Algorithm, r.Protocol
			} else {
				c["error"] = float64(r.Error)
			}
			for size := r.From; size <= r.To && size > 0; size *= 2 {
				table[choiceKey{fn, size}] = c
			}
		}
	}
	return table
}

// summaries compares short forms. The hash of section selection is compared only if the choices are equal, as
// it depends on them.
func (d *Differences) summaries(want, got *Summary) {
	d.choices(want.table(), got.table())
	d.shown = 0
	if want.Version != got.Version {
		d.add("version", printable(want.Version), printable(got.Version))
	}
	chosen := d.Count
	if want.Version != got.Version {
		chosen--
	}
	for _, name := range sectionKeys(want.Hashes, got.Hashes) {
		was, is := want.Hashes[name], got.Hashes[name]
		if was == is || name == "selection" && chosen > 0 {
			continue
		}
		d.shown = 0 // each section is named
		if strings.HasPrefix(was+is, hashPrefix) {
			d.Hashed = true
			d.add("section "+printable(name), hashText(was), hashText(is))
			continue
		}
		d.add(quantity(name), hashText(was), hashText(is))
	}
}

func hashText(sum string) string {
	if sum == "" {
		return "none"
	}
	return printable(sum)
}
