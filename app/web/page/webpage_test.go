package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
)

func packed(t *testing.T, text string) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

// The page is read by browsers of this machine under its own names, and by no other.
func TestHandler(t *testing.T) {
	h := Handler(fstest.MapFS{"index.html.gz": packed(t, "<p>page"), "simccl.wasm.gz": packed(t, "\x00asm")})
	for _, c := range []struct {
		method, path, host, accept string
		status                     int
		body, kind                 string
	}{
		{"GET", "/", "127.0.0.1:1", "", 200, "<p>page", "text/html; charset=utf-8"},
		{"GET", "/index.html", "localhost:80", "gzip, br", 200, "<p>page", "text/html; charset=utf-8"},
		{"GET", "/simccl.wasm", "[::1]:80", "br;q=1, gzip;q=0.5", 200, "\x00asm", "application/wasm"},
		{"GET", "/simccl.wasm", "LOCALHOST", "gzip;q=0", 200, "\x00asm", "application/wasm"},
		{"GET", "/none.js", "127.0.0.1", "", 404, "", ""},
		{"GET", "/../webpage.go", "127.0.0.1", "", 404, "", ""},
		{"POST", "/", "127.0.0.1", "", 405, "", ""},
		{"GET", "/", "evil.example", "", 421, "", ""},
		{"GET", "/", "127.0.0.1.evil.example:80", "", 421, "", ""},
		{"GET", "/", "localhost.evil.example", "", 421, "", ""},
		{"GET", "/", "192.168.0.1:80", "", 421, "", ""},
		{"GET", "/", "", "", 421, "", ""},
	} {
		r := httptest.NewRequest(c.method, "http://x"+c.path, nil)
		r.Host = c.host
		r.Header.Set("Accept-Encoding", c.accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s of host %q: status %d, want %d", c.method, c.path, c.host, w.Code, c.status)
		}
		if c.status != http.StatusOK {
			continue
		}
		body := io.Reader(w.Body)
		if w.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		text, err := io.ReadAll(body)
		if err != nil || string(text) != c.body || w.Header().Get("Content-Type") != c.kind {
			t.Errorf("%s, accepting %q: %q of type %q, %v", c.path, c.accept, text,
				w.Header().Get("Content-Type"), err)
		}
		if zipped := w.Header().Get("Content-Encoding") == "gzip"; zipped != (c.accept == "gzip, br" ||
			c.accept == "br;q=1, gzip;q=0.5") {
			t.Errorf("accepting %q: gzip is %v", c.accept, zipped)
		}
		if w.Header().Get("Content-Security-Policy") != Policy || w.Header().Get("X-Content-Type-Options") !=
			"nosniff" {
			t.Errorf("%s has no policy: %v", c.path, w.Header())
		}
	}
}
