// Package fail defines the errors that end a command because of its inputs: an invalid argument, an
// unreadable input, a check that failed, absent hardware, a feature that is not implemented. An Error has a
// Kind and a text; it knows no exit status and no flag.
//
// A text may name members of a request in braces, as "{Iters} and {Cycles} begin at 1". Error prints them
// without the braces; Named replaces them by the caller's names, such as "-n and -N begin at 1".
package fail

import (
	"errors"
	"fmt"
	"regexp"
)

// Kind is the category of an Error.
type Kind int

// Kinds of errors.
const (
	BadArgument Kind = iota // a value of a request that cannot be
	BadInput                // a file that cannot be read, or that nothing can be made of
	No                      // a check failed; its findings may be printed already
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

// Local marks the error as one of this process, not of another rank.
func (e *Error) Local() {}

// members matches the names in braces of a text.
var members = regexp.MustCompile(`\{([A-Z]\w*)\}`)

// of returns an Error with a text.
func of(k Kind, format string, args []any) *Error {
	return &Error{Kind: k, err: fmt.Errorf(members.ReplaceAllString(format, "$1"), args...), format: format,
		args: args}
}

// Usage returns the error of an argument that must be written differently; the text says how.
func Usage(format string, args ...any) error { return of(BadArgument, format, args) }

// Argument marks err as an error of an argument; nil stays nil.
func Argument(err error) error { return wrap(BadArgument, err) }

// Input marks err as an error of an input; nil stays nil.
func Input(err error) error { return wrap(BadInput, err) }

// File returns the error of an unusable input file; the text contains its name.
func File(format string, args ...any) error { return of(BadInput, format, args) }

// Unavailable marks err as an error of absent hardware; nil stays nil.
func Unavailable(err error) error { return wrap(Absent, err) }

func wrap(k Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, err: err}
}

// Left returns the error of work that was not started in time; the text says how to continue.
func Left(format string, args ...any) error { return of(LeftOver, format, args) }

// Check returns the error of a check that failed.
func Check(format string, args ...any) error { return of(No, format, args) }

// Printed returns a Check error whose findings have been printed already; its own text is not printed.
func Printed(format string, args ...any) error {
	e := of(No, format, args)
	e.Quiet = true
	return e
}

// NotYet returns the error of a feature that is not implemented: format names the feature and missing what it
// lacks; both are formatted with args.
func NotYet(missing, format string, args ...any) error {
	return of(NotBuilt, format+": not available yet: "+missing, args)
}

// Join joins errors; the result has the kind of the first that is not nil.
func Join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return &Error{Kind: AsOf, First: err, err: errors.Join(errs...)}
		}
	}
	return nil
}

// Named returns err with the members in its text replaced by a caller's names; a member without a name keeps
// its own. An error of another type is returned unchanged.
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
