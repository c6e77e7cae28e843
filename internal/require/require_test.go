package require

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/simccl/simccl/exec"
)

// watched is a test that is seen to end.
type watched struct {
	testing.TB
	how string
}

func (w *watched) Helper() {}
func (w *watched) end(how string, args ...any) {
	w.how = how + " " + fmt.Sprint(args...)
	runtime.Goexit()
}
func (w *watched) Fatal(args ...any)            { w.end("fail", args...) }
func (w *watched) Fatalf(f string, args ...any) { w.end("fail", fmt.Sprintf(f, args...)) }
func (w *watched) Skipf(f string, args ...any)  { w.end("skip", fmt.Sprintf(f, args...)) }

// TestRequireTurnsSkipsIntoFailures: SIMCCL_REQUIRE=cuda,nccl on a machine
// without fails what else is skipped.
func TestRequireTurnsSkipsIntoFailures(t *testing.T) {
	absent := &exec.UnsupportedError{Feature: "NCCL", Needs: "libnccl.so.2", Found: "no such file"}
	for _, c := range []struct {
		require, what string
		err           error
		want          string
	}{
		{"", "nccl", absent, "skip needs nccl: NCCL: needs libnccl.so.2"},
		{"cuda,nccl", "nccl", absent, "fail SIMCCL_REQUIRE requires nccl: NCCL: needs libnccl.so.2"},
		{"cuda,nccl", "cuda", fmt.Errorf("open: %w", absent), "fail SIMCCL_REQUIRE requires cuda"},
		{"nccl", "cuda", absent, "skip needs cuda"},
		{"cuda,nccl", "ib", absent, "skip needs ib"},
		{"ib", "ib", absent, "fail"},
		{"nvidia", "cuda", absent, `fail SIMCCL_REQUIRE=nvidia: there is no "nvidia"`},
		{"", "nccl", errors.New("broken"), "fail broken"},
		{"nccl", "nccl", nil, ""},
	} {
		t.Setenv("SIMCCL_REQUIRE", c.require)
		w := &watched{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Hardware(w, c.what, c.err, exec.ErrUnsupported)
		}()
		<-done
		if !strings.HasPrefix(w.how, c.want) || c.want == "" && w.how != "" {
			t.Errorf("SIMCCL_REQUIRE=%s, %s, %v: %q, want %q", c.require, c.what, c.err, w.how, c.want)
		}
	}
}
