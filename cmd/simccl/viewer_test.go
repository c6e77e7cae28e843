package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

// browser runs headless Chromium on a page, and skips where there is none
// unless SIMCCL_REQUIRE requires it. extra flags come before the address.
func browser(t *testing.T, extra ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	var name string
	for _, n := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(n); err == nil {
			name = p
			break
		}
	}
	if name == "" {
		require.Skip(t, "chromium", "no chromium, chromium-browser or google-chrome")
	}
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Minute)
	defer stop()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader",
		"--enable-unsafe-swiftshader",
		"--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync",
		"--user-data-dir=" + t.TempDir(), "--window-size=1600,1000", "--virtual-time-budget=60000"}, extra...)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, errs.String())
	}
	return out.String()
}

// screenshot takes a picture of a page if SIMCCL_SCREENSHOTS names a directory.
func screenshot(t *testing.T, name, address string) {
	t.Helper()
	if dir := os.Getenv("SIMCCL_SCREENSHOTS"); dir != "" {
		browser(t, "--screenshot="+filepath.Join(dir, name), address)
	}
}

// counted is what a file holds by our own reader.
type counted struct {
	slices, arrows int
	endUs          float64
	processes      map[int64]bool
	threads        map[[2]int64]bool
	counters       map[string]bool
	outermost      map[[2]int64]float64 // by thread: us in slices that lie in no other
}

func count(t *testing.T, file string) counted {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := counted{processes: map[int64]bool{}, threads: map[[2]int64]bool{}, counters: map[string]bool{},
		outermost: map[[2]int64]float64{}}
	ends := map[[2]int64]units.Time{}
	_, err = chrome.Read(f, func(e *chrome.Event) error {
		switch e.Phase {
		case 'X':
			c.slices++
			thread := [2]int64{e.PID, e.TID}
			c.processes[e.PID], c.threads[thread] = true, true
			if e.TS >= ends[thread] {
				ends[thread] = e.TS + e.Dur
				c.outermost[thread] += e.Dur.Micros()
			}
		case 'i': // the viewer keeps instants of a thread among its slices
			c.slices++
		case 's':
			c.arrows++
		case 'C':
			c.processes[e.PID], c.counters[fmt.Sprint(e.PID, e.Name)] = true, true
		}
		c.endUs = max(c.endUs, (e.TS + e.Dur).Micros())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serveTrace runs an operation and serves its trace beside a viewer's files.
func serveTrace(t *testing.T, viewer string, pages ...string) (address string, want counted) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "trace.json")
	var out, errs bytes.Buffer
	a := appOf(process.Process{Out: &out, Err: &errs})
	if code := run(context.Background(), []string{"run", "all_reduce", "--sizes", "1M", "-c", "0", "-g", "4",
		"--no-env", "--trace", file}, a); code != 0 {
		t.Fatal(errs.String())
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(viewer)))
	for _, p := range append(pages, file) {
		mux.HandleFunc("/"+filepath.Base(p), func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, p)
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, count(t, file)
}

// The Catapult viewer of chrome://tracing, as it ships with Go, loads a trace
// without a warning and finds every process, track, slice, counter and time in
// it; every arrow binds a SendWait to a RecvWait.
func TestCatapultShowsTheTrace(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command to ask where its trace viewer is: ", err)
	}
	viewer := filepath.Join(strings.TrimSpace(string(root)), "src", "internal", "trace", "traceviewer",
		"static")
	if _, err := os.Stat(filepath.Join(viewer, "trace_viewer_full.html")); err != nil {
		t.Skip("this Go has no trace viewer: ", err)
	}
	address, want := serveTrace(t, viewer, "testdata/viewer/catapult.html")
	var m []string
	var dom string
	for range 3 { // a browser without time of its own may end before the viewer has fetched the trace
		dom = browser(t, "--dump-dom", address+"/catapult.html")
		m = regexp.MustCompile(`<pre id="result"[^>]*>([^<]+)</pre>`).FindStringSubmatch(dom)
		if m != nil {
			break
		}
	}
	if m == nil {
		t.Fatalf("the page has no result:\n%.2000s", dom)
	}
	var got struct {
		Processes                                []string
		Threads, Slices, Arrows, Loose, Counters int
		EndUs                                    float64
		Warnings                                 []string
		Error                                    string
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &got); err != nil {
		t.Fatal(err, m[1])
	}
	if got.Error != "" || len(got.Warnings) > 0 {
		t.Fatal(got.Error, got.Warnings)
	}
	if len(got.Processes) != len(want.processes) || !strings.HasPrefix(got.Processes[0],
		"rank 0 · node 0 · GPU 0 (") {
		t.Errorf("processes %q, want %d", got.Processes, len(want.processes))
	}
	if got.Slices != want.slices || got.Arrows != want.arrows || got.Loose != 0 ||
		got.Counters != len(want.counters) || got.Arrows == 0 {
		t.Errorf("the viewer shows %+v, the file has %d slices, %d arrows, %d counters", got, want.slices,
			want.arrows, len(want.counters))
	}
	if math.Abs(got.EndUs-want.endUs) > 0.001 {
		t.Errorf("the viewer ends at %v us, the file at %v us", got.EndUs, want.endUs)
	}
	screenshot(t, "catapult.png", address+"/catapult.html")
}

// speedscope lists every track with the time of its outermost slices.
func TestSpeedscopeShowsTheTrace(t *testing.T) {
	viewer := os.Getenv("SIMCCL_SPEEDSCOPE")
	if viewer == "" {
		t.Skip("SIMCCL_SPEEDSCOPE names no dist/release of the npm package speedscope")
	}
	address, want := serveTrace(t, viewer)
	page := address + "/index.html#profileURL=" + address + "/trace.json"
	dom := browser(t, "--dump-dom", page)
	text := strings.Join(
		strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(dom, " "))), " ")
	for _, w := range []string{
		"rank 0 · node 0 · GPU 0 (0000:1b:00.0) (pid 1000000), collectives 0 (tid 200)",
		"ch 00 → rank 1 · step 0 (tid 10000)"} {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in %.3000s", w, text)
		}
	}
	// It opens at the operation, the first track of the list.
	tracks := regexp.MustCompile(`\(pid \d+\), (.+?) \(tid \d+\)`).FindAllStringSubmatch(text, -1)
	if len(tracks) < 2 || tracks[0][1] != "collectives 0" {
		t.Errorf("the first tracks are %.3q", tracks)
	}
	// A track's time is that of its outermost slices.
	for tid, name := range map[int64]string{200: "collectives 0", 400: "comm 0 kernel ch 00"} {
		us := want.outermost[[2]int64{1000000, tid}]
		if w := fmt.Sprintf("%s (tid %d) %.2fµs", name, tid, us); !strings.Contains(text,
			"rank 0 · node 0 · GPU 0 (0000:1b:00.0) (pid 1000000), "+w) {
			t.Errorf("no %q in %.3000s", w, text)
		}
	}
	if tracks := len(regexp.MustCompile(`\(tid \d+\) [\d.]+[nµm]?s`).FindAllString(text, -1)); tracks !=
		len(want.threads) {
		t.Errorf("%d tracks, want %d", tracks, len(want.threads))
	}
	screenshot(t, "speedscope.png", page)
}
