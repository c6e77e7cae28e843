package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/perftest"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/packetrun"
)

// TestMembersHaveFlags: every member that a text of package fail names in braces
// has a flag, which some command declares.
func TestMembersHaveFlags(t *testing.T) {
	declared := map[string]string{}
	for _, c := range commands(root.Command(&cli.App{})) {
		for member, flag := range flags.Names(c.Flags()) {
			declared[member] = flag
		}
	}
	member := regexp.MustCompile(`\{([A-Z]\w*)\}`)
	call := regexp.MustCompile(`fail\.(Usage|File|NotYet|Check)\(|^\s*\{.*"\{[A-Z]|"\{[A-Z]\w*\}"`)
	found := 0
	for _, dir := range []string{"nccltests/options", "app/bench", "real/bench", "real/perftest", "scenario",
		"study/packetrun"} {
		files, err := filepath.Glob(filepath.Join(golden.Root(t), dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.HasSuffix(name, "_test.go") || !call.MatchString(line) {
					continue
				}
				for _, m := range member.FindAllStringSubmatch(line, -1) {
					found++
					if declared[m[1]] == "" {
						t.Errorf("%s: {%s} has no flag that a command declares", filepath.Base(name), m[1])
					}
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d members found", found)
	}
}

// TestFlagsSetMembers: the member that a flag is declared to set exists, in a
// scenario.Spec by its path or in the request of the command by its name.
func TestFlagsSetMembers(t *testing.T) {
	tests := []any{options.Options{}, cli.Machine{}}
	requests := map[string][]any{
		"simccl run": tests, "simccl report": tests, "simccl diff": tests,
		"simccl bench": {bench.Request{}, cli.Machine{}}, "simccl bench verbs": {perftest.Request{}},
		"simccl network run": {packetrun.Options{}, packetrun.Htsim{}},
		"simccl explain":     {scenario.Named{}, cli.Machine{}}, "simccl plan": {scenario.Named{},
			cli.Machine{}},
	}
	found := 0
	for _, c := range commands(root.Command(&cli.App{})) {
		in := requests[c.CommandPath()]
		if in == nil {
			in = []any{cli.Machine{}}
		}
		for member, flag := range flags.Names(c.Flags()) {
			found++
			if member[0] >= 'a' && !hasPath(reflect.TypeFor[scenario.Spec](), member) {
				t.Errorf("%s %s: a Spec has no %s", c.CommandPath(), flag, member)
			}
			if member[0] < 'a' && !slices.ContainsFunc(in, func(r any) bool {
				_, ok := reflect.TypeOf(r).FieldByName(member)
				return ok
			}) {
				t.Errorf("%s %s: %T and others have no %s", c.CommandPath(), flag, in[0], member)
			}
		}
	}
	if found < 300 {
		t.Errorf("only %d members found", found)
	}
}

// hasPath reports whether a struct has a member by its path in JSON.
func hasPath(of reflect.Type, path string) bool {
	name, rest, more := strings.Cut(path, ".")
	for i := range of.NumField() {
		f := of.Field(i)
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return !more || f.Type.Kind() == reflect.Struct && hasPath(f.Type, rest)
		}
	}
	return false
}
