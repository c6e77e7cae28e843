package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Palette colours words if the output is a terminal.
type Palette struct {
	On bool
	// Mark follows the escape character, so that a writer which escapes control
	// characters lets these pass (internal/termtext).
	Mark string
}

// PaletteOf returns the palette of a stream: off if it is no terminal, if NO_COLOR is set (no-color.org), or
// if the terminal has no colours.
func PaletteOf(w io.Writer, mark string, getenv func(string) (string, bool)) Palette {
	none, set := getenv("NO_COLOR")
	term, _ := getenv("TERM")
	return Palette{Is(w) && !(set && none != "") && term != "dumb", mark}
}

// Raw returns the underlying writer below writers that escape or count, for a line that is rewritten in
// place.
func Raw(w io.Writer) io.Writer {
	for {
		o, ok := w.(interface{ Unwrap() io.Writer })
		if !ok {
			return w
		}
		w = o.Unwrap()
	}
}

// Is reports whether a stream is a terminal.
func Is(w io.Writer) bool {
	f, ok := Raw(w).(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Width returns the number of columns of a terminal; 0 for another stream.
func Width(w io.Writer) int {
	f, ok := Raw(w).(*os.File)
	if !ok {
		return 0
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}

func (p Palette) in(code, s string) string {
	if !p.On {
		return s
	}
	esc := "\x1b" + p.Mark
	return esc + "[" + code + "m" + s + esc + "[0m"
}

// Red returns s in red.
func (p Palette) Red(s string) string { return p.in("31", s) }

// Green returns s in green.
func (p Palette) Green(s string) string { return p.in("32", s) }

// Yellow returns s in yellow.
func (p Palette) Yellow(s string) string { return p.in("33", s) }

// Severities colours the words "error:" and "warning:" in a line.
func (p Palette) Severities(line string) string {
	line = strings.Replace(line, " error: ", " "+p.Red("error:")+" ", 1)
	return strings.Replace(line, " warning: ", " "+p.Yellow("warning:")+" ", 1)
}

// Headings sets the headings of a text in bold: lines that are not indented and end
// in a colon.
func (p Palette) Headings(text string) string {
	if !p.On {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if bare := strings.TrimRight(l, "\n"); strings.HasSuffix(bare, ":") && !strings.HasPrefix(bare, " ") {
			lines[i] = p.in("1", bare) + l[len(bare):]
		}
	}
	return strings.Join(lines, "")
}
