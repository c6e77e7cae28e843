package team

import "fmt"

// Kind is the subject of a Refusal.
type Kind int

// Kinds of refusals.
const (
	BadArgument Kind = iota // an option or variable with an invalid value
	BadInput                // a file that cannot be read or written
	WrongResult             // a wrong computed value
)

// Refusal is an error whose cause is in this process only: other ranks have nothing to add to it.
type Refusal struct {
	Kind Kind
	Err  error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Local marks the error as one of this process.
func (r *Refusal) Local() {}

// Local is implemented by errors whose cause is in this process only.
type Local interface {
	error
	Local()
}

// Refuse returns the Refusal of an argument.
func Refuse(format string, args ...any) error {
	return &Refusal{BadArgument, fmt.Errorf(format, args...)}
}

// Input returns the Refusal of a file; nil if err is nil.
func Input(err error) error {
	if err == nil {
		return nil
	}
	return &Refusal{BadInput, err}
}

// Wrong returns the Refusal of a result.
func Wrong(format string, args ...any) error {
	return &Refusal{WrongResult, fmt.Errorf(format, args...)}
}
