package validate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
)

// mixed is a trace with many warnings before few errors.
func mixed() string {
	var b strings.Builder
	b.WriteString(
		`{"otherData":{"schema":"simccl/1"},"traceEvents":[{"ph":"X","pid":1,"tid":2,"ts":0,"dur":100000,"name":"a"}`)
	for i := range 50 {
		fmt.Fprintf(&b, ",\n"+`{"ph":"s","pid":1,"tid":2,"ts":%d,"id":%d,"cat":"c","name":"x"}`, i+1, i)
	}
	for i := range 8 {
		fmt.Fprintf(&b, ",\n"+`{"ph":"f","pid":1,"tid":2,"ts":%d,"id":%d,"cat":"c","name":"x"}`, 100+i,
			1000+i)
	}
	b.WriteString(",\n" + `{"ph":"i","pid":1,"tid":2,"name":"n"}]}`)
	return b.String()
}

// TestErrorsComeFirst: examples of each kind, errors before warnings, the rest
// counted; every one where all are asked for.
func TestErrorsComeFirst(t *testing.T) {
	rep, err := CheckWith(strings.NewReader(mixed()), Options{All: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range rep.Problems {
		got = append(got, fmt.Sprintf("%d %t +%d", p.Line, p.Warning, p.More))
	}
	want := []string{"52 false +0", "53 false +0", "54 false +0", "55 false +0", "56 false +3", "60 false +0",
		"2 true +0", "3 true +0", "4 true +0", "5 true +0", "6 true +45"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if rep.Errors != 9 || rep.Warnings != 50 || len(rep.All) != 59 || rep.LeftOut != 0 {
		t.Errorf("%d errors, %d warnings, %d listed, %d left out", rep.Errors, rep.Warnings, len(rep.All),
			rep.LeftOut)
	}
	for i := 1; i < len(rep.All); i++ {
		if before(rep.All[i-1], rep.All[i]) > 0 {
			t.Errorf("%v before %v", rep.All[i-1], rep.All[i])
		}
	}
	if some, err := Check(strings.NewReader(mixed())); err != nil || len(some.All) != 0 ||
		len(some.Problems) != 11 {
		t.Errorf("%v, %d listed, %d examples", err, len(some.All), len(some.Problems))
	}
}

// long is a trace of n slices and arrows in the order of time, with something
// broken here and there, or the same out of order.
func long(n int, broken, unsorted bool) string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for i := range n {
		at := 10 * i
		add(`{"ph":"X","pid":1,"tid":2,"ts":%d,"dur":9,"name":"a"}`, at)
		add(`{"ph":"X","pid":1,"tid":2,"ts":%d,"dur":5,"name":"b"}`, at)
		if broken && i%900 == 7 {
			add(`{"ph":"X","pid":1,"tid":2,"ts":%d,"dur":7,"name":"over"}`, at+4)
			add(`{"ph":"f","pid":1,"tid":2,"ts":%d,"id":%d,"cat":"c","name":"x"}`, at+4, i-7) // used long ago
		}
		add(`{"ph":"s","pid":1,"tid":2,"ts":%d,"id":%d,"cat":"c","name":"x"}`, at+5, i)
		add(`{"ph":"f","pid":1,"tid":2,"ts":%d,"id":%d,"cat":"c","name":"x"}`, at+6, i)
	}
	if unsorted {
		list[0], list[8] = list[8], list[0]
	}
	return `{"otherData":{"schema":"simccl/1"},"traceEvents":[` + strings.Join(list, ",\n") + "]}"
}

// TestSweepingFindsTheSame: a file in the order of time is checked as it is
// read; what is found is what a check of the whole finds.
func TestSweepingFindsTheSame(t *testing.T) {
	const n = 5000
	opt := Options{sweepAt: 500}
	swept, err := CheckWith(strings.NewReader(long(n, true, false)), opt)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := CheckWith(strings.NewReader(long(n, true, true)), opt) // kept to the end
	if err != nil {
		t.Fatal(err)
	}
	if swept.Errors == 0 || swept.Errors != whole.Errors || swept.Warnings != whole.Warnings ||
		swept.Flows != whole.Flows {
		t.Errorf("swept: %d errors, %d warnings, %d arrows; whole: %d, %d, %d", swept.Errors, swept.Warnings,
			swept.Flows, whole.Errors, whole.Warnings, whole.Flows)
	}
	clean, err := CheckWith(strings.NewReader(long(n, false, false)), opt)
	if err != nil || clean.Errors+clean.Warnings != 0 || clean.Slices != 2*n {
		t.Errorf("%v: %d slices, %v", err, clean.Slices, clean.Problems)
	}
}

// TestCheckKeepsWithinItsMemory: a long file in order needs little, one out of
// order ends with the bound.
func TestCheckKeepsWithinItsMemory(t *testing.T) {
	const n = 4000
	opt := Options{Memory: 1 << 20, sweepAt: 500}
	if _, err := CheckWith(strings.NewReader(long(n, false, false)), opt); err != nil {
		t.Errorf("in order: %v", err)
	}
	_, err := CheckWith(strings.NewReader(long(n, false, true)), opt)
	var limit *trace.LimitError
	if !errors.As(err, &limit) || limit.Line == 0 || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("out of order: %v", err)
	}
}

// TestNamesAreCut: a name of 60,000 characters, or one with control characters,
// is no message.
func TestNamesAreCut(t *testing.T) {
	name := `\u001b[2J` + strings.Repeat("x", 60000)
	rep, err := CheckWith(strings.NewReader(`[{"ph":"X","pid":1,"tid":2,"ts":1,"name":"`+name+
		`"},{"ph":"f","pid":1,"tid":2,"ts":1,"id":"`+name+`"}]`), Options{All: true})
	if err != nil || len(rep.All) == 0 {
		t.Fatal(err, rep.All)
	}
	for _, p := range rep.All {
		if len(p.String()) > 300 || strings.ContainsRune(p.String(), 0x1b) {
			t.Errorf("%.400q", p.String())
		}
	}
}
