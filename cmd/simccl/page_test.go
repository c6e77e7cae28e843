package main

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/simccl/simccl/internal/process"
	"github.com/simccl/simccl/internal/status"
)

// A page fits a phone and a desk: nothing leaves its width but what scrolls by
// itself, every part is there, and a button shows its channel.
func TestPageFitsPhoneAndDesk(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	var out, errs bytes.Buffer
	args := []string{"report", "all_reduce", "-b", "1K", "-e", "4M", "-f", "16", "--env", "NCCL_BUFFSIZE=8388608", "--report", file}
	if code := run(context.Background(), args, appOf(process.Process{Out: &out, Err: &errs})); code != status.OK {
		t.Fatal(code, errs.String())
	}
	looker, err := os.ReadFile("testdata/viewer/page.html")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "page.html"), looker, 0o644); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer s.Close()
	dom := browser(t, "--dump-dom", s.URL+"/page.html")
	m := regexp.MustCompile(`<pre id="result"[^>]*>([^<]*)</pre>`).FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("no result in %.1000s", dom)
	}
	var looks []struct {
		Width, Scroll, Hints int
		Wide, Texts          []string
		Before, After        string
		Smallest             float64
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &looks); err != nil {
		t.Fatal(err, m[1])
	}
	if len(looks) != 2 {
		t.Fatalf("%d looks", len(looks))
	}
	for _, l := range looks {
		if l.Scroll > l.Width || len(l.Wide) > 0 {
			t.Errorf("at %d px the page is %d px wide; out of it are %v", l.Width, l.Scroll, l.Wide)
		}
		for _, part := range []string{"Bus bandwidth", "Results", "Who wins at which size", "Topology and load", "Fullest links", "Rings", "Trees",
			"One operation of the last size", "Paths", "Settings in force"} {
			if !slices.Contains(l.Texts, part) {
				t.Errorf("no part %q in %q", part, l.Texts)
			}
		}
		if l.Before != "none" || l.After != "inline" {
			t.Errorf("ring 1 is %s before its button is pressed and %s after", l.Before, l.After)
		}
		if l.Hints < 500 || l.Smallest < 11 {
			t.Errorf("%d hints, smallest text %v px", l.Hints, l.Smallest)
		}
	}
	screenshot(t, "report.png", s.URL+"/report.html")
}
