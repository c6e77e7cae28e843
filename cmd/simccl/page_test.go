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

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
)

// A page fits a phone and a desk: nothing leaves its width but what scrolls by
// itself, every part is there, and a button shows its channel.
func TestPageFitsPhoneAndDesk(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	var out, errs bytes.Buffer
	args := []string{"report", "all_reduce", "-b", "1K", "-e", "4M", "-f", "16", "--env",
		"NCCL_BUFFSIZE=8388608", "--report", file}
	if code := run(context.Background(), args, appOf(process.Process{Out: &out, Err: &errs})); code !=
		cli.StatusOK {
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
		Smallest, Drawn      float64
		Untold               int // drawings without a name, or without a table in their section or the next
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
		for _, part := range []string{"Bandwidth and latency", "Results", "Who wins at which size",
			"Why this choice", "Topology and load", "Fullest links", "Rings", "Trees",
			"Timeline of one operation of the last size", "Paths", "Settings in force"} {
			if !slices.Contains(l.Texts, part) {
				t.Errorf("no part %q in %q", part, l.Texts)
			}
		}
		if l.Before != "none" || l.After != "inline" {
			t.Errorf("ring 1 is %s before its button is pressed and %s after", l.Before, l.After)
		}
		if l.Hints < 300 || l.Smallest < 11 || l.Drawn < 11 || l.Untold > 0 {
			t.Errorf("%d hints, smallest text %v px, in drawings %v px; %d drawings without a name or a "+
				"table", l.Hints, l.Smallest, l.Drawn, l.Untold)
		}
	}
	screenshot(t, "report.png", s.URL+"/report.html")
}

// axe-core finds nothing serious or critical in the page, in light and dark.
func TestPageIsAccessible(t *testing.T) {
	axe := os.Getenv("SIMCCL_AXE")
	if axe == "" {
		axe = filepath.Join("..", "..", "web", "node_modules", "axe-core", "axe.min.js")
	}
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Skip("SIMCCL_AXE names no axe.min.js of the npm package axe-core, and web/ has none")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	var out, errs bytes.Buffer
	args := []string{"report", "all_reduce", "-b", "64K", "-e", "1M", "-f", "4", "--env",
		"NCCL_BUFFSIZE=8388608", "--report", file}
	if code := run(context.Background(), args, appOf(process.Process{Out: &out, Err: &errs})); code !=
		cli.StatusOK {
		t.Fatal(code, errs.String())
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The page allows no script: for the test it does.
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`
	if !bytes.Contains(page, []byte(policy)) {
		t.Fatal("the page has no policy")
	}
	page = bytes.Replace(page, []byte(policy), nil, 1)
	page = bytes.Replace(page, []byte("</body>"),
		[]byte(`<pre id="result" hidden></pre><script src="axe.js"></script><script>axe.run(document.querySelector("main")).then(r => {
document.getElementById("result").textContent = JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact, at: v.nodes[0].html.slice(0, 200)})))})</script></body>`), 1)
	for name, data := range map[string][]byte{"axe.js": script, "report.html": page} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer s.Close()
	for _, theme := range []string{"0", "1"} { // Blink's PreferredColorScheme: dark, light
		dom := browser(t, "--blink-settings=preferredColorScheme="+theme, "--dump-dom", s.URL+"/report.html")
		m := regexp.MustCompile(`<pre id="result"[^>]*>([^<]*)</pre>`).FindStringSubmatch(dom)
		if m == nil || m[1] == "" {
			t.Fatal("axe-core did not end")
		}
		var found []struct{ ID, Impact, At string }
		if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &found); err != nil {
			t.Fatal(err, m[1])
		}
		for _, f := range found {
			if f.Impact == "serious" || f.Impact == "critical" {
				t.Errorf("theme %s: %s %s: %s", theme, f.Impact, f.ID, f.At)
			}
		}
	}
}
