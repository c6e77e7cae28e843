package validate

import (
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/simccl/simccl/internal/termtext"
)

// FuzzProblems checks any file, compressed or not: nothing panics, no message holds
// a control character, and a small memory and early sweeps change only how it
// ends.
func FuzzProblems(f *testing.F) {
	f.Add([]byte(mixed()))
	f.Add([]byte(long(20, true, false)))
	f.Add([]byte(
		`[{"ph":"B","ts":1,"pid":"a","tid":1,"name":"x\u009b"},{"ph":"E","ts":0,"pid":"a","tid":1,"name":"\n"},{"ph":"C","ts":2,"name":"c","args":{"v":1e999}}]`))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte(long(5, true, true)))
	_ = w.Close()
	f.Add(z.Bytes())
	f.Add(z.Bytes()[:z.Len()-9])
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := CheckWith(bytes.NewReader(data), Options{All: true, Memory: 32 << 20})
		for _, p := range whole.All {
			for _, r := range p.String() {
				if termtext.Control(r) {
					t.Fatalf("%q holds %U", p.String(), r)
				}
			}
		}
		if err == nil && len(whole.All)+whole.LeftOut != whole.Errors+whole.Warnings {
			t.Fatalf("%d listed, %d left out of %d and %d", len(whole.All), whole.LeftOut, whole.Errors,
				whole.Warnings)
		}
		swept, sweptErr := CheckWith(bytes.NewReader(data), Options{Memory: 32 << 20, sweepAt: 4})
		if err == nil && sweptErr == nil && (swept.Errors != whole.Errors ||
			swept.Warnings != whole.Warnings) {
			t.Fatalf("swept early: %d errors, %d warnings; at the end: %d, %d", swept.Errors, swept.Warnings,
				whole.Errors, whole.Warnings)
		}
	})
}
