package team

import "fmt"

// Kind says what a Refusal is about.
type Kind int

// Kinds of refusals.
const (
	BadArgument Kind = iota // an option or variable whose value cannot be
	BadInput                // a file that cannot be read or written
	WrongResult             // a value that was computed wrong
)

// Refusal is an error whose cause is in this process alone: no other rank has
// anything to add to it.
type Refusal struct {
	Kind Kind
	Err  error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Local marks the error as one of this process.
func (r *Refusal) Local() {}

// Local are the errors whose cause is in this process alone.
type Local interface {
	error
	Local()
}

// Refuse makes the Refusal of an argument.
func Refuse(format string, args ...any) error {
	return &Refusal{BadArgument, fmt.Errorf(format, args...)}
}

// Input makes the Refusal of a file; nil of nil.
func Input(err error) error {
	if err == nil {
		return nil
	}
	return &Refusal{BadInput, err}
}

// Wrong makes the Refusal of a result.
func Wrong(format string, args ...any) error {
	return &Refusal{WrongResult, fmt.Errorf(format, args...)}
}
