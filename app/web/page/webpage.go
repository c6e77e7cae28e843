// Package page serves the built web page to a browser of the same machine. A program
// without the page does not link it: net/http is a megabyte.
//
// What it must not know: what the page shows, and who listens.
package page

import (
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"
)

// Policy is the page's Content-Security-Policy: nothing of another origin, no inline
// script or style, no frame around it.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' " +
	"data: blob:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action " +
	"'none'; frame-ancestors 'none'"

// types are the media types of the page's files. The system's own table differs
// between machines.
var types = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".wasm": "application/wasm",
	".svg": "image/svg+xml", ".webmanifest": "application/manifest+json", ".json": "application/json",
	".txt": "text/plain; charset=utf-8"}

// Handler serves a built page. Files are kept as gzip makes them, NAME.gz, and are
// unpacked for clients that do not accept that. Requests for another host than the
// loopback's are refused, so that no other page reaches it by a name that resolves here.
func Handler(page fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			http.Error(w, "simccl serve answers to localhost, 127.0.0.1 and [::1] alone",
				http.StatusMisdirectedRequest)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page is only read", http.StatusMethodNotAllowed)
			return
		}
		serve(w, r, page)
	})
}

func serve(w http.ResponseWriter, r *http.Request, page fs.FS) {
	name := cmp.Or(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), "index.html")
	packed, err := page.Open(name + ".gz")
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer packed.Close()
	h := w.Header()
	kind := types[path.Ext(name)]
	if kind == "" {
		kind = mime.TypeByExtension(path.Ext(name))
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	send(w, packed, accepts(r.Header.Get("Accept-Encoding")))
}

// send copies a file to a client as it reads: slow clients cost a buffer each, not the
// file. What is damaged behind its head ends the connection, so that no client takes it
// for whole.
func send(w http.ResponseWriter, packed io.Reader, asPacked bool) {
	if asPacked {
		w.Header().Set("Content-Encoding", "gzip")
		io.Copy(w, packed) //nolint:errcheck // the client left
		return
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		http.Error(w, "the file is damaged", http.StatusInternalServerError)
		return
	}
	if _, err := io.Copy(w, z); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// accepts reports whether a client takes gzip.
func accepts(list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		coding, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding == "gzip" && strings.TrimSpace(q) != "q=0" {
			return true
		}
	}
	return false
}

// loopback reports whether a Host header names this machine by its own address.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
