package fail

import "fmt"

// FileError is a fault at a place of a file.
type FileError struct {
	File      string
	Line, Col int // from 1
	Problem   string
	Hint      string // what to do or write instead
	Err       error  // the cause; nil for none
}

// Error states the position, the problem and the remedy.
func (e *FileError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// At returns a FileError without a cause.
func At(file string, line, col int, problem, hint string) error {
	return &FileError{File: file, Line: line, Col: col, Problem: problem, Hint: hint}
}
