package config_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
)

var ncclName = regexp.MustCompile(`NCCL_[A-Z0-9_]+`)

// otherwise are fields whose comment names a variable that the field itself is
// not filled from, and who fills them.
var otherwise = map[string]string{
	"search.CollNet":  "comm decides from several settings",
	"search.NVLS":     "comm decides from several settings",
	"search.Given":    "the command reads the file",
	"connect.CollNet": "comm decides from several settings",
	"topo.PXNAuto":    "RCCL's rules alone set it, where the variable is unset",
}

// TestEveryParamIsFilled reads the Params of the rooms: a field whose comment
// names an NCCL variable must be set by a Config that sets that variable.
func TestEveryParamIsFilled(t *testing.T) {
	cfg := reflect.TypeOf(config.Config{})
	for i := 0; i < cfg.NumField(); i++ {
		f := cfg.Field(i)
		if !f.IsExported() || f.Type.Name() != "Params" {
			continue
		}
		room := path.Base(f.Type.PkgPath())
		for field, name := range paramFields(t, strings.TrimPrefix(f.Type.PkgPath(),
			"github.com/simccl/simccl/")) {
			if otherwise[room+"."+field] != "" {
				continue
			}
			v := config.Lookup(name)
			if v == nil || !v.Honoured() {
				t.Errorf("%s.Params.%s: the table does not honour %s", room, field, name)
				continue
			}
			of := rules.Default()
			if !v.In().Holds(of.Release) {
				of = newest(t)
			}
			unset, _ := load(t, config.Sources{Rules: of})
			get := func(c *config.Config) any {
				return reflect.ValueOf(c).Elem().Field(i).FieldByName(field).Interface()
			}
			filled := false
			for _, value := range []string{"", "0", "1", "PHB", "MAX:2", "mlx5_0", "Socket", "65536"} {
				c, _, err := config.Load(config.Sources{Rules: of, Flags: []string{name + "=" + value}})
				filled = filled || err == nil && !reflect.DeepEqual(get(c), get(unset))
			}
			if !filled {
				t.Errorf("no value of %s changes %s.Params.%s", name, room, field)
			}
		}
	}
}

// newest is the ruleset of the newest release that has one.
func newest(t *testing.T) *rules.Ruleset {
	t.Helper()
	all := rules.Known()
	r, err := rules.For(all[len(all)-1].String())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// paramFields maps the fields of a room's Params to the first variable that
// their comment names.
func paramFields(t *testing.T, room string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(golden.Root(t, room, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files (%v)", room, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		fieldsOf(f, out)
	}
	if len(out) == 0 {
		t.Errorf("no Params with variables in %s", room)
	}
	return out
}

// fieldsOf adds what paramFields maps in one file.
func fieldsOf(f *ast.File, out map[string]string) {
	ast.Inspect(f, func(n ast.Node) bool {
		ts, ok := n.(*ast.TypeSpec)
		if !ok || ts.Name.Name != "Params" && ts.Name.Name != "Access" {
			return true
		}
		for _, f := range ts.Type.(*ast.StructType).Fields.List {
			name := ncclName.FindString(f.Doc.Text() + f.Comment.Text())
			for _, id := range f.Names {
				if name != "" {
					out[id.Name] = name
				}
			}
		}
		return false
	})
}
