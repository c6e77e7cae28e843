package load_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/workload/load"
)

// TestBombs: an input of kilobytes that would become gigabytes is refused with the place, whatever its
// reader makes of an input that ends.
func TestBombs(t *testing.T) {
	const limit = 1 << 20
	for name, text := range map[string]string{
		"marks.pkl": "\x80\x02}" + strings.Repeat("(", limit),
		"kineto.json": `{"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":1},"traceEvents":[` +
			strings.Repeat(
				`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{"stream":7}},`,
				limit/64),
		"native.txt": "workload 1\nranks 8\ncomm world *\nlist a 0-7\n" +
			strings.Repeat("  call 0 world all_reduce half sum 4\n", limit/32),
	} {
		t.Run(name, func(t *testing.T) {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := io.WriteString(z, text); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			read := int64(0)
			budget := &bounded.Budget{Limit: limit, Held: func(bool) int64 { read += 1 << 19; return read }}
			open := func() (io.ReadCloser, error) { return io.NopCloser(&packed), nil }
			_, err := load.Load([]load.File{{Name: name + ".gz", Open: open}}, load.Options{Budget: budget})
			var over *bounded.OverBudgetError
			if !errors.As(err, &over) || over.Name != name || over.At == 0 || over.At >= int64(len(text)) {
				t.Errorf("%v", err)
			}
		})
	}
}
