package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/jobs"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/dev/golden"
)

// TestHostAuto: decoding without graphs, whose host is the limit, runs with the host as it
// is estimated; in a graph, where the GPU is, with none.
func TestHostAuto(t *testing.T) {
	for _, c := range []struct{ traces, meta, host string }{
		{"trace_rank*", "meta.json", "unprofiled"}, {"trace_graph*", "meta.json", "ideal"},
	} {
		t.Run(c.traces, func(t *testing.T) {
			dir := golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer")
			files, err := filepath.Glob(filepath.Join(dir, c.traces))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			files = append(files, filepath.Join(dir, c.meta))
			auto, same := iteration(t, append(files, "--host", "auto")),
				iteration(t, append(files, "--host", c.host))
			if auto != same || auto.Host != c.host {
				t.Errorf("%+v, with --host %s %+v", auto, c.host, same)
			}
		})
	}
}

type answer struct {
	IterationUs float64
	Host        string
}

func iteration(t *testing.T, words []string) (r answer) {
	t.Helper()
	var out bytes.Buffer
	a := &cli.App{Process: process.Process{Out: &out, Err: io.Discard}, JSON: true}
	c := jobs.Replay(a)
	c.SetArgs(words)
	if err := c.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return r
}
