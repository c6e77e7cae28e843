package flags

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/pflag"
)

// elsewhere lists members of a Spec that no flag sets: those set by variables, and those whose errors repeat
// the word that the user wrote.
var elsewhere = map[string]string{
	"machine.split": "NCCL_TESTS_SPLIT", "workload.op": "", "workload.types": "", "workload.reductions": "",
	"workload.range": "",
}

// Names maps the members that flags set to the flags as users write them: by the letter, if there is one.
func Names(f *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	if f == nil {
		return out
	}
	f.VisitAll(func(flag *pflag.Flag) {
		for _, m := range flag.Annotations[members] {
			if out[m] = "--" + flag.Name; flag.Shorthand != "" {
				out[m] = "-" + flag.Shorthand
			}
		}
	})
	return out
}

// Name replaces members by flags in the text of an error: of a scenario.FieldError, which becomes a usage
// error, and of an error of package fail. A member without a flag keeps its own name.
func Name(f *pflag.FlagSet, err error) error { return name(Names(f), err) }

func name(names map[string]string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, name(names, e))
		}
		return fail.Join(all...)
	}
	var f *scenario.FieldError
	if !errors.As(err, &f) {
		return fail.Named(err, names)
	}
	path, _, _ := strings.Cut(f.Path, "[")
	flag, known := elsewhere[path]
	if !known {
		flag, known = names[path]
	}
	if !known {
		return fail.Argument(err)
	}
	own := *f
	own.Hint = memberIn().ReplaceAllStringFunc(own.Hint, func(member string) string {
		return cmp.Or(names[member], member)
	})
	if own.Path = flag; flag == "" {
		own.Path, own.Value = "", ""
		return fail.Usage("%s", strings.TrimPrefix(own.Error(), ": "))
	}
	return fail.Argument(&own)
}

// memberIn finds the members of a Spec that a hint names.
var memberIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[a-z]+\.[a-zA-Z.]*[a-zA-Z]\b`)
})
