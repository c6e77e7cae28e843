// Package sweep runs many points of a scenario: a specification is expanded, points
// are dealt to shards by their key, results are appended to files, and the files of
// all shards are merged. It has no scheduler: Slurm, Kubernetes or a shell start the
// shards.
//
// What it must not know: flags, what a point simulates.
package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/jsonfile"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/packetrun"
)

// FormatVersion is the version of specifications and results.
const FormatVersion = 1

// Spec is a sweep: a base scenario and the members that vary. Points are all combinations of the Factors that
// Where keeps, the last factor changing fastest.
type Spec struct {
	File    string
	Text    []byte // of the file
	Name    string
	Base    scenario.Spec
	Network *packetrun.Request // of simccl network run, in place of Base; else nil
	Factors []Factor
	Where   []*Condition
	Prices  *Prices // nil where there are none
	members []placed
}

// placed is a member of the base, where it is.
type placed struct {
	path string
	at   *yaml.Node
}

// Factor is one thing that varies: each Choice sets some members of the base.
type Factor struct{ Choices []Choice }

// Choice is a list of members with their values.
type Choice []Setting

// Setting is a member of the scenario, by the name that the file uses, and its value.
type Setting struct {
	Name  string
	Path  string
	Value json.RawMessage
	at    *yaml.Node
}

// shortNames maps abbreviations to the paths of members of a scenario. Brackets after a path mean that the
// member is a list of one.
var shortNames = map[string]string{
	"topo": "machine.nodes[0].topo", "nodes": "machine.nodes[0].count", "gpus": "machine.gpus",
	"class": "machine.class", "multicast": "machine.multicast",
	"op": "workload.op", "job": "workload.job", "size": "workload.sizes[]", "type": "workload.types[]",
	"redop": "workload.reductions[]", "root": "workload.root",
	"fabric": "network.fabric", "fidelity": "engine.fidelity", "launch": "engine.launch",
	"model": "workload.train.model", "seq": "workload.train.seq",
	"microBatch": "workload.train.microBatch", "globalBatch": "workload.train.globalBatch",
	"tp": "workload.train.tp", "pp": "workload.train.pp", "virtual": "workload.train.virtual",
	"cp": "workload.train.cp", "ep": "workload.train.ep", "dp": "workload.train.dp",
	"fsdp": "workload.train.fsdp", "schedule": "workload.train.schedule",
	"precision": "workload.train.precision", "recompute": "workload.train.recompute",
	"jitter": "engine.jitter", "version": "nccl.version", "seed": "seed",
}

// maxSpec is the largest accepted size of a specification, in bytes.
const maxSpec = 4 << 20

// Parse reads a specification, YAML or JSON. Errors are *fail.FileError, with file, line and
// column.
func Parse(data []byte, file string) (*Spec, error) {
	p := &specParser{file: file}
	if len(data) > maxSpec {
		return nil, p.fail(nil, "split it", "a specification of %d bytes", len(data))
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		return nil, p.yaml(err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, p.fail(&more, "write one", "a second document")
	}
	s := &Spec{File: file, Text: data}
	return s, p.spec(s, doc.Content[0])
}

type specParser struct {
	file  string
	lines []placed // by line of the JSON of base, from its second on
}

func (p *specParser) fail(n *yaml.Node, hint, format string, args ...any) error {
	e := &fail.FileError{File: p.file, Line: 1, Col: 1, Problem: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil && n.Line > 0 {
		e.Line, e.Col = n.Line, n.Column
	}
	return e
}

// yaml adds a position to an error of the decoder, "yaml: line 3: …".
func (p *specParser) yaml(err error) error {
	if errors.Is(err, io.EOF) {
		return p.fail(nil, "write base: and grid:", "the specification is empty")
	}
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			if n, e := strconv.Atoi(number); e == nil {
				line, text = n, what
			}
		}
	}
	return p.fail(&yaml.Node{Line: line, Column: 1}, "write YAML or JSON", "%s", text)
}

// members calls each for the members of a mapping.
func (p *specParser) members(n *yaml.Node, each func(key, value *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		return p.fail(n, "write the value itself", "an alias")
	}
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "write member: value", "a mapping is missing")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if seen[k.Value] {
			return p.fail(k, "leave one out", "%q is given twice", k.Value)
		}
		seen[k.Value] = true
		if err := each(k, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *specParser) spec(s *Spec, n *yaml.Node) error {
	var based bool
	err := p.members(n, func(k, v *yaml.Node) (err error) {
		switch k.Value {
		case "sweep":
			if v.Value != strconv.Itoa(FormatVersion) {
				err = p.fail(v, fmt.Sprintf("write %d", FormatVersion), "format %s is not known", v.Value)
			}
		case "name":
			s.Name = v.Value
		case "base":
			based, err = true, p.base(s, v)
		case "network":
			err = p.network(s, v)
		case "grid":
			err = p.grid(s, v)
		case "zip":
			err = p.zips(s, v)
		case "list":
			err = p.list(s, v)
		case "seeds":
			err = p.seeds(s, v)
		case "where":
			err = p.where(s, v)
		case "prices":
			err = p.prices(s, v)
		default:
			err = p.fail(k, "write sweep, name, base, network, grid, zip, list, seeds, where or prices",
				"%q is not known", k.Value)
		}
		return err
	})
	switch {
	case err != nil:
	case s.Network != nil && (based || s.Prices != nil):
		err = p.fail(n, "leave one out", "network: beside base: or prices:, which are of a scenario")
	case s.Network == nil && !based:
		err = p.fail(n, "write base: with a scenario (simccl run … --save-scenario prints one), or "+
			"network: with options of simccl network run", "base is missing")
	}
	if err == nil {
		err = p.values(s)
	}
	return err
}

// base converts the YAML of the base scenario to JSON, parses it strictly into s.Base, and keeps the position
// of each member for errors.
func (p *specParser) base(s *Spec, n *yaml.Node) error {
	p.lines = []placed{}
	text, err := p.json(n, "", false)
	if err != nil {
		return err
	}
	s.members, p.lines = p.lines, nil
	var spec scenario.Spec
	places, err := jsonfile.Strict(text, p.file, &spec)
	if err != nil {
		var at *fail.FileError
		if errors.As(err, &at) {
			m := placed{at: n}
			if i := at.Line - 2; i >= 0 && i < len(s.members) {
				m = s.members[i]
			}
			return p.fail(m.at, at.Hint, "base: %s%s", strings.TrimPrefix(m.path+": ", ": "), at.Problem)
		}
		return err
	}
	_ = places
	if len(spec.Grid) > 0 {
		return p.fail(n, "write grid: beside base:", "base has a grid")
	}
	s.Base = spec
	return nil
}

// network reads the options that all points have.
func (p *specParser) network(s *Spec, n *yaml.Node) error {
	r := packetrun.Defaults()
	s.Network = &r
	return p.members(n, func(k, v *yaml.Node) error {
		text, err := p.json(v, "", false)
		if err != nil {
			return err
		}
		s.members = append(s.members, placed{k.Value, v})
		return p.option(k, k.Value, s.Network.Set(k.Value, text))
	})
}

// option gives an error of an option of network run its place.
func (p *specParser) option(at *yaml.Node, name string, err error) error {
	if err == nil {
		return nil
	}
	return p.fail(at, "write an option of simccl network run, without --, and a value that it has", "%s: %v",
		name, err)
}

// line starts a new line in the JSON of base and records its YAML node, if base is being read.
func (p *specParser) line(b *bytes.Buffer, path string, at *yaml.Node) {
	if p.lines != nil {
		b.WriteByte('\n')
		p.lines = append(p.lines, placed{path, at})
	}
}

// json turns the node of a member into JSON; text makes every scalar a string.
func (p *specParser) json(n *yaml.Node, path string, text bool) (json.RawMessage, error) {
	switch n.Kind {
	case yaml.MappingNode:
		var b bytes.Buffer
		b.WriteByte('{')
		err := p.members(n, func(k, v *yaml.Node) error {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			inside := strings.TrimPrefix(path+"."+k.Value, ".")
			p.line(&b, inside, k)
			name, _ := json.Marshal(k.Value)
			b.Write(name)
			b.WriteByte(':')
			p.line(&b, inside, v)
			inner, err := p.json(v, inside, text || k.Value == "env" || k.Value == "sizes")
			b.Write(inner)
			return err
		})
		b.WriteByte('}')
		return b.Bytes(), err
	case yaml.SequenceNode:
		var b bytes.Buffer
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			inside := fmt.Sprintf("%s[%d]", path, i)
			p.line(&b, inside, c)
			inner, err := p.json(c, inside, text)
			if err != nil {
				return nil, err
			}
			b.Write(inner)
		}
		b.WriteByte(']')
		return b.Bytes(), nil
	case yaml.ScalarNode:
		if text || n.Tag == "!!str" || n.Tag == "!!timestamp" {
			return json.Marshal(n.Value)
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, p.fail(n, "write a number or a text", "%s", n.Value)
		}
		out, err := json.Marshal(v)
		if err != nil {
			return nil, p.fail(n, "write a finite number", "%s is no JSON value", n.Value)
		}
		return out, nil
	}
	return nil, p.fail(n, "write the value itself", "an alias or an empty value")
}

// setting parses a member and one of its values.
func (p *specParser) setting(k, v *yaml.Node) (Setting, error) {
	path := k.Value
	if short, ok := shortNames[path]; ok {
		path = short
	} else if strings.HasPrefix(path, "NCCL_") {
		path = "nccl.env." + path
	}
	path, list := strings.CutSuffix(path, "[]")
	text, err := p.json(v, path, strings.HasPrefix(path, "nccl.") || list)
	if list && err == nil && v.Kind != yaml.SequenceNode {
		text = json.RawMessage("[" + string(text) + "]")
	}
	return Setting{Name: k.Value, Path: path, Value: text, at: v}, err
}

func (p *specParser) grid(s *Spec, n *yaml.Node) error {
	return p.members(n, func(k, v *yaml.Node) error {
		if v.Kind != yaml.SequenceNode || len(v.Content) == 0 {
			return p.fail(v, "write a list, ["+v.Value+"]", "the values of %s are missing", k.Value)
		}
		var f Factor
		for _, c := range v.Content {
			set, err := p.setting(k, c)
			if err != nil {
				return err
			}
			f.Choices = append(f.Choices, Choice{set})
		}
		s.Factors = append(s.Factors, f)
		return nil
	})
}

// zips parses one mapping of lists of equal length, or several.
func (p *specParser) zips(s *Spec, n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			if err := p.zips(s, c); err != nil {
				return err
			}
		}
		return nil
	}
	var f Factor
	err := p.members(n, func(k, v *yaml.Node) error {
		if v.Kind != yaml.SequenceNode || len(v.Content) == 0 || f.Choices != nil &&
			len(v.Content) != len(f.Choices) {
			return p.fail(v, "write a list as long as the others", "the values of %s", k.Value)
		}
		if f.Choices == nil {
			f.Choices = make([]Choice, len(v.Content))
		}
		for i, c := range v.Content {
			set, err := p.setting(k, c)
			if err != nil {
				return err
			}
			f.Choices[i] = append(f.Choices[i], set)
		}
		return nil
	})
	if err == nil && f.Choices != nil {
		s.Factors = append(s.Factors, f)
	}
	return err
}

func (p *specParser) list(s *Spec, n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return p.fail(n, "write - {nodes: 4, size: 1M}", "list has no entries")
	}
	var f Factor
	for _, entry := range n.Content {
		var c Choice
		err := p.members(entry, func(k, v *yaml.Node) error {
			set, err := p.setting(k, v)
			c = append(c, set)
			return err
		})
		if err != nil {
			return err
		}
		f.Choices = append(f.Choices, c)
	}
	s.Factors = append(s.Factors, f)
	return nil
}

// seeds parses "0..9" or a list.
func (p *specParser) seeds(s *Spec, n *yaml.Node) error {
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: "seed"}
	if n.Kind == yaml.SequenceNode {
		return p.grid(s, &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, n}})
	}
	lo, hi, ok := strings.Cut(n.Value, "..")
	a, err1 := strconv.Atoi(strings.TrimSpace(lo))
	b, err2 := strconv.Atoi(strings.TrimSpace(hi))
	if !ok || err1 != nil || err2 != nil || a < 0 || b < a || b-a > 1<<20 {
		return p.fail(n, "write 0..9, or a list", "seeds %q", n.Value)
	}
	var f Factor
	for i := a; i <= b; i++ {
		f.Choices = append(f.Choices,
			Choice{{Name: "seed", Path: "seed", Value: json.RawMessage(strconv.Itoa(i)), at: n}})
	}
	s.Factors = append(s.Factors, f)
	return nil
}

// values tries every value by itself, so that a mistake has its place before
// anything runs.
func (p *specParser) values(s *Spec) error {
	for _, f := range s.Factors {
		for _, c := range f.Choices {
			spec, request := s.Base.Clone(), s.Network.Clone()
			for i, set := range c {
				if s.Network != nil {
					c[i].Path = set.Name
					if err := request.Set(set.Name, set.Value); err != nil {
						return p.option(set.at, set.Name, err)
					}
					continue
				}
				if err := spec.Set(set.Path, set.Value); err != nil {
					return p.fail(set.at, "write a member of a scenario file, or one of "+shortList(),
						"%s: %v", set.Name, err)
				}
			}
		}
	}
	if s.count() > scenario.MaxPoints {
		return p.fail(nil, "leave values out", "more than %d points", scenario.MaxPoints)
	}
	return nil
}
