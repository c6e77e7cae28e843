package page

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
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

// counted is a file whose reads are counted.
type counted struct {
	fs.FS
	read int
}

type countedFile struct {
	fs.File
	read *int
}

func (c *counted) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	return countedFile{f, &c.read}, err
}

func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	*f.read += n
	return n, err
}

// absent is a client that left.
type absent struct{ *httptest.ResponseRecorder }

func (absent) Write([]byte) (int, error) { return 0, errors.New("it left") }

// TestClientsCostABuffer: of a file is read what a client takes, whether it is unpacked or
// not, and who leaves gets no second head.
func TestClientsCostABuffer(t *testing.T) {
	noise := make([]byte, 4<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	for _, accept := range []string{"gzip", ""} {
		page := &counted{FS: fstest.MapFS{"simccl.wasm.gz": packed(t, string(noise))}}
		w := absent{httptest.NewRecorder()}
		r := httptest.NewRequest("GET", "http://127.0.0.1/simccl.wasm", nil)
		r.Header.Set("Accept-Encoding", accept)
		if ended := aborts(func() { Handler(page).ServeHTTP(w, r) }); page.read > 256<<10 || w.Code !=
			http.StatusOK || ended != (accept == "") {
			t.Errorf("accepting %q: %d bytes read of 4 MiB, status %d, ended %v", accept, page.read, w.Code,
				ended)
		}
	}
}

// TestDamagedFiles: a file that is no gzip is an error; one that is cut ends the
// connection, in place of a page that looks whole.
func TestDamagedFiles(t *testing.T) {
	whole := packed(t, strings.Repeat("page ", 1000))
	h := Handler(fstest.MapFS{"a.gz": {Data: []byte("plain")},
		"b.gz": {Data: whole.Data[:len(whole.Data)-9]}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/a", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("no gzip: status %d", w.Code)
	}
	if !aborts(func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/b", nil))
	}) {
		t.Error("a cut file ends as a whole one does")
	}
}

// aborts reports whether a handler ends its connection.
func aborts(serve func()) (ended bool) {
	defer func() {
		if e := recover(); e == http.ErrAbortHandler {
			ended = true
		} else if e != nil {
			panic(e)
		}
	}()
	serve()
	return false
}
