package explain

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:embed words/words.md
var wordsPage string

//go:embed words/walk.md
var walkPage string

// Word is one entry.
type Word struct {
	Name    string   `json:"word"`
	Aliases []string `json:"aliases,omitempty"`
	Text    string   `json:"text"`              // lines of 80 columns at most
	Picture string   `json:"picture,omitempty"` // lines of text
	Try     string   `json:"try"`               // a command line
	See     []string `json:"see,omitempty"`     // words of Text that are entries
}

// wordLink is [text](#entry), in walk.md [text](words.md#entry).
var wordLink = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[([^\]]+)\]\((?:words\.md)?#([a-z0-9-]+)\)`)
})

// Words are the words in the order of the page: by the alphabet.
func Words() []Word { return slices.Clone(entries()) }

// Walk are the stations of one all_reduce from the call to the wire, in their order.
func Walk() []Word { return slices.Clone(stations()) }

var (
	entries  = sync.OnceValue(func() []Word { return readWords(wordsPage) })
	stations = sync.OnceValue(func() []Word { return readWords(walkPage) })
)

func readWords(page string) (all []Word) {
	for _, entry := range strings.Split(page, "\n## ")[1:] {
		name, rest, _ := strings.Cut(entry, "\n")
		w := Word{Name: name}
		w.read(rest)
		all = append(all, w)
	}
	return all
}

// read takes paragraphs: those that are indented by four are the command, by more a picture.
func (w *Word) read(entry string) {
	for part := range strings.SplitSeq(strings.Trim(entry, "\n"), "\n\n") {
		switch aliased, found := strings.CutPrefix(part, "    simccl "); {
		case found:
			w.Try = "simccl " + aliased
		case strings.HasPrefix(part, "    "):
			w.Picture = part
		default:
			text, aliases, _ := strings.Cut(part, "\nAliases: ")
			if aliases != "" {
				w.Aliases = strings.Split(aliases, ", ")
			}
			for _, m := range wordLink().FindAllStringSubmatch(text, -1) {
				if !slices.Contains(w.See, m[2]) {
					w.See = append(w.See, m[2])
				}
			}
			w.Text = wordLines(wordLink().ReplaceAllString(text, "$1"))
		}
	}
}

// wordColumns is the width of a terminal as it opens.
const wordColumns = 80

// wordLines breaks a text between words into lines of as many columns.
func wordLines(text string) string {
	var b strings.Builder
	at := 0
	for _, w := range strings.Fields(text) {
		n := utf8.RuneCountInString(w)
		switch {
		case at == 0:
		case at+1+n > wordColumns:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += n
	}
	return b.String()
}

// wordKey is a word as it is compared: "Double-binary trees" and "double binary tree" are one.
func wordKey(s string) string {
	s = strings.TrimSuffix(strings.ToLower(s), "s")
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(s)
}

// walkName is what Find knows all stations by.
const walkName = "walk"

// FindWord is the entry of a word, by its name or an alias; of "walk" the stations of Walk.
func FindWord(word string) (Word, bool) {
	if wordKey(word) == walkName {
		w := Word{Name: walkName, Text: "One all_reduce, from call to wire\n\n", Try: "simccl serve"}
		for i, s := range Walk() {
			text, _ := strings.CutPrefix(s.Print(), s.Name)
			w.Text += fmt.Sprintf("%d. %s%s\n", i+1, s.Name, text)
		}
		w.Text = strings.TrimSuffix(w.Text, "\n\n")
		return w, true
	}
	for _, w := range Words() {
		for _, name := range append([]string{w.Name}, w.Aliases...) {
			if wordKey(name) == wordKey(word) {
				return w, true
			}
		}
	}
	return Word{}, false
}

// WordNames are the names of all entries.
func WordNames() (names []string) {
	for _, w := range Words() {
		names = append(names, w.Name)
	}
	return names
}

// Print is the entry for a terminal.
func (w *Word) Print() string {
	var b strings.Builder
	b.WriteString(w.Name)
	if len(w.Aliases) > 0 {
		b.WriteString(" (" + strings.Join(w.Aliases, ", ") + ")")
	}
	b.WriteString("\n\n" + w.Text + "\n")
	if w.Picture != "" {
		b.WriteString("\n" + w.Picture + "\n")
	}
	b.WriteString("\nSee it: " + w.Try + "\n")
	return b.String()
}
