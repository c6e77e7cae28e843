package load

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/simccl/simccl/workload/rebuild"
)

// files are those of a folder whose names match.
func files(t testing.TB, pattern string) (out []File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "workloads", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("the recordings beside the checkout are not there: " + pattern)
	}
	for _, n := range names {
		out = append(out, File{n, func() (io.ReadCloser, error) { return os.Open(n) }})
	}
	return out
}

// TestSamplesAreRecognised: every public file that is a workload is read, by its
// content, and the others are refused by what they are.
func TestSamplesAreRecognised(t *testing.T) {
	for pattern, want := range map[string]Format{
		"samples/kineto/*.gz": Kineto, "samples/pytorch_et/*_et_*.gz": TorchET,
		"samples/pytorch_et/*kineto*.gz": Kineto, "samples/chakra/*.tar.gz": Chakra,
		"samples/chakra/*.tgz":                                      TorchET,
		"samples/chakra/astra_all_reduce.4/*.et":                    Chakra,
		"samples/chakra/astra_custom_ring_allreduce_8npus_1MB/*.et": Chakra,
		"samples/simai/[GLam]*.txt":                                 SimAI, "samples/aicb/[GLAm]*.csv*": AICB,
		"samples/goal/*":               GOAL,
		"samples/inspector/inspector*": Inspector,
	} {
		if pattern == "samples/chakra/astra_all_reduce.4/*.et" || strings.Contains(pattern, "ring") {
			j, err := Load(files(t, pattern), Options{})
			if err != nil || j.Format != want || j.Program.Lint() != nil {
				t.Errorf("%s: %v", pattern, err)
			}
			continue
		}
		for _, f := range files(t, pattern) {
			o := Options{Symmetric: true}
			j, err := Load([]File{f}, o)
			if err != nil {
				var missing *rebuild.MissingRanksError
				if !errors.As(err, &missing) {
					t.Errorf("%s: %v", f.Name, err)
				}
				continue
			}
			if j.Format != want {
				t.Errorf("%s is %v, want %v", f.Name, j.Format, want)
			}
			if err := j.Program.Lint(); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
	for pattern, what := range map[string]string{"samples/taccl/*": "TACCL sketch",
		"samples/simai/busbw.yaml":    "table of bus bandwidths",
		"samples/chakra/HGX-H100*":    "ASTRA-sim's description",
		"samples/aicb/Workload_spec*": "list of models", "samples/aicb/aiob_Example.txt": "AIOB's table",
		"samples/msccl_xml/*": "an MSCCL schedule", "samples/mscclpp_json/*": "an MSCCL++ plan"} {
		for _, f := range files(t, pattern) {
			_, err := Load([]File{f}, Options{})
			var refused *inputs.OtherError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v, want %s", f.Name, err, what)
			}
		}
	}
}

// TestTruth: folders of our jobs are read whole: recordings are the job, what lies
// beside them adds to it.
func TestTruth(t *testing.T) {
	for _, mode := range []string{"ddp", "ep", "pp", "single", "tp"} {
		if testing.Short() && mode != "pp" {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			all := files(t, "truth/"+mode+"/*")
			j, err := Load(all, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if j.Format != Kineto || j.Program.Ranks() != 4 || j.Meta.GPU != "NVIDIA H200" ||
				j.Meta.Env["NCCL_NVLS_ENABLE"] != "0" || j.Meta.NCCL != "2.28.9" || j.Meta.Mode != mode {
				t.Errorf("%v %+v", j.Format, j.Meta)
			}
			if err := j.Program.Lint(); err != nil {
				t.Error(err)
			}
			if _, err := streams.Run(t.Context(), streams.Apart(j.Program, streams.Recorded, 32<<20)); err !=
				nil {
				t.Error(err)
			}
			var rest []File
			for _, f := range all {
				if !strings.Contains(filepath.Base(f.Name), "trace_") {
					rest = append(rest, f)
				}
			}
			if j, err = Load(rest, Options{}); err != nil || j.Format != FlightJSON {
				t.Errorf("without recordings: %v", err)
			}
		})
	}
	all := files(t, "truth/ddp/trace_rank0*")
	again := files(t, "truth/ep/trace_rank0*")
	_, err := Load(append(all, again...), Options{})
	var twice *rebuild.RankTwiceError
	if !errors.As(err, &twice) || !strings.Contains(err.Error(), "truth/ddp/trace_rank0.json") ||
		!strings.Contains(err.Error(), "truth/ep/trace_rank0.json") {
		t.Error(err)
	}
	_, err = Load(all, Options{})
	var missing *rebuild.MissingRanksError
	if !errors.As(err, &missing) || err.Error() != "the job has 4 ranks, of which 1 2 3 have no recording; "+
		"give them too, or --symmetric where all ranks do the same" {
		t.Error(err)
	}
	if j, err := Load(all, Options{Partial: true}); err != nil || j.Program.Ranks() != 4 ||
		!slices.ContainsFunc(j.Notes, func(n string) bool {
			return strings.Contains(n, "1 2 3 have no recording; what is shown is of the others")
		}) {
		t.Errorf("to look at: %v", err)
	}
	if j, err := Load(all, Options{Symmetric: true}); err != nil || j.Program.Lint() != nil {
		t.Error(err)
	}
}
