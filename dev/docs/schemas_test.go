package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/advise"
	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/workload/load"
)

const folder = "../../docs/schemas"

var update = flag.Bool("update", false, "write docs/schemas anew")

// document is a kind of document: its schema, and one that simccl makes.
type document struct {
	file, title string
	of          reflect.Type
	sample      func(t *testing.T) any
}

var small = scenario.Spec{Machine: scenario.Machine{GPUs: 2, Nodes: []scenario.Nodes{
	{Topo: "dgx-h100", Count: 2}}}, NCCL: scenario.NCCL{Env: map[string]string{"NCCL_ALGO": "Ring"}},
	Workload: scenario.Workload{Op: "all_reduce", Sizes: []string{"8", "1M"}}, Network: scenario.Network{
		Faults: []string{"rank=0:slow=2"}},
	Grid: []scenario.Axis{{Path: "machine.gpus", Values: []scenario.Value{scenario.Value("1"),
		scenario.Value("2")}}}}

func options() scenario.Options { return scenario.Options{Settings: config.Sources{NoEnv: true}} }

var documents = []document{
	{"scenario.v1", "a scenario file of simccl (docs/SWEEPS.md)", reflect.TypeFor[scenario.Spec](),
		func(*testing.T) any { return json.RawMessage(small.JSON()) }},
	{"result.v1", "a result of simccl's library and of sweeps (docs/LIBRARY.md)",
		reflect.TypeFor[scenario.Result](), func(t *testing.T) any {
			one := small.Clone()
			one.Grid, one.Engine.Rivals = nil, true
			r, err := scenario.Run(context.Background(), one, options())
			if err != nil {
				t.Fatal(err)
			}
			return r
		}},
	{"decision.v1", "simccl inspect --json", reflect.TypeFor[decision.Document](), func(t *testing.T) any {
		site, err := scenario.Load(&small, options())
		if err != nil {
			t.Fatal(err)
		}
		d, err := decision.New(site.Comm, decision.Given{Nodes: 2, GPUsPerNode: 2})
		if err != nil {
			t.Fatal(err)
		}
		text, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(text)
	}},
	{"workload.v1", "simccl workload show --json: what a job does", reflect.TypeFor[page.Summary](),
		func(t *testing.T) any {
			const text = "workload 1\nranks 2\ncomm w *\nlist a 0-1\n  call 0 w all_reduce float sum 8\n"
			j, err := load.Load([]load.File{{Name: "job.txt", Open: func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(text)), nil
			}}}, load.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return page.JobOf(j)
		}},
	{"advice.v1", "simccl advise --json", reflect.TypeFor[[]advise.Advice](), func(t *testing.T) any {
		one := small.Clone()
		one.Grid, one.Network.Faults, one.NCCL.Env, one.Workload.Sizes = nil, nil, nil, []string{"64K"}
		r, err := advise.New(context.Background(), advise.Request{Spec: one, Options: options()})
		if err != nil {
			t.Fatal(err)
		}
		return r.Advice
	}},
}

// special are types that write their JSON themselves.
func special() map[reflect.Type]*jsonschema.Schema {
	channels := reflect.TypeFor[decision.Channels]()
	list, _ := channels.FieldByName("RingOrder")
	ranks, _ := channels.FieldByName("Ranks")
	number, integer := &jsonschema.Schema{Type: "number"}, &jsonschema.Schema{Type: "integer"}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[decision.Num](): number, reflect.TypeFor[decision.Flag](): {Enum: []any{0, 1}},
		list.Type: {Type: "array", Items: &jsonschema.Schema{Type: "array",
			Items: integer}},
		ranks.Type:                         {Type: "array", Items: &jsonschema.Schema{Type: "object"}},
		reflect.TypeFor[json.RawMessage](): {},
	}
}

// TestSchemas: the files are those of the types, documents that simccl makes are valid, and
// a document with a member of another type is not.
func TestSchemas(t *testing.T) {
	for _, d := range documents {
		schema, err := jsonschema.ForType(d.of, &jsonschema.ForOptions{TypeSchemas: special()})
		if err != nil {
			t.Errorf("%s: %v", d.file, err)
			continue
		}
		schema.Schema, schema.Title, schema.ID = "https://json-schema.org/draft/2020-12/schema", d.title,
			"https://github.com/simccl/simccl/docs/schemas/"+d.file+".schema.json"
		text, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, d.file+".schema.json")
		text = append(text, '\n')
		if *update {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is not that of its type (%v): go test ./dev/docs -update; a change that breaks "+
				"readers is a new version", name, err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Errorf("%s: %v", d.file, err)
			continue
		}
		sample, err := json.Marshal(d.sample(t))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(sample, &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%s: a document of simccl is not valid: %v", d.file, err)
		}
		if err := resolved.Validate(map[string]any{"scenario": "one", "format": "one",
			"nRanks": "two"}); err == nil {
			t.Errorf("%s: a document of nonsense is valid", d.file)
		}
	}
}
