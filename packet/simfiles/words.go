package simfiles

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/termtext"
)

// word is a whitespace-separated word with its position.
type word struct {
	Text      string
	Line, Col int
}

// wordList is a file split into words, read one after the other.
type wordList struct {
	Name  string
	words []word
	at    int
	End   word // position of the file's end
}

// splitWords splits a file at white space; every word keeps its position.
func splitWords(name string, data []byte) *wordList {
	t := &wordList{Name: name}
	for i, line := range strings.Split(string(data), "\n") {
		t.End = word{Line: i + 1, Col: len(line) + 1}
		for from := 0; from < len(line); {
			k := strings.IndexAny(line[from:], " \t\r\v\f")
			if k == 0 {
				from++
				continue
			}
			if k < 0 {
				k = len(line) - from
			}
			t.words = append(t.words, word{line[from : from+k], i + 1, from + 1})
			from += k
		}
	}
	return t
}

func (t *wordList) Done() bool { return t.at >= len(t.words) }

// Peek returns the next word, or End.
func (t *wordList) Peek() word {
	if t.Done() {
		return t.End
	}
	return t.words[t.at]
}

// Fail returns an error at a word: file:line:column and the problem.
func (t *wordList) Fail(w word, format string, args ...any) error {
	return fail.At(t.Name, w.Line, w.Col, fmt.Sprintf(format, args...), "")
}

// Take removes and returns the next word. Error: the file ends; what names the expected word.
func (t *wordList) Take(what string) (word, error) {
	if t.Done() {
		return t.End, t.Fail(t.End, "the file ends where %s is expected", what)
	}
	t.at++
	return t.words[t.at-1], nil
}

// Integer takes a whole number from low to high. Error: another word, with its position.
func (t *wordList) Integer(what string, low, high int64) (int64, error) {
	w, err := t.Take(what)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(w.Text, 10, 64)
	if err != nil || v < low || v > high {
		return 0, t.Fail(w, "%s: %s: write a whole number from %d to %d", what, termtext.Quote(w.Text, 40),
			low, high)
	}
	return v, nil
}

// Number takes a decimal number from low to high. Error: another word, with its position.
func (t *wordList) Number(what string, low, high float64) (float64, error) {
	w, err := t.Take(what)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(w.Text, 64)
	if err != nil || !(v >= low && v <= high) {
		return 0, t.Fail(w, "%s: %s: write a number from %g to %g", what, termtext.Quote(w.Text, 40), low,
			high)
	}
	return v, nil
}
