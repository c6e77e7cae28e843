package overlap

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var (
	arrows = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,4}(?:<?>\d{1,4})+$`) })
	arrow  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(<?>)(\d+)`) })
)

// patterns lists the accepted patterns, for errors.
const patterns = "write 0>1, 0<>1, 0>1>2, 0>all, all>0, ring, ring both ways, shift 2 or all pairs"

// pattern returns the messages {from, to} of a round, given its words: "one way 0>1 2>3", "both ways 0<>1",
// "pipeline 0>1>2>3 at once", "fan out 0>all", "fan in all>0", "ring", "ring both ways", "shift 2", "all
// pairs". It returns an error for other words.
func pattern(words []string, world int32) (out [][2]int32, err error) {
	text := strings.Join(words, " ")
	ring := func(by int32) {
		for i := range world {
			out = append(out, [2]int32{i, (i + by) % world})
		}
	}
	switch {
	case text == "ring":
		ring(1)
	case text == "ring both ways" || text == "both-way ring":
		ring(1)
		ring(world - 1)
	case text == "all pairs":
		for by := int32(1); by < world; by++ {
			ring(by)
		}
	case len(words) == 2 && words[0] == "shift":
		by, err := strconv.ParseInt(words[1], 10, 32)
		if err != nil || by < 1 || int32(by) >= world {
			return nil, fault("shift %s: from 1 to %d", words[1], world-1)
		}
		ring(int32(by))
	default:
		out, err = drawn(words, world)
	}
	if err == nil && len(out) == 0 {
		err = fault("%q is no pattern; %s", text, patterns)
	}
	return out, err
}

// said lists the words of a pattern that only repeat its arrows for readers.
const said = " one way both ways pairs pipeline at once fan out in "

// drawn parses patterns of arrows.
func drawn(words []string, world int32) (out [][2]int32, err error) {
	rank := func(s string) (int32, error) {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || int32(n) >= world {
			return 0, fault("%s: ranks are from 0 to %d", s, world-1)
		}
		return int32(n), nil
	}
	for _, w := range words {
		from, after, _ := strings.Cut(w, ">")
		switch {
		case strings.Contains(said, " "+w+" "):
		case arrows().MatchString(w):
			end := strings.IndexAny(w, "<>")
			at, err := rank(w[:end])
			if err != nil {
				return nil, err
			}
			for _, m := range arrow().FindAllStringSubmatch(w[end:], -1) {
				to, err := rank(m[2])
				if err != nil {
					return nil, err
				}
				if out = append(out, [2]int32{at, to}); m[1] == "<>" {
					out = append(out, [2]int32{to, at})
				}
				at = to
			}
		case after == "all" || from == "all":
			one := from
			if from == "all" {
				one = after
			}
			center, err := rank(one)
			if err != nil {
				return nil, err
			}
			for i := range world {
				switch {
				case i == center:
				case from == "all":
					out = append(out, [2]int32{i, center})
				default:
					out = append(out, [2]int32{center, i})
				}
			}
		default:
			return nil, fault("%q is not known in a pattern; %s", w, patterns)
		}
	}
	return out, nil
}
