// Package shellwords cuts lines of options into words.
package shellwords

import (
	"fmt"
	"strings"
	"unicode"
)

// QuoteError reports a line with a quote that is not closed.
type QuoteError struct {
	Line  string // without the blanks around it
	Quote rune
}

func (e *QuoteError) Error() string {
	return fmt.Sprintf("%s: a quote %c is not closed", e.Line, e.Quote)
}

// Split cuts a line into words as a shell does: at blanks, except within quotes,
// which it takes off. It knows no escapes and no variables. Its error is a
// *QuoteError.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == 0 && unicode.IsSpace(r):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, &QuoteError{strings.TrimSpace(line), quote}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// SplitFile cuts a file of options; # begins a comment. A file without any word has
// an empty list, not nil.
func SplitFile(text string) ([]string, error) {
	words := []string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		more, err := Split(line)
		if err != nil {
			return nil, err
		}
		words = append(words, more...)
	}
	return words, nil
}
