// Package shim holds the libraries that intercepted programs load in place of
// NCCL's and CUDA's runtime, as source, and builds them with the machine's C compiler:
// they run in other programs, where a Go runtime would start threads and take
// signals.
//
// What it must not know: the collector, flags.
package shim

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed src/*.c src/*.h src/*.map
var sources embed.FS

// Names of the libraries.
const (
	Core  = "libsimccl-shim.so"
	NCCL  = "libnccl.so.2"
	Audit = "libsimccl-audit.so"
	Live  = "libsimccl-live.so" // of programs on real GPUs
	Mover = "simccl-mover"      // the program that moves their data
)

// Runtimes are the versions of CUDA's runtime that there are substitutes for, by the
// name of its library.
var Runtimes = []string{"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"}

// stamp is the file that says which sources a folder's libraries are of.
const stamp = "sources"

// Error is a shim that cannot be built.
type Error struct {
	Problem, Hint string
}

// Error has the problem and the remedy.
func (e *Error) Error() string { return e.Problem + "; " + e.Hint }

// hash identifies the sources.
func hash() string {
	h := sha256.New()
	entries, _ := fs.ReadDir(sources, "src")
	for _, e := range entries {
		data, _ := sources.ReadFile("src/" + e.Name())
		fmt.Fprintf(h, "%s %d\n", e.Name(), len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Folder returns a folder with the libraries of these sources: beside the program,
// where make shim has put them, else in the cache, where they are built when they are
// not there. cc is the compiler, "" for cc. Errors are *Error, and those of files.
func Folder(beside, cache, cc string) (string, error) {
	if beside = filepath.Join(beside, "simccl-shim"); fresh(beside) {
		return beside, nil
	}
	dir := filepath.Join(cache, "simccl", "shim-"+hash())
	if fresh(dir) {
		return dir, nil
	}
	return dir, Build(dir, cc)
}

func fresh(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, stamp))
	return err == nil && string(data) == hash()
}

// Build compiles the libraries into a folder. Several builds of one folder may run at
// once: each finished library replaces the one before as a whole. With names it compiles
// those alone.
func Build(dir, cc string, names ...string) error {
	cc = cmp.Or(cc, "cc")
	path, err := exec.LookPath(cc)
	if err != nil {
		return &Error{"the C compiler " + cc + " is not there, and intercept builds its libraries with one",
			"install gcc, or build them elsewhere with make shim and put the folder simccl-shim beside " +
				"simccl"}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, sources); err != nil {
		return err
	}
	src := filepath.Join(work, "src")
	for _, b := range builds() {
		if len(names) > 0 && !slices.Contains(names, b.name) {
			continue
		}
		if err := compile(path, src, b); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(src, b.name), filepath.Join(dir, b.name)); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(dir, b.name), filepath.Join(src, b.name)); err != nil {
			return err
		}
	}
	done := filepath.Join(work, stamp)
	return errors.Join(os.WriteFile(done, []byte(hash()), 0o644), os.Rename(done, filepath.Join(dir, stamp)))
}

type build struct {
	name, source string
	args         []string
}

func builds() []build {
	core := []string{"-L.", "-l:" + Core, "-Wl,-rpath,$ORIGIN"}
	list := []build{
		{Core, "core.c", []string{"-Wl,-soname," + Core, "-ldl", "-lpthread"}},
		{NCCL, "nccl.c", append([]string{"-Wl,-soname," + NCCL, "-ldl"}, core...)},
		{Audit, "audit.c", nil},
		{Live, "live.c live-driver.c", append([]string{"-Wl,-soname," + Live, "-ldl", "-lpthread"}, core...)},
	}
	list = append(list, build{Mover, "live-move.c", append([]string{"-ldl"}, core...)})
	for i, name := range Runtimes {
		version := strings.TrimPrefix(name, "libcudart.so.")
		args := []string{fmt.Sprintf("-DCUDART=%d000", 11+i), "-Wl,--version-script=cudart-" + version +
			".map", "-Wl,-soname," + name, "-lpthread"}
		list = append(list, build{name, "cudart.c", append(args, core...)})
	}
	return list
}

func compile(cc, dir string, b build) error {
	kind := "-shared"
	if b.name == Mover {
		kind = "-pie"
	}
	args := append([]string{"-std=gnu11", "-O2", "-Wall", "-Wextra", kind, "-fPIC", "-fvisibility=hidden",
		"-o", b.name}, strings.Fields(b.source)...)
	args = append(args, b.args...)
	c := exec.Command(cc, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return &Error{fmt.Sprintf("%s of %s failed: %v\n%s", filepath.Base(cc), b.source, err, out),
			"it needs a C compiler and the headers of the C library (libc6-dev)"}
	}
	return nil
}
