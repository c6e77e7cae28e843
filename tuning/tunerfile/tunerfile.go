// Package tunerfile reads and writes the file of NCCL's example tuner plugin, CSV rows
// that name a choice for a range of sizes (ext-tuner/example/plugin.c of v2.28.9; the
// same from 2.27.5 to 2.30.7).
//
// What it must not know: files, what a row is worth.
package tunerfile

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/tuning"
)

// Limits of the plugin: fields of a row, and bytes of a line with its end.
const (
	leastFields = 8
	mostFields  = 10
	maxLine     = 255
)

// channelsElse is what the plugin asks for where no row says another (plugin.c:359).
const channelsElse = 1

// Line is a row and its place in the file.
type Line struct {
	tuning.Row
	Number int // from 1
	Text   string
}

// File is what the plugin makes of a file, and what is odd in it.
type File struct {
	Name     string
	Lines    []Line
	Problems []*Problem
}

// Problem is a place that the plugin does not read as it is written. It ends nothing:
// the plugin goes on in silence.
type Problem struct {
	File         string
	Line, Column int // from 1
	What         string
	Instead      string // what to write
}

// Error has the place first.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; %s", p.File, p.Line, p.Column, p.What, p.Instead)
}

// Example reports whether a value of NCCL_TUNER_PLUGIN names the example plugin: NCCL
// opens libnccl-tuner-NAME.so, or the file.
func Example(plugin string) bool {
	name := path.Base(plugin)
	return name == "example" || strings.Contains(name, "libnccl-tuner-example.")
}

// Plugin is the plugin with the file's rows.
func (f *File) Plugin() *tuning.Plugin {
	p := &tuning.Plugin{Channels: channelsElse}
	for i := range f.Lines {
		p.Rows = append(p.Rows, f.Lines[i].Row)
	}
	return p
}

// Load is the plugin of NCCL_TUNER_PLUGIN and NCCL_TUNER_CONFIG_FILE and the bytes of
// its file; nil where it is not the example, or has no file. Problems go to warn.
func Load(plugin, file string, read func(string) ([]byte, error), warn func(error)) (*tuning.Plugin, []byte,
	error) {
	if !Example(plugin) || file == "" {
		return nil, nil, nil
	}
	data, err := read(file)
	if err != nil {
		return nil, nil, err
	}
	f := Parse(data, file)
	for _, p := range f.Problems {
		warn(p)
	}
	return f.Plugin(), data, nil
}

// Parse reads rows as the plugin does. No file is refused.
func Parse(data []byte, name string) *File {
	f := &File{Name: name}
	for i, text := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		p := parser{file: f, number: i + 1, text: text}
		if text == "" || text[0] == '#' {
			continue
		}
		if len(text) > maxLine-1 {
			p.problem(maxLine,
				fmt.Sprintf("the plugin reads lines of up to %d bytes and takes the rest for a line of its "+
					"own", maxLine-1), "write a shorter line")
			continue
		}
		p.row()
	}
	return f
}

// parser reads one line.
type parser struct {
	file   *File
	number int
	text   string
	fields []field
}

// field is one value and where it begins, from 1.
type field struct {
	text   string
	column int
}

func (p *parser) problem(column int, what, instead string) {
	p.file.Problems = append(p.file.Problems, &Problem{p.file.Name, p.number, column, what, instead})
}

// split cuts a line at commas as strtok does: an empty field is no field.
func (p *parser) split() {
	at := 0
	for _, s := range strings.Split(p.text, ",") {
		if s == "" {
			p.problem(at+1, "an empty field, which the plugin leaves out, so that the next takes its place",
				"write -1")
		} else {
			lead := len(s) - len(strings.TrimLeft(s, " \t"))
			p.fields = append(p.fields, field{strings.Trim(s, " \t\r"), at + 1 + lead})
		}
		at += len(s) + 1
	}
	if len(p.fields) > mostFields {
		p.problem(p.fields[mostFields].column, fmt.Sprintf("more than %d fields", mostFields),
			"leave the others out")
	}
}

func (p *parser) row() {
	p.split()
	if len(p.fields) < leastFields {
		p.problem(1, fmt.Sprintf("%d fields: the plugin drops the row", len(p.fields)),
			"write collective,min,max,algorithm,protocol,channels,nodes,ranks[,operations a "+
				"channel[,registered]]")
		return
	}
	r := tuning.Row{Func: word(p, 0, collectives, coll.AllReduce), Min: p.size(1), Max: p.size(2),
		Algo:  word(p, 3, algorithms, coll.Ring),
		Proto: word(p, 4, protocols, coll.Simple), Channels: p.number32(5), Nodes: p.number32(6),
		Ranks: p.number32(7), Pipe: -1, Registered: -1}
	if len(p.fields) > 8 {
		r.Pipe = p.number32(8)
	}
	if len(p.fields) > 9 {
		r.Registered = p.number32(9)
	}
	if r.Min > r.Max {
		p.problem(p.fields[1].column, fmt.Sprintf("the least size, %d, is above the most, %d", r.Min, r.Max),
			"exchange them")
	}
	p.file.Lines = append(p.file.Lines, Line{r, p.number, p.text})
}

// named is a word of the file.
type named[T any] struct {
	word string
	is   T
}

var (
	collectives = []named[coll.Func]{{"broadcast", coll.Broadcast}, {"reduce", coll.Reduce},
		{"allgather", coll.AllGather}, {"reducescatter", coll.ReduceScatter}, {"allreduce", coll.AllReduce}}
	algorithms = []named[coll.Algorithm]{{"tree", coll.Tree}, {"ring", coll.Ring},
		{"collnet_direct", coll.CollNetDirect}, {"collnet_chain", coll.CollNetChain}, {"nvls", coll.NVLS},
		{"nvls_tree", coll.NVLSTree}, {"pat", coll.PAT}}
	protocols = []named[coll.Protocol]{{"ll", coll.LL}, {"ll128", coll.LL128}, {"simple", coll.Simple}}
)

// word reads a word; the plugin takes one that it does not know for otherwise.
func word[T comparable](p *parser, i int, words []named[T], otherwise T) T {
	f := p.fields[i]
	var all []string
	for _, w := range words {
		if w.word == f.text {
			return w.is
		}
		all = append(all, w.word)
	}
	p.problem(f.column, fmt.Sprintf("%q: the plugin does not know it and takes %s", f.text,
		wordOf(words, otherwise)), "write one of "+strings.Join(all, ", "))
	return otherwise
}

func wordOf[T comparable](words []named[T], v T) string {
	for _, w := range words {
		if w.is == v {
			return w.word
		}
	}
	return ""
}

// size reads as strtoull with base 10.
func (p *parser) size(i int) uint64 {
	f := p.fields[i]
	n := len(f.text) - len(strings.TrimLeft(f.text, "0123456789"))
	v, err := strconv.ParseUint(f.text[:n], 10, 64)
	switch {
	case n == 0:
		v = 0
	case err != nil:
		v = 1<<64 - 1
	}
	if n < len(f.text) || n == 0 {
		p.problem(f.column, fmt.Sprintf("%q is no number of bytes: the plugin reads %d", f.text, v),
			"write digits alone")
	}
	return v
}

// number32 reads as atoi.
func (p *parser) number32(i int) int {
	f := p.fields[i]
	sign := len(f.text) - len(strings.TrimLeft(f.text, "+-"))
	n := sign + len(f.text[sign:]) - len(strings.TrimLeft(f.text[sign:], "0123456789"))
	v, err := strconv.ParseInt(f.text[:n], 10, 32)
	if err != nil {
		v = 0
	}
	if err != nil || n < len(f.text) {
		p.problem(f.column, fmt.Sprintf("%q is no number: the plugin reads %d", f.text, v),
			"write digits, or -1 for any")
	}
	return int(v)
}

// Write is a file of rows, with comments before them.
func Write(rows []tuning.Row, comments ...string) []byte {
	var b strings.Builder
	for _, c := range comments {
		fmt.Fprintf(&b, "# %s\n", c)
	}
	b.WriteString("# collective,min bytes,max bytes,algorithm,protocol,channels,nodes,ranks,operations a " +
		"channel,registered\n")
	for i := range rows {
		b.WriteString(Text(&rows[i]) + "\n")
	}
	return []byte(b.String())
}

// Text is a row as a file has it.
func Text(r *tuning.Row) string {
	return fmt.Sprintf("%s,%d,%d,%s,%s,%d,%d,%d,%d,%d", wordOf(collectives, r.Func), r.Min, r.Max,
		wordOf(algorithms, r.Algo), wordOf(protocols, r.Proto),
		r.Channels, r.Nodes, r.Ranks, r.Pipe, r.Registered)
}
