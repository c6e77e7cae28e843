package decl

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one problem of a declared topology: where it is, what is wrong and what to write instead.
type Error struct {
	Pos     Origin
	Path    string // "system/cpu[0]/pci[1]"
	Attr    string // attribute with its value, or empty
	Problem string // what is wrong
	Hint    string // what to write instead
	Err     error  // the kind of problem, for errors.Is; often nil
}

// Unwrap returns the kind of problem for errors.Is; often nil.
func (e *Error) Unwrap() error { return e.Err }

// Error prints "file:line:col: path: attr: problem; hint".
func (e *Error) Error() string {
	var b strings.Builder
	if s := e.Pos.String(); s != "" {
		b.WriteString(s + ": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	if e.Attr != "" {
		b.WriteString(e.Attr + ": ")
	}
	b.WriteString(e.Problem)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// MaxShown is how many problems of one file are printed.
const MaxShown = 10

// Errors lists all problems of one topology.
type Errors []*Error

// Error prints one problem per line, the first ten.
func (es Errors) Error() string {
	var b strings.Builder
	for i, e := range es {
		if i == MaxShown {
			fmt.Fprintf(&b, "\nand %d more", len(es)-MaxShown)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap returns the problems for errors.As.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Or returns es as an error, nil when it is empty.
func (es Errors) Or() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// ErrNoGPU marks a topology that has no GPU to run on.
var ErrNoGPU = errors.New("no GPU")

// NoGPU returns the error of a topology without any <gpu>, positioned at its root.
func NoGPU(spec *Spec) error {
	e := &Error{Problem: "no <gpu>: the file lists PCI devices only, or nothing", Err: ErrNoGPU,
		Hint: `run NCCL with NCCL_TOPO_DUMP_FILE on the machine, or write <gpu dev="0" sm="90" gdr="1"/> into the <pci> of each GPU`}
	if spec != nil && spec.Root != nil {
		e.Pos, e.Path = spec.Root.Origin, spec.Root.Name
	}
	return Errors{e}
}
