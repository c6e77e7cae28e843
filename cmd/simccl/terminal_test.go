package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/internal/termtext"
)

// hostileName is a name that would clear a screen, set a title, turn the order
// of what is read and forge a line. XML cannot hold ESC, so it has C1's CSI.
const (
	hostileXML  = "evil&#x9b;2J&#x7f;&#x202e;&#x2066;&#x200f;&#x2028;&#10;FORGED"
	hostileJSON = `evil\u001b[2J\u001b]0;owned\u0007\u009b31m\u007f\u202e\u2028\r\nFORGED`
)

// hostileFiles writes a topology, a fabric, a machine class and a trace whose
// every name is hostile.
func hostileFiles(t *testing.T, dir string) {
	t.Helper()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	topo, err := os.ReadFile(golden.Root(t, "testdata", "topos", "hgx-a100-4.xml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(topo), `name="mlx5_`, `name="`+hostileXML+`mlx5_`)
	if text == string(topo) {
		t.Fatal("the topology has no NIC of that name")
	}
	write("t.xml", text)
	write("u.xml", strings.Replace(text, `<cpu numaid="0"`, `<cpu `+"evil"+`="`+hostileXML+`" numaid="0"`, 1))
	write("f.json", `{"switches":[{"name":"`+hostileJSON+`"}],"cables":[`+
		`{"a":"node0/0","b":"`+hostileJSON+`","gbit":100,"count":1},{"a":"node1/0","b":"`+hostileJSON+
		`","gbit":100,"count":1}]}`)
	write("c.json", `{"name":"`+hostileJSON+`","machine":"`+hostileJSON+`","source":"estimated"}`)
	trace := `{"otherData":{"source":"NAME"},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"NAME"}},{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"NAME"}},
{"ph":"X","pid":1,"tid":2,"ts":1,"dur":DUR,"name":"NAME","cat":"NAME","args":{"opcode":"NAME"}},{"ph":"X","pid":1,"tid":2,"ts":2,"dur":9,"name":"NAME","cat":"NAME"},
{"ph":"C","pid":1,"ts":1,"name":"NAME","args":{"NAME":1}},{"ph":"C","pid":2,"ts":1,"name":"NAME","args":{"NAME":"NAME"}},{"ph":"e","id":"NAME","pid":1,"ts":1,"name":"NAME"},
{"ph":"f","id":"NAME","pid":1,"tid":2,"ts":1,"name":"NAME","cat":"x"},{"ph":"i","pid":1,"tid":2,"ts":"NAME","name":"NAME"},{"ph":"NAME","ts":1,"name":"NAME"}]}`
	for name, dur := range map[string]string{"a.json": "2", "b.json": "3"} {
		write(name, strings.NewReplacer("NAME", hostileJSON, "DUR", dur).Replace(trace))
	}
	good := strings.Index(trace, `{"ph":"C","pid":2`) // what all readers take
	for name, dur := range map[string]string{"ga.json": "2", "gb.json": "3"} {
		write(name, strings.NewReplacer("NAME", hostileJSON, "DUR",
			dur).Replace(strings.TrimRight(trace[:good], ",")+"]}"))
	}
	write("bad.json", `{"traceEvents":[`+"\x1b[2J\u202e\u009b"+`]}`)
	write("bad.xml", "<system version=\"1\"><cpu numaid=\"\u009b2J\u202e\u007f\"/></system>")
}

// hostileLine is a command line over hostile files.
type hostileLine struct {
	name string // that must show in some form; empty: none need
	args []string
}

func hostileLines() []hostileLine {
	wide := []string{"--topo", "t.xml", "--nodes", "2"}
	fabric := append([]string{"--fabric", "f.json"}, wide...)
	return []hostileLine{
		{"", append([]string{"run", "all_reduce", "--sizes", "1M", "--columns", "+limit"}, wide...)},
		{"control character U+001B", append([]string{"run", "all_reduce", "--sizes", "1M", "--columns",
			"+limit,expect"}, fabric...)},
		{"evil", append([]string{"run", "all_reduce", "--sizes", "1M", "--json"}, fabric...)},
		{"evil", append([]string{"run", "all_reduce", "--sizes", "1M", "-J", "r.json", "--trace", "t.json",
			"--trace-detail", "packet", "--ops", "o.csv"}, wide...)},
		{"evil", []string{"trace", "stats", "t.json"}},
		{"control character U+001B", append([]string{"run", "all_reduce", "--sizes", "1K", "--machine-class",
			"./c.json"}, wide...)},
		{"evil", append([]string{"run", "all_reduce", "--sizes", "1K", "--nccl-log"}, wide...)},
		{"", []string{"run", "all_reduce", "--sizes", "1K", "--topo", "bad.xml"}},
		{"", append([]string{"run", "\u009b2J", "--sizes", "\u202e"}, wide...)},
		{"evil", append([]string{"explain", "all_reduce", "1M"}, fabric...)},
		{"evil", append([]string{"inspect"}, wide...)},
		{"evil", append([]string{"inspect", "--json"}, wide...)},
		{"", append([]string{"graph"}, wide...)},
		{"", append([]string{"tune", "all_reduce"}, wide...)},
		{"", append([]string{"plan", "all_reduce", "1K"}, wide...)},
		{"", append([]string{"report", "all_reduce", "1K", "-o", "r.html"}, wide...)},
		{"", append([]string{"diff", "all_reduce", "1M", "--with-topo", "u.xml"}, wide...)},
		{"evil", []string{"topo", "show", "t.xml"}}, {"evil", []string{"topo", "show", "--json", "t.xml"}},
		{"evil", []string{"topo", "lint", "u.xml"}}, {"", []string{"topo", "lint", "bad.xml"}},
		{"evil", []string{"topo", "diff", "t.xml", "u.xml"}}, {"evil", []string{"topo", "convert", "t.xml"}},
		{"", append([]string{"env"}, "--env", "NCCL_IB_HCA=\u009b2J\u202e")},
		{"evil", []string{"trace", "stats", "ga.json"}},
		{"evil", []string{"trace", "stats", "--json", "ga.json"}},
		{"evil", []string{"trace", "stats", "a.json"}},
		{"evil", []string{"trace", "diff", "a.json", "b.json"}},
		{"evil", []string{"trace", "diff", "ga.json", "gb.json"}},
		{"evil", []string{"trace", "diff", "--json", "ga.json", "gb.json"}},
		{"evil", []string{"trace", "validate", "a.json"}},
		{"evil", []string{"trace", "validate", "--json", "a.json"}},
		{"", []string{"trace", "validate", "bad.json"}},
		{"", []string{"trace", "merge", "-o", "m.json", "ga.json", "gb.json"}},
		{"evil", []string{"trace", "stats", "m.json"}}, {"", []string{"trace", "stats", "\u009b2J.json"}},
		{"", []string{"\u009b2J\u202e"}}, {"", []string{"check", "\u009b2J"}},
		{"", []string{"report", "\u009b2J"}},
	}
}

// TestNoControlCharacterReachesATerminal runs every command over hostile files
// and wants neither stream to hold a control character but newline and tab, nor
// a line that a name forged.
func TestNoControlCharacterReachesATerminal(t *testing.T) {
	dir := t.TempDir()
	hostileFiles(t, dir)
	t.Chdir(dir)
	for _, c := range hostileLines() {
		var out, err bytes.Buffer
		code := run(context.Background(), c.args, appOf(process.Process{Out: &out, Err: &err}))
		line := "simccl " + strings.Join(c.args, " ")
		shown := out.String() + err.String()
		for _, r := range shown {
			if termtext.Control(r) && r != '\n' && r != '\t' {
				t.Errorf("%q prints %U", line, r)
				break
			}
		}
		if strings.Contains(shown, "\nFORGED") {
			i := strings.Index(shown, "\nFORGED")
			t.Errorf("%q: a name begins a line of its own: %q", line,
				shown[max(0, i-80):min(len(shown), i+20)])
		}
		if code == cli.StatusInternal {
			t.Errorf("%q: status %d: %s", line, code, &err)
		}
		if c.name != "" && !strings.Contains(shown, c.name) {
			t.Errorf("%q does not show the name at all, so this proves nothing: status %d, %.300q", line,
				code, shown)
		}
		if at := strings.IndexByte(out.String(), '{'); strings.Contains(line, "--json") && at == 0 &&
			!json.Valid(out.Bytes()) {
			t.Errorf("%q: the JSON is none: %.200q", line, &out)
		}
	}
}
