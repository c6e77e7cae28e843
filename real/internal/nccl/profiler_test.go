package nccl

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// harness plays NCCL: one collective of one rank on two channels, whose
// kernels run on a GPU clock that began elsewhere.
const harness = `
#include "profiler.c"
int main(int n, char **v) {
  (void)n;
  void *c, *api, *coll, *k[2];
  int mask = 0;
  ncclProfiler_v5.init(&c, 0xabc, &mask, "", 1, 4, 3, NULL);
  if (mask != ALL) return 1;
  struct descr d = {.type = COLL_API, .rank = 3};
  d.coll_api.func = "AllReduce"; d.coll_api.count = 7; d.coll_api.datatype = "ncclFloat32";
  ncclProfiler_v5.start(c, &api, &d);
  struct descr e = {.type = COLL, .parent = api, .rank = 3};
  e.coll.func = "AllReduce"; e.coll.datatype = "ncclFloat32"; e.coll.algo = "Ring"; e.coll.proto = "Simple"; e.coll.channels = 2;
  ncclProfiler_v5.start(c, &coll, &e);
  ncclProfiler_v5.stop(coll);
  ncclProfiler_v5.stop(api);
  for (int i = 0; i < 2; i++) {
    struct descr f = {.type = KERNEL_CH, .parent = coll};
    f.kernel.channel = (uint8_t)i; f.kernel.timer = 5000000;
    ncclProfiler_v5.start(c, &k[i], &f);
    union state_args a = {.kernel = {5002500}};
    ncclProfiler_v5.state(k[i], STATE_KERNEL_STOP, &a);
    ncclProfiler_v5.stop(k[i]);
  }
  if (v[1][0]) return simccl_profiler_write(v[1]);
  if (v[2]) return ncclProfiler_v5.finalize(c);
  return 0; // the process ends with its communicator
}
`

// TestProfilerPlugin compiles the plugin, sends it what NCCL would, and reads
// the trace back.
func TestProfilerPlugin(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the plugin with")
	}
	src, err := filepath.Abs("profiler")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(src, "profiler.c")); err != nil {
		t.Skip("compiled elsewhere, and the plugin's source is not here: ", err)
	}
	dir := t.TempDir()
	main, bin, out := filepath.Join(dir, "main.c"), filepath.Join(dir, "main"), filepath.Join(dir, "t.json")
	if err := os.WriteFile(main, []byte(harness), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(cc, "-O1", "-Wall", "-Wextra", "-Werror", "-I", src, "-o", bin, main,
		"-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if text, err := exec.Command(bin, out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		TraceEvents []struct {
			Ph, Cat, Name string
			Pid           int64
			Tid           int64
			Dur           float64
			Args          map[string]any
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	got := map[string]int{}
	for _, e := range doc.TraceEvents {
		if e.Ph != "X" {
			continue
		}
		got[e.Cat]++
		if e.Pid != 1000003 {
			t.Errorf("%s of process %d, want rank 3's 1000003", e.Name, e.Pid)
		}
		switch e.Cat {
		case "GPU":
			if e.Dur != 2.5 || e.Tid != 400+int64(e.Args["Channel"].(float64)) {
				t.Errorf("kernel of %v us on thread %d, want 2.5 us on its channel's", e.Dur, e.Tid)
			}
		case "COLL":
			if e.Args["Algorithm"] != "RING" || e.Args["Protocol"] != "SIMPLE" || e.Args["nChannels"] != 2.0 {
				t.Errorf("collective tells %v", e.Args)
			}
		}
	}
	checkPlace(t, data)
	t.Run("full disk", func(t *testing.T) { checkFullDisk(t, bin) })
	t.Run("unasked", func(t *testing.T) { checkUnasked(t, bin) })
	if got["GPU"] != 2 || got["COLL"] != 1 || got["COLL_API"] != 1 {
		t.Errorf("events %v, want 2 kernels, 1 collective and its call", got)
	}
}

// checkPlace wants a file to say when it begins and which part of the run it is.
func checkPlace(t *testing.T, data []byte) {
	t.Helper()
	var doc struct {
		OtherData struct {
			Epoch string `json:"epoch_unix_ns"`
			Part  struct{ Rank, Of int }
			GPU   []struct {
				Rank        int
				Uncertainty int64 `json:"uncertainty_ns"`
			} `json:"gpu_clock_sync"`
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	o := &doc.OtherData
	if ns, err := strconv.ParseInt(o.Epoch, 10, 64); err != nil || time.Since(time.Unix(0, ns)).Abs() >
		time.Hour {
		t.Errorf("the trace begins at %q ns since 1970: %v", o.Epoch, err)
	}
	if o.Part.Rank != 3 || o.Part.Of != 4 || len(o.GPU) != 1 || o.GPU[0].Rank != 3 {
		t.Errorf("rank 3 of 4 says %+v", o)
	}
}

// checkFullDisk wants a file that cannot be written to be said so, and what is
// no regular file to stay what it is.
func checkFullDisk(t *testing.T, bin string) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	full := filepath.Join(dir, "t.json")
	if err := os.Symlink("/dev/full", full); err != nil {
		t.Fatal(err)
	}
	if exec.Command(bin, full).Run() == nil {
		t.Error("a full disk is no error")
	}
	if to, err := os.Readlink(full); err != nil || to != "/dev/full" {
		t.Errorf("the device was replaced: %q %v", to, err)
	}
	if exec.Command(bin, filepath.Join(dir, "none", "t.json")).Run() == nil {
		t.Error("a directory that is not there is no error")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v %v", list, err)
	}
}

// checkUnasked wants one file of a process that only set SIMCCL_PROFILE_FILE,
// whether it ends its communicator or itself, and none where it is not set.
func checkUnasked(t *testing.T, bin string) {
	for _, c := range []struct {
		args  []string
		asked bool
		files int
	}{{[]string{""}, true, 1}, {[]string{"", "finalize"}, true, 1}, {[]string{""}, false, 0}} {
		dir := t.TempDir()
		cmd := exec.Command(bin, c.args...)
		cmd.Dir = dir
		if c.asked {
			cmd.Env = append(os.Environ(), "SIMCCL_PROFILE_FILE=run")
		}
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", c.args, err, text)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != c.files {
			t.Errorf("%q, asked %t: files %q, want %d", c.args, c.asked, files, c.files)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if matched, _ := filepath.Match("run.*.json", filepath.Base(f)); !matched || !json.Valid(data) {
				t.Errorf("%q: %s of %d bytes is no trace", c.args, f, len(data))
			}
		}
	}
}
