// Package fail has the errors by which a command ends because of what it was
// given: an argument that cannot be, an input that cannot be read, a check that
// was answered with no, hardware that is absent, a feature that is not built. An
// Error has its Kind and its text; it knows no exit status and no flag.
//
// A text may name members of a request in braces, as "{Iters} and {Cycles} begin
// at 1". Error prints them as they are, without the braces; Named prints the
// caller's names in their place, such as "-n and -N begin at 1".
package fail

import (
	"errors"
	"fmt"
	"regexp"
)

// Kind says what an Error is about.
type Kind int

// Kinds of errors.
const (
	BadArgument Kind = iota // a value of a request that cannot be
	BadInput                // a file that cannot be read, or that nothing can be made of
	No                      // the answer of a check; what is wrong may be printed already
	Absent                  // hardware or a library that is not there
	NotBuilt                // a feature that simccl does not have yet
	LeftOver                // work is left that the same command goes on with
	AsOf                    // several errors; the Kind is that of Error.First
)

// Error is an error whose cause is in the request or in its files: no other rank
// of a run has anything to add to it.
type Error struct {
	Kind  Kind
	Quiet bool  // its text was printed already
	First error // of AsOf

	err    error
	format string // with {Member}s; empty where err has no names
	args   []any
}

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// Local marks the error as one of this process.
func (e *Error) Local() {}

// members are the names in braces of a text.
var members = regexp.MustCompile(`\{([A-Z]\w*)\}`)

// of makes an Error of a text.
func of(k Kind, format string, args []any) *Error {
	return &Error{Kind: k, err: fmt.Errorf(members.ReplaceAllString(format, "$1"), args...), format: format,
		args: args}
}

// Usage is an argument that has to be written otherwise; the text says how.
func Usage(format string, args ...any) error { return of(BadArgument, format, args) }

// Argument makes err an error of an argument; nil of nil.
func Argument(err error) error { return wrap(BadArgument, err) }

// Input makes err an error of an input; nil of nil.
func Input(err error) error { return wrap(BadInput, err) }

// File is an input that nothing can be made of; the text has its name.
func File(format string, args ...any) error { return of(BadInput, format, args) }

// Unavailable makes err an error of hardware that is absent; nil of nil.
func Unavailable(err error) error { return wrap(Absent, err) }

func wrap(k Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, err: err}
}

// Left is work that was not begun in time; the text says how to go on.
func Left(format string, args ...any) error { return of(LeftOver, format, args) }

// Check is a check that was answered with no.
func Check(format string, args ...any) error { return of(No, format, args) }

// Printed is a Check whose findings are printed: its text is not.
func Printed(format string, args ...any) error {
	e := of(No, format, args)
	e.Quiet = true
	return e
}

// NotYet is a feature, as format says it, with what is missing to it: a format as
// well, of the arguments that follow.
func NotYet(missing, format string, args ...any) error {
	return of(NotBuilt, format+": not available yet: "+missing, args)
}

// Join returns all errors as one, of the kind of the first that is not nil.
func Join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return &Error{Kind: AsOf, First: err, err: errors.Join(errs...)}
		}
	}
	return nil
}

// Named is err with a caller's names of the members in its text; a member without
// a name keeps its own. What is no Error comes back as it is.
func Named(err error, names map[string]string) error {
	e, ok := err.(*Error)
	if !ok || e.format == "" {
		return err
	}
	named := *e
	named.err = fmt.Errorf(members.ReplaceAllStringFunc(e.format, func(m string) string {
		if name, known := names[m[1:len(m)-1]]; known {
			return name
		}
		return m[1 : len(m)-1]
	}), e.args...)
	return &named
}
