// Command release makes what is published of a version: programs for each system with
// manual pages and completions as archives, a Debian package, a wheel for Python, a bill of
// materials, and checksums. Equal commits and compilers give equal files.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/intercept/shim"
)

// target is a system and its kind of processor.
type target struct{ os, arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}}

type release struct {
	version string // without v
	commit  string
	date    time.Time // of the commit
	out     string
	page    bool     // programs have the web page
	flags   []string // of go build, beside those that make archives equal
	extras  []file   // of every archive
}

type file struct {
	name string
	mode int64
	data []byte
}

func main() {
	version := flag.String("version", "",
		"the version, v0.1.0 (default that of the newest section of CHANGELOG.md, v"+unreleased+
			" without one)")
	out := flag.String("out", "dist", "folder of what is made")
	only := flag.String("only", "", "systems, linux/amd64,darwin/arm64 (default all)")
	page := flag.Bool("page", false, "programs have the web page, which make web has built")
	flags := flag.String("flags", "", "more flags of go build: the profile that make names")
	libraries := flag.String("shim", "", "only compile the libraries of simccl intercept into this folder")
	cc := flag.String("cc", "", "C compiler of -shim")
	flag.Parse()
	if *libraries != "" {
		if err := buildShim(*libraries, *cc); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	r := &release{version: strings.TrimPrefix(*version, "v"), out: *out, page: *page,
		flags: strings.Fields(*flags)}
	if err := r.run(*only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !r.page {
		fmt.Println("the programs have no web page: simccl serve says how to build it (make release builds " +
			"it where npm is)")
	}
}

func buildShim(folder, cc string) error {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	return shim.Build(dir, cc)
}

func (r *release) run(only string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if err := r.documents(); err != nil {
		return err
	}
	for _, t := range chosen {
		if err := r.target(t); err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
	}
	return r.checksums()
}

// choose is the systems that a list names, all for none. Nothing is written before.
func choose(only string) ([]target, error) {
	if only == "" {
		return targets, nil
	}
	names := strings.Split(only, ",")
	name := func(t target) string { return t.os + "/" + t.arch }
	for _, o := range names {
		if !slices.ContainsFunc(targets, func(t target) bool { return name(t) == o }) {
			return nil, fmt.Errorf("-only: %q is none of %v: write linux/amd64", o, targets)
		}
	}
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		return !slices.Contains(names, name(t))
	}), nil
}

// unreleased is the version where CHANGELOG.md has no section of a release: that of
// programs which go build made (cmd/simccl).
const unreleased = "0.1.0-dev"

// identify finds version, commit and date.
func (r *release) identify() error {
	if r.version == "" {
		text, err := os.ReadFile("CHANGELOG.md")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "## v"); ok && r.version == "" {
				r.version, _, _ = strings.Cut(v, " ")
			}
		}
		r.version = cmp.Or(r.version, unreleased)
	}
	commit, err := output("git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return err
	}
	hash, when, _ := strings.Cut(strings.TrimSpace(commit), " ")
	r.commit = hash
	r.date, err = time.Parse(time.RFC3339, when)
	return err
}

func output(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(text), err
}

// documents makes what every archive has beside the program.
func (r *release) documents() error {
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r.extras = append(r.extras, file{name, 0o644, data})
	}
	man, err := os.MkdirTemp("", "simccl-man")
	if err != nil {
		return err
	}
	defer os.RemoveAll(man)
	if _, err := output("go", "test", "-count=1", "./cmd/simccl", "-run", "^TestManPages$", "-args", "-man",
		man, "-man-date", r.date.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	pages, err := os.ReadDir(man)
	if err != nil {
		return err
	}
	for _, p := range pages {
		data, err := os.ReadFile(filepath.Join(man, p.Name()))
		if err != nil {
			return err
		}
		r.extras = append(r.extras, file{"man/" + p.Name(), 0o644, data})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := output("go", "run", "./cmd/simccl", "completion", shell)
		if err != nil {
			return err
		}
		r.extras = append(r.extras, file{"completions/simccl." + shell, 0o644, []byte(text)})
	}
	return nil
}

// target builds and packs for one system.
func (r *release) target(t target) error {
	name := fmt.Sprintf("simccl_%s_%s_%s", r.version, t.os, t.arch)
	program := "simccl"
	if t.os == "windows" {
		program += ".exe"
	}
	dir := filepath.Join(r.out, "build", name)
	built := filepath.Join(dir, program)
	tags := ""
	if r.page {
		tags = "webpage"
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags", tags, "-o", built}, r.flags...)
	c := exec.Command("go",
		append(args, "-ldflags",
			fmt.Sprintf("-s -w -buildid= -X main.version=v%s -X main.commit=%s -X main.date=%s", r.version,
				r.commit, r.date.UTC().Format(time.RFC3339)), "./cmd/simccl")...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return err
	}
	data, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	files := append([]file{{program, 0o755, data}}, r.extras...)
	pack, ending := tarred, ".tar.gz"
	if t.os == "windows" {
		pack, ending = zipped, ".zip"
	}
	packed, err := pack(files, name, r.date)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, name+ending), packed, 0o644); err != nil {
		return err
	}
	if err := r.materials(built, name); err != nil {
		return err
	}
	if err := r.wheel(t, program, data); err != nil {
		return err
	}
	if t.os == "linux" {
		return r.debian(dir, t.arch)
	}
	return nil
}

// tarred packs files below a folder; equal files give equal bytes.
func tarred(files []file, dir string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: dir + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at,
			Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// zipped is tarred for Windows, which opens zip by itself.
func zipped(files []file, dir string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Join(dir, f.name), Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(os.FileMode(f.mode))
		part, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// materials writes a CycloneDX bill of what is linked into a program, as its build
// information has it (https://cyclonedx.org/docs/1.6/json).
func (r *release) materials(program, name string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	type hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	type component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	of := func(kind, module, version string) component {
		purl := "pkg:golang/" + module + "@" + version
		return component{Type: kind, Ref: purl, Name: module, Version: version, PURL: purl}
	}
	self := of("application", info.Main.Path, "v"+r.version)
	parts := []component{of("library", "std", info.GoVersion)}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		parts = append(parts, of("library", d.Path, d.Version))
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	self.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(data))}}
	text, err := json.MarshalIndent(map[string]any{"bomFormat": "CycloneDX", "specVersion": "1.6",
		"version":    1,
		"metadata":   map[string]any{"timestamp": r.date.UTC().Format(time.RFC3339), "component": self},
		"components": parts}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name+".cdx.json"), append(text, '\n'), 0o644)
}

// debian packs a program, its pages and completions with nfpm.
func (r *release) debian(dir, arch string) error {
	var config strings.Builder
	fmt.Fprintf(&config, "name: simccl\narch: %s\nplatform: linux\nversion: %s\nsection: utils\n"+
		"priority: optional\nmaintainer: simccl developers <simccl@localhost>\n", arch, r.version)
	fmt.Fprintf(&config, "description: what NCCL decides on a machine, why, and how fast it runs\n"+
		"license: see /usr/share/doc/simccl/LICENSE\nmtime: %s\ncontents:\n",
		r.date.UTC().Format(time.RFC3339))
	add := func(src, dst string) {
		fmt.Fprintf(&config, "  - src: %s\n    dst: %s\n    file_info: {mtime: %s}\n", src, dst,
			r.date.UTC().Format(time.RFC3339))
	}
	add(filepath.Join(dir, "simccl"), "/usr/bin/simccl")
	homes := map[string]string{"bash": "/usr/share/bash-completion/completions/simccl",
		"zsh":  "/usr/share/zsh/vendor-completions/_simccl",
		"fish": "/usr/share/fish/vendor_completions.d/simccl.fish"}
	for _, f := range r.extras {
		to := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, f.data, 0o644); err != nil {
			return err
		}
		switch kind, base := filepath.Split(f.name); kind {
		case "man/":
			add(to, "/usr/share/man/man1/"+base)
		case "completions/":
			if home := homes[strings.TrimPrefix(filepath.Ext(base), ".")]; home != "" {
				add(to, home)
			}
		default:
			add(to, "/usr/share/doc/simccl/"+base)
		}
	}
	file := filepath.Join(dir, "nfpm.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o644); err != nil {
		return err
	}
	_, err := output("go", "tool", "-modfile=tools/release/go.mod", "nfpm", "package", "--config", file,
		"--packager", "deb", "--target", r.out)
	return err
}

// checksums writes SHA-256 of every file that is published, as sha256sum -c reads it.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == "SHA256SUMS" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
