package coll

import (
	"fmt"
	"strings"
)

// Mask says which names of a list are enabled for each collective that NCCL's
// cost model covers: Mask[f][i] for collective f and algorithm or protocol i.
type Mask [NumCollFuncs][]bool

// MaskError says why NCCL refuses a value of NCCL_ALGO or NCCL_PROTO.
type MaskError struct {
	List    string // the whole value
	Token   string // the part at fault
	Problem string // what is wrong with it
	Hint    string // what to write instead
}

// Error gives value, place, problem and remedy.
func (e *MaskError) Error() string {
	if e.List == e.Token {
		return fmt.Sprintf("%q %s; %s", e.Token, e.Problem, e.Hint)
	}
	return fmt.Sprintf("%q: %q %s; %s", e.List, e.Token, e.Problem, e.Hint)
}

// ParseAlgorithmMask reads a value of NCCL_ALGO over the given defaults; see
// ParseMask.
func ParseAlgorithmMask(list string, def Mask) (Mask, error) {
	return ParseMask(list, ncclNames(algorithmWords[:]), def)
}

// ParseProtocolMask reads a value of NCCL_PROTO over the given defaults; see
// ParseMask.
func ParseProtocolMask(list string, def Mask) (Mask, error) {
	return ParseMask(list, ncclNames(protocolWords[:]), def)
}

// ParseMask reads NCCL's list grammar (tuning.cc:28-52 and 54-130): entries
// parted by ";", each "[collective:][^]name,name…". An entry without "^"
// enables just its names, one with "^" all but them; it covers its
// collective, or, where it names none, for all, which only the first entry
// may. Collectives that no entry mentions keep def. Case does not matter;
// empty parts are skipped as strtok does. The result shares nothing with def.
func ParseMask(list string, names []string, def Mask) (Mask, error) {
	var m Mask
	for f := range m {
		m[f] = make([]bool, len(names))
		copy(m[f], def[f])
	}
	first := !strings.HasPrefix(list, ";") // NCCL compares with the list's first byte
	for entry := range tokens(list, ";") {
		who, what, err := splitEntry(list, entry, first)
		if err != nil {
			return m, err
		}
		first = false
		row, err := parseNames(list, what, names)
		if err != nil {
			return m, err
		}
		found := false
		for f := range m {
			if who == "" || strings.EqualFold(who, funcWords[f].nccl) {
				copy(m[f], row)
				found = true
			}
		}
		if !found {
			return m, &MaskError{list, who, "is no collective of the cost model",
				"write one of " + strings.Join(ncclNames(funcWords[:NumCollFuncs]), ", ")}
		}
	}
	return m, nil
}

// splitEntry parts "collective:names"; who is empty where none is named.
func splitEntry(list, entry string, first bool) (who, what string, err error) {
	var parts []string
	for p := range tokens(entry, ":") {
		parts = append(parts, p)
	}
	switch {
	case len(parts) == 0:
		return "", "", &MaskError{list, entry, "names nothing", "write collective:name,name"}
	case len(parts) >= 2:
		return parts[0], parts[1], nil
	case !first:
		return "", "", &MaskError{list, entry, "has no collective before it, which only the first entry may",
			"write collective:" + entry}
	}
	return "", parts[0], nil
}

// parseNames reads "[^]name,name…" into one flag per name.
func parseNames(list, what string, names []string) ([]bool, error) {
	inverted := strings.HasPrefix(what, "^")
	what = strings.TrimPrefix(what, "^")
	row := make([]bool, len(names))
	for i := range row {
		row[i] = inverted
	}
	for name := range tokens(what, ",") {
		at := -1
		for i, known := range names {
			if strings.EqualFold(name, known) {
				at = i
			}
		}
		if at < 0 {
			return nil, &MaskError{list, name, "is not known", "write one of " + strings.Join(names, ", ")}
		}
		row[at] = !inverted
	}
	return row, nil
}

// tokens yields the non-empty parts of s between separators, as strtok does.
func tokens(s, sep string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(s, sep) {
			if part != "" && !yield(part) {
				return
			}
		}
	}
}

func ncclNames(table []words) []string {
	names := make([]string, len(table))
	for i, w := range table {
		names[i] = w.nccl
	}
	return names
}

// OneAlgorithmList and OneProtocolList read NCCL_ALGO and NCCL_PROTO as NCCL did before
// 2.24.3: one list for all functions, with ^ in front all but those named; names that it
// does not know are passed over (graph/tuning.cc:21 of v2.23.4).
func OneAlgorithmList(list string) []bool { return oneList(list, ncclNames(algorithmWords[:])) }

// OneProtocolList is described with OneAlgorithmList.
func OneProtocolList(list string) []bool { return oneList(list, ncclNames(protocolWords[:])) }

func oneList(list string, names []string) []bool {
	list, not := strings.CutPrefix(list, "^")
	on := make([]bool, len(names))
	for i := range on {
		on[i] = not
	}
	for word := range tokens(list, ",") {
		for i, n := range names {
			if strings.EqualFold(word, n) {
				on[i] = !not
			}
		}
	}
	return on
}
