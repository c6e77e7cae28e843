package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/rules"
)

// Sources are the places that settings come from, highest precedence first.
// The zero value has none and gives NCCL's defaults.
type Sources struct {
	// Rules are those of the release whose settings these are; nil for those of
	// rules.Default.
	Rules *rules.Ruleset
	// Flags are the K=V of --env; the last of a name holds.
	Flags []string
	// Environ is the environment as os.Environ gives it; the first of a name
	// holds, as getenv has it.
	Environ []string
	// Home is the user's home directory, for ~/.nccl.conf; empty for none.
	Home string
	// ReadFile reads a configuration file; nil reads none.
	ReadFile func(name string) ([]byte, error)
	// NoEnv leaves environment and default files out (--no-env); a
	// NCCL_CONF_FILE among Flags is still read.
	NoEnv bool
	// Plugin returns the K=V that a network plugin, PluginName, sets beside a release,
	// where no other source does; nil for none.
	Plugin     func(r rules.Release) []string
	PluginName string
}

// Getenv is a variable that NCCL does not read, such as NCCL_TESTS_MIN_BW: that of
// Flags, else of the environment; no configuration file has it.
func (s Sources) Getenv(name string) (string, bool) {
	for i := len(s.Flags) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(s.Flags[i], name+"="); ok {
			return v, true
		}
	}
	if !s.NoEnv {
		for _, e := range s.Environ {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v, true
			}
		}
	}
	return "", false
}

// OriginKind is the kind of place that a value comes from.
type OriginKind uint8

// Origins, lowest precedence first.
const (
	Default OriginKind = iota
	Plugin
	File
	Environment
	FlagEnv
)

// Origin is where a value comes from.
type Origin struct {
	Kind OriginKind
	File string // with Kind File; with Kind Plugin the plugin's name
	Line int
}

// String says it in words.
func (o Origin) String() string {
	switch o.Kind {
	case FlagEnv:
		return "--env"
	case Environment:
		return "environment"
	case Plugin:
		return o.File
	case File:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return "default"
}

// Value is what a source said of a variable.
type Value struct {
	Text   string
	Origin Origin
}

// Warning is something that NCCL passes over in silence and a user would want
// to know.
type Warning struct {
	Var     string
	Text    string // the value, as written
	Origin  Origin
	Problem string // what is wrong, and what NCCL does with it
	Hint    string // what to write instead, or empty
}

// String is one line.
func (w Warning) String() string {
	s := fmt.Sprintf("%s=%s (%s): %s", termtext.Short(w.Var, 0), termtext.Short(w.Text, 0), w.Origin,
		w.Problem)
	if w.Var == "" {
		s = fmt.Sprintf("%s: %s", w.Origin, w.Problem)
	}
	if w.Hint != "" {
		s += "; " + w.Hint
	}
	return s
}

// Error is a setting with which NCCL refuses to start.
type Error struct {
	Var    string
	Text   string
	Origin Origin
	Err    error
}

// Error names variable, value, place and problem.
func (e *Error) Error() string {
	if e.Var == "" {
		return fmt.Sprintf("%s: %v", e.Origin, e.Err)
	}
	return fmt.Sprintf("%s=%s (%s): %v", termtext.Short(e.Var, 0), termtext.Short(e.Text, 0), e.Origin, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// gather merges the sources by precedence (misc/param.cc:54-76).
func gather(s Sources) (map[string]Value, []Warning, error) {
	vals := map[string]Value{}
	var warns []Warning
	for _, kv := range s.Flags {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, nil, &Error{Origin: Origin{Kind: FlagEnv},
				Err: fmt.Errorf("%q is not NAME=VALUE; write for example --env NCCL_ALGO=Ring", kv)}
		}
		if err := foreign(k); err != nil {
			return nil, nil, &Error{Var: k, Text: v, Origin: Origin{Kind: FlagEnv}, Err: err}
		}
		vals[k] = Value{v, Origin{Kind: FlagEnv}}
	}
	if !s.NoEnv {
		for _, kv := range s.Environ {
			k, v, ok := strings.Cut(kv, "=")
			if _, have := vals[k]; ok && !have {
				vals[k] = Value{v, Origin{Kind: Environment}}
			}
		}
	}
	for _, f := range confFiles(s, vals) {
		warns = append(warns, readConf(s, f, vals)...)
	}
	s.plugin(vals)
	return vals, warns, nil
}

// plugin adds what a network plugin sets.
func (s *Sources) plugin(vals map[string]Value) {
	if s.Plugin == nil {
		return
	}
	r := s.Rules
	if r == nil {
		r = rules.Default()
	}
	for _, kv := range s.Plugin(r.Release) {
		k, v, _ := strings.Cut(kv, "=")
		if _, have := vals[k]; !have {
			vals[k] = Value{v, Origin{Kind: Plugin, File: s.PluginName}}
		}
	}
}

// foreign refuses a name of --env that NCCL cannot read: it looks for names that
// begin with NCCL_ only.
func foreign(name string) error {
	if byName[name] != nil || strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "SIMCCL_") ||
		strings.HasPrefix(name, rcclPrefix) {
		return nil
	}
	all := make([]string, len(vars))
	for i := range vars {
		all[i] = vars[i].Name
	}
	upper := strings.ToUpper(name)
	for _, guess := range []string{"NCCL_" + upper, upper} {
		if n := Nearest(guess, all); n != "" {
			return fmt.Errorf("NCCL reads names that begin with NCCL_ only; did you mean %s", n)
		}
	}
	return errors.New("NCCL reads names that begin with NCCL_ only; simccl env --all lists them")
}

// confFile is a file to read; one that is asked for by name must be there.
type confFile struct {
	name   string
	origin Origin // zero where it is a default
}

func confFiles(s Sources, vals map[string]Value) []confFile {
	if s.ReadFile == nil {
		return nil
	}
	var fs []confFile
	if v, ok := vals["NCCL_CONF_FILE"]; ok && v.Text != "" {
		fs = append(fs, confFile{v.Text, v.Origin})
	} else if s.Home != "" && !s.NoEnv {
		fs = append(fs, confFile{name: filepath.Join(s.Home, ".nccl.conf")})
	}
	if !s.NoEnv {
		fs = append(fs, confFile{name: "/etc/nccl.conf"})
	}
	return fs
}

func readConf(s Sources, f confFile, vals map[string]Value) []Warning {
	data, err := s.ReadFile(f.name)
	if err != nil {
		if f.origin.Kind == Default {
			return nil
		}
		return []Warning{{Var: "NCCL_CONF_FILE", Text: f.name, Origin: f.origin,
			Problem: "cannot be read, and NCCL continues without it: " + err.Error()}}
	}
	var warns []Warning
	for _, e := range ParseConf(string(data)) {
		o := Origin{Kind: File, File: f.name, Line: e.Line}
		if e.Problem != "" {
			warns = append(warns, Warning{Var: e.Name, Text: e.Value, Origin: o, Problem: e.Problem,
				Hint: e.Hint})
		}
		if _, have := vals[e.Name]; !have && e.Name != "" {
			vals[e.Name] = Value{e.Value, o}
		}
	}
	return warns
}

// Entry is a line of a configuration file that sets a variable, or one that
// looks as if it should.
type Entry struct {
	Line          int
	Name, Value   string
	Problem, Hint string // empty where all is well
}

// confWord is the longest name or value that NCCL keeps (param.cc:29).
const confWord = 1023

// ParseConf reads a configuration file as NCCL does (misc/param.cc:24-48):
// lines NAME=VALUE, nothing trimmed; a line that begins with # is skipped, and
// so is one without =, and the first of a name holds.
func ParseConf(text string) []Entry {
	var out []Entry
	for n, line := range strings.Split(text, "\n") {
		if i := strings.IndexByte(line, 0); i >= 0 {
			line = line[:i] // C strings end there
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		e := Entry{Line: n + 1, Name: clip(name), Value: clip(value)}
		bare := strings.TrimSpace(line)
		switch {
		case !ok && (bare == "" || strings.HasPrefix(bare, "#")):
			continue
		case !ok:
			e.Name, e.Problem, e.Hint = "", fmt.Sprintf("%s sets nothing", termtext.Quote(bare, 0)),
				"write NAME=VALUE, or begin the line with #"
		case strings.TrimSpace(name) == "":
			e.Name, e.Problem, e.Hint = "", "no name before =", "write NAME=VALUE"
		case strings.HasPrefix(bare, "#"):
			e.Problem, e.Hint = "a comment must begin in the first column; NCCL takes this for a variable",
				"remove the blanks before #"
		case strings.TrimSpace(name) != name:
			e.Problem, e.Hint = fmt.Sprintf("the name has blanks, so NCCL never finds it (%s)",
				termtext.Quote(name, 0)), "write "+termtext.Short(strings.TrimSpace(name)+"="+
				strings.TrimSpace(value), 0)
		case strings.TrimSpace(value) != value:
			e.Problem, e.Hint = fmt.Sprintf("blanks belong to the value (%s)", termtext.Quote(value, 0)),
				"remove them"
		}
		out = append(out, e)
	}
	return out
}

func clip(s string) string {
	if len(s) > confWord {
		return s[:confWord]
	}
	return s
}
