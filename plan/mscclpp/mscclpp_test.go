package mscclpp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/plan/schedule"
)

// proveAt checks a schedule with so many elements in each chunk.
func proveAt(s *schedule.Schedule, each int64) error {
	r, err := s.Request(s.Unit()*each, coll.Float32)
	if err != nil {
		return err
	}
	return s.Check(s.Alone(), r)
}

func own(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "schedules", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var ownPlus = []string{"packets2.json", "packets4.json", "pulled2.json"}

// TestPlusSamples: MSCCL++'s own test plans are proven, but for the one whose thread
// blocks share scratch memory that nothing orders: there the element is named.
func TestPlusSamples(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared")
	if at := os.Getenv("SIMCCL_SHARED"); at != "" {
		root = at
	}
	list, _ := filepath.Glob(filepath.Join(root, "workloads", "samples", "mscclpp_json", "*.json"))
	if len(list) == 0 {
		t.Skip("shared/workloads/samples/mscclpp_json is not there")
	}
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(text, filepath.Base(name))
		if err == nil {
			err = proveAt(s, 4)
		}
		if strings.HasSuffix(name, "plans_reduce_tbg.json") {
			if err == nil || !strings.Contains(err.Error(),
				"244:13: gpu 0 tb 1 step 6: touches chunk 0 of s of gpu 1 like gpu 1 tb 0 op 0") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestOwnPlus: the project's plans are proven, and make plans of any size.
func TestOwnPlus(t *testing.T) {
	for _, name := range ownPlus {
		s, err := Read([]byte(own(t, name)), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := proveAt(s, 1); err != nil {
			t.Error(err)
		}
		r, err := s.Request(s.Unit()*(1<<19), coll.Float32)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(s.Alone(), r)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Plan(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlusFaults: each damage of a right plan is found, with its element.
func TestPlusFaults(t *testing.T) {
	packets, pulled := own(t, "packets2.json"), own(t, "pulled2.json")
	const signal = `{"name": "signal", "channel_ids": [0], "channel_type": "memory"}`
	for _, c := range []struct{ name, text, old, now, want string }{
		{"packets that nobody writes", packets, `"dst_buff": [{"buffer_id": 0, "index": 0, "size": 2}]`,
			`"dst_buff": [{"buffer_id": 0, "index": 0, "size": 1}]`, "dst_buff 0 has 1 chunks"},
		{"a source that is too long", packets, `"index": 0, "size": 2}], "dst_buff"`,
			`"index": 1, "size": 2}], "dst_buff"`, "which has 2"},
		{"packets of a place where none come", packets, `{"type": "s", "index": 1, "size": 1}`,
			`{"type": "s", "index": 0, "size": 1}`, "adds byte"},
		{"no wait before the read", pulled,
			`{"name": "wait", "channel_ids": [0], "channel_type": "memory"}, {"name": "nop"}`,
			`{"name": "nop"}`, "once more than it waits"},
		{"no nop behind a wait", pulled, `{"name": "nop"},`, "", "do not know of the wait"},
		{"an unknown operation", pulled, `"rres"`, `"rrez"`, "no operation of MSCCL++"},
		{"a reduction that is none", pulled, `"reduce_op": "sum"`, `"reduce_op": "min"`, "write sum"},
		{"no end", pulled, `"reduce_op": "sum"`, `"reduce_op": "su`, "no JSON"},
		{"a member twice", pulled, `"protocol": "Simple"`, `"protocol": "Simple", "protocol": "LL"`,
			"a second member"},
		{"a channel that is not there", pulled, signal, strings.Replace(signal, "[0]", "[1]", 1),
			"write a number from 0 to 0"},
		{"a channel of another kind", pulled, signal, strings.Replace(signal, "memory", "port", 1),
			"the thread block has no port channel"},
	} {
		text := c.text
		if c.name == "no wait before the read" || c.name == "no nop behind a wait" {
			text = strings.ReplaceAll(text, "},\n      {", "}, {")
		}
		if !strings.Contains(text, c.old) {
			t.Fatalf("%s: %s is not in the plan", c.name, c.old)
		}
		s, err := Read([]byte(strings.Replace(text, c.old, c.now, 1)), "x.json")
		if err == nil {
			err = proveAt(s, 3)
		}
		var e *schedule.Error
		if !errors.As(err, &e) || e.Pos.Line == 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a place and %q", c.name, err, c.want)
		}
	}
}

// FuzzReadPlus: no text makes the reader or the proof panic, and what is refused is an
// *Error or a plan that is too large.
func FuzzReadPlus(f *testing.F) {
	for _, name := range ownPlus {
		text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "schedules", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(text, "f.json")
		var e *schedule.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if err != nil || len(s.GPUs) > 8 || s.Chunks > 64 || len(text) > 1<<14 {
			return
		}
		err = proveAt(s, 1)
		var large *plan.UnsupportedError
		if err != nil && !errors.As(err, &e) && !errors.As(err, &large) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
