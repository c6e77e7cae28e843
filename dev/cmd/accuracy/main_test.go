package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// call calls the command on the project's own files.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append(args, "-topos", golden.Root(t, "testdata", "topos"), "-measured",
		golden.Root(t, "testdata", "measured", "h200x4")), &out)
	return out.String(), err
}

// TestShow lists the points that are meant, and no others.
func TestShow(t *testing.T) {
	out, err := call(t, "show", "default_4", "-op", "all_reduce", "-proto", "LL")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "default_4 ") || !strings.Contains(line, "AllReduce") ||
			!strings.Contains(line, "/LL ") {
			t.Errorf("not asked for: %s", line)
		}
	}
	held, err := call(t, "show", "default_4", "-op", "all_reduce", "-proto", "LL", "-held")
	if err != nil || held == out || len(lines) < 3 {
		t.Errorf("%d points; those that are held out are the same: %t (%v)", len(lines), held == out, err)
	}
	other, err := call(t, "show", "default_4", "-op", "all_reduce", "-proto", "LL", "-class", "gap_ll=9")
	if err != nil || other == out {
		t.Errorf("gap_ll=9 changes nothing (%v)", err)
	}
}

// TestFit fits a quantity that was changed back to about what it was.
func TestFit(t *testing.T) {
	out, err := call(t, "fit", "gap_ll", "-set", "default_4", "-op", "all_reduce", "-proto", "LL", "-class",
		"gap_ll=6")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "-class gap_ll=3.") {
		t.Errorf("gap_ll was fitted from 6 to\n%s", out)
	}
}

// TestPublic compares a small table.
func TestPublic(t *testing.T) {
	out, err := call(t, "public", "h100_2n1g_send", "-tables", golden.Shared(t, "measured", "public"))
	if err != nil || !strings.HasPrefix(out, "h100_2n1g_sendrecv ") {
		t.Errorf("%q %v", out, err)
	}
}

// TestMistakes are reported.
func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{}, {"show"}, {"look", "all"}, {"show", "nothing"},
		{"show", "all", "-class", "gap_ll"}, {"show", "all", "-class", "gap=1"},
		{"fit", "gap_xy"}, {"public", "nothing"}} {
		var out bytes.Buffer
		if len(args) > 1 {
			args = append(args, "-topos", golden.Root(t, "testdata", "topos"), "-measured",
				golden.Root(t, "testdata", "measured", "h200x4"))
		}
		if err := run(t.Context(), args, &out); err == nil {
			t.Errorf("%v is accepted: %s", args, out.String())
		}
	}
}
