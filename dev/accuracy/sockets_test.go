package accuracy

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/units"
)

// hosts are NCCL's runs over loopback TCP on one machine, as hosts of its own:
// the only times over sockets that were measured.
var hosts = []struct {
	name, log, topo string
	nodes, gpus     int
}{
	{"4 hosts of 1 GPU", "host_4x1", "h200x4-h4x1", 4, 1},
	{"2 hosts of 2 GPUs", "host_2x2", "h200x4-h2x2", 2, 2},
}

var hostTime = regexp.MustCompile(`^HB \S+ (\w+) (\d+) ([0-9.]+) us`)

// TestAccuracyOverSockets holds the rows of docs/TIMING.md about sockets to what
// is simulated, and the errors within what they were when it was written.
func TestAccuracyOverSockets(t *testing.T) {
	page, err := os.ReadFile(golden.Root(t, "docs", "TIMING.md"))
	if err != nil {
		t.Fatal(err)
	}
	var large sum
	for _, h := range hosts {
		sums := map[string]*sum{}
		low, high := map[string]float64{}, map[string]float64{}
		for _, p := range readHosts(t, h.log) {
			pub := Published{topo: h.topo, nodes: h.nodes, gpus: h.gpus, env: []string{"NCCL_NVLS_ENABLE=0"}}
			m, err := pub.load(os.DirFS(golden.Root(t, "testdata", "topos")), "2.28.9")
			if err != nil {
				t.Fatal(err)
			}
			res, _, err := m.run(t.Context(), comm.Op{Func: p.f, Type: coll.Float32,
				Count: coll.ExactSizes(p.f, units.Bytes(p.bytes), coll.Float32, m.site.Comm.NRanks).Count})
			if err != nil {
				t.Fatal(err)
			}
			off := res.Elapsed.Micros()/p.us - 1
			kind := "1 to 16 KiB"
			switch {
			case p.bytes >= 4<<20:
				kind = "4 to 64 MiB"
				large.add(off)
			case p.bytes >= 64<<10:
				kind = "64 KiB to 1 MiB"
			}
			if sums[kind] == nil {
				sums[kind], low[kind], high[kind] = new(sum), math.Inf(1), math.Inf(-1)
			}
			sums[kind].add(off)
			low[kind], high[kind] = min(low[kind], off), max(high[kind], off)
		}
		for _, kind := range []string{"1 to 16 KiB", "64 KiB to 1 MiB", "4 to 64 MiB"} {
			row := fmt.Sprintf("| %s | %s | %d | %.0f | %+.0f to %+.0f |", h.name, kind, sums[kind].n,
				100*sums[kind].mean(), 100*low[kind], 100*high[kind])
			if !strings.Contains(string(page), row) {
				t.Errorf("docs/TIMING.md has no row\n%s", row)
			}
		}
	}
	if m := large.mean(); m > 0.12 {
		t.Errorf("%.1f %% off from 4 MiB on; it was 10", 100*m)
	}
}

// hostPoint is a measured time of all operations of a size.
type hostPoint struct {
	f     coll.Func
	bytes int64
	us    float64
}

func readHosts(t *testing.T, log string) (out []hostPoint) {
	t.Helper()
	f, err := os.Open(filepath.Join(golden.Root(t, "testdata", "measured", "h200x4"), "logs", log+".log.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(z); sc.Scan(); {
		m := hostTime.FindStringSubmatch(sc.Text())
		if m == nil {
			continue
		}
		p := hostPoint{}
		if p.f, err = coll.ParseFunc(m[1]); err != nil {
			t.Fatal(err)
		}
		p.bytes, _ = strconv.ParseInt(m[2], 10, 64)
		p.us, _ = strconv.ParseFloat(m[3], 64)
		out = append(out, p)
	}
	if len(out) != 27 {
		t.Fatalf("%s: %d times, want 27", log, len(out))
	}
	return out
}
