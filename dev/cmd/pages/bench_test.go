package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	in := `goos: linux
goarch: amd64
pkg: github.com/simccl/simccl/search
cpu: A CPU @ 2.00GHz
BenchmarkSearch/8gpus-2         	     100	  2000000 ns/op	    2048 B/op	       3 allocs/op
BenchmarkSearch/8gpus-2         	     100	  9000000 ns/op	    2048 B/op	       3 allocs/op
BenchmarkSearch/8gpus-2         	     100	  3000000 ns/op	    2048 B/op	       3 allocs/op
PASS
ok  	github.com/simccl/simccl/search	1.2s
goos: linux
pkg: github.com/simccl/simccl/sim/internal/event
cpu: A CPU @ 2.00GHz
BenchmarkEngine-2   	 1000000	       212.4 ns/op	   4708098 events/s
?   	github.com/simccl/simccl/units	[no test files]
`
	var out strings.Builder
	if err := convert(strings.NewReader(in), &out, "A note."); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"on linux, amd64, A CPU @ 2.00GHz.",
		"\nA note.\n\n## search\n\n| benchmark",
		"| Search/8gpus | 3 ms | 2 KiB | 3 |  |\n",
		"| Engine | 212 ns |  |  | 4.71M events/s |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, bad := range []string{"", "goos: linux\n", "pkg: x\nBenchmarkA-2 1 2 ns/op\nFAIL\tx 1s\n"} {
		if err := convert(strings.NewReader(bad), &out, ""); err == nil {
			t.Errorf("%q gave a table", bad)
		}
	}
}
