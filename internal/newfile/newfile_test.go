package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// system is what a file system offers to give a file its name late.
type system struct {
	name    string
	unnamed func(string, fs.FileMode) (*os.File, error)
	link    func(*os.File, string) error
}

func refuse(*os.File, string) error { return syscall.EPERM }

// onEverySystem runs a test on what this system offers, on one without unnamed
// files, and on one where they cannot get a name.
func onEverySystem(t *testing.T, test func(*testing.T)) {
	none := func(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }
	for _, s := range []system{{"this", openUnnamed, linkUnnamed}, {"named only", none, refuse},
		{"no proc", openUnnamed, refuse}} {
		t.Run(s.name, func(t *testing.T) {
			unnamed, link = s.unnamed, s.link
			defer func() { unnamed, link = openUnnamed, linkUnnamed }()
			test(t)
		})
	}
}

// TestWholeOrNotAtAll: a writer that fails leaves the old file and no other;
// one that succeeds replaces it.
func TestWholeOrNotAtAll(t *testing.T) {
	onEverySystem(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.json")
		if err := Write(path, []byte("old")); err != nil {
			t.Fatal(err)
		}
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Create(path) // of the same process, at the same time
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte("ha"))
		broken := errors.New("broken")
		if err := f.Finish(broken); err != broken || text(t, path) != "old" {
			t.Errorf("%v, and the file holds %q", err, text(t, path))
		}
		second.Write([]byte("new"))
		if err := second.Finish(nil); err != nil || text(t, path) != "new" || len(names(t, dir)) != 1 {
			t.Errorf("%v, %q, files %v", err, text(t, path), names(t, dir))
		}
		if err := Write(filepath.Join(dir, "none", "x"), nil); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		if err := Write(dir, nil); !errors.Is(err, syscall.EISDIR) {
			t.Errorf("a directory became a file: %v", err)
		}
		long := filepath.Join(dir, strings.Repeat("n", 255))
		if err := errors.Join(Write(long, []byte("1")), Write(long, []byte("2"))); err != nil ||
			text(t, long) != "2" {
			t.Errorf("a name of 255 letters: %v", err)
		}
	})
}

// TestNoRegularFileIsReplaced: a link keeps pointing where it does, and a device
// stays one.
func TestNoRegularFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
	if err := errors.Join(Write(path, []byte("old")), os.Symlink("a", link),
		Write(link, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "a" || text(t, path) != "new" {
		t.Errorf("%q %v, and the file holds %q", to, err, text(t, path))
	}
	null := filepath.Join(dir, "null")
	if err := errors.Join(os.Symlink(os.DevNull, null), Write(null, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	if at, err := os.Stat(os.DevNull); err != nil || at.Mode().IsRegular() || len(names(t, dir)) != 3 {
		t.Errorf("%v %v %v", at.Mode(), err, names(t, dir))
	}
}

// TestPermissionsStay: a file that is replaced keeps its permissions, whatever
// the umask says; a new one has what the umask leaves.
func TestPermissionsStay(t *testing.T) {
	onEverySystem(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, mode := range []fs.FileMode{0o600, 0o640, 0o444, 0o666, 0o755} {
			path := filepath.Join(dir, mode.String())
			if err := errors.Join(os.WriteFile(path, []byte("old"), mode), os.Chmod(path, mode),
				Write(path, []byte("new"))); err != nil {
				t.Fatal(err)
			}
			if at, err := os.Stat(path); err != nil || at.Mode() != mode || text(t, path) != "new" {
				t.Errorf("%v became %v (%v)", mode, at.Mode(), err)
			}
		}
		path, usual := filepath.Join(dir, "new"), filepath.Join(dir, "usual")
		f, err := os.Create(usual)
		if err := errors.Join(err, f.Close(), Write(path, nil)); err != nil {
			t.Fatal(err)
		}
		want, err1 := os.Stat(usual)
		if at, err := os.Stat(path); errors.Join(err, err1) != nil || at.Mode() != want.Mode() {
			t.Errorf("a new file has %v, os.Create's %v", at.Mode(), want.Mode())
		}
	})
}

// TestLinksAreFollowed, also to what is not there yet; a loop is refused, and
// other names of a replaced file keep what it held.
func TestLinksAreFollowed(t *testing.T) {
	onEverySystem(t, func(t *testing.T) {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		if err := errors.Join(os.MkdirAll(at("deep/down"), 0o755), os.Symlink("deep/down", at("short")),
			os.Symlink("one", at("two")),
			os.Symlink("target", at("one")), os.Symlink("../up", at("deep/down/back")),
			os.Symlink("a", at("b")), os.Symlink("b", at("a")),
			os.Symlink("none/x", at("nowhere"))); err != nil {
			t.Fatal(err)
		}
		if err := Write(at("two"), []byte("1")); err != nil || text(t, at("target")) != "1" {
			t.Errorf("two links to nothing: %v", err)
		}
		if err := Write(at("short/back"), []byte("2")); err != nil || text(t, at("deep/up")) != "2" {
			t.Errorf("a relative link in a linked directory: %v", err)
		}
		if err := Write(at("a"), []byte("3")); !errors.Is(err, syscall.ELOOP) ||
			!strings.Contains(err.Error(), at("a")) {
			t.Errorf("a loop: %v", err)
		}
		if err := Write(at("nowhere"), []byte("4")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a link into no directory: %v", err)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"a", "b", "deep", "nowhere", "one", "short",
			"target", "two"}) {
			t.Errorf("files %v", got)
		}
		if err := errors.Join(os.Link(at("target"), at("hard")), Write(at("target"), []byte("5"))); err !=
			nil || text(t, at("hard")) != "1" {
			t.Errorf("a hard link: %v", err)
		}
	})
}

// TestNewNamesAreFree: CreateNew takes the first free name when it is done, and
// touches no file that is there.
func TestNewNamesAreFree(t *testing.T) {
	onEverySystem(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "r.json")
		var got []string
		for _, data := range []string{"a", "b", "c"} {
			f, err := CreateNew(path)
			if err != nil {
				t.Fatal(err)
			}
			f.Write([]byte(data))
			if err := f.Finish(nil); err != nil || text(t, f.Name()) != data {
				t.Errorf("%s: %v", f.Name(), err)
			}
			got = append(got, filepath.Base(f.Name()))
		}
		want := []string{"r.json", "r.json.0", "r.json.1"}
		if !slices.Equal(got, want) || !slices.Equal(names(t, dir), want) {
			t.Errorf("got %v, the directory has %v", got, names(t, dir))
		}
		f, err := CreateNew(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Finish(errors.New("broken"))
		if len(names(t, dir)) != 3 {
			t.Errorf("the directory has %v", names(t, dir))
		}
	})
}

// TestAbandonedFilesNeverAppear: from Abandon on nothing is written, and nothing
// unfinished is left.
func TestAbandonedFilesNeverAppear(t *testing.T) {
	onEverySystem(t, func(t *testing.T) {
		defer func() { live.err = nil }()
		dir := t.TempDir()
		path := filepath.Join(dir, "a")
		if err := Write(path, []byte("old")); err != nil {
			t.Fatal(err)
		}
		f, err := Create(path)
		fresh, err1 := CreateNew(path)
		scratch, remove, err2 := TempDir("newfile-test-*")
		if err := errors.Join(err, err1, err2, os.WriteFile(filepath.Join(scratch, "x"), nil, 0o600)); err !=
			nil {
			t.Fatal(err)
		}
		defer remove()
		f.Write([]byte("half"))
		why := errors.New("interrupted")
		Abandon(why)
		if got := names(t, dir); !slices.Equal(got, []string{"a"}) {
			t.Errorf("files %v", got)
		}
		if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the temporary directory is there: %v", err)
		}
		if _, err := f.Write([]byte("more")); err != why {
			t.Errorf("Write: %v", err)
		}
		_, create := Create(path)
		_, _, temp := TempDir("newfile-test-*")
		for what, err := range map[string]error{"Finish": f.Finish(nil),
			"CreateNew's Finish": fresh.Finish(nil), "Create": create, "Write": Write(path, nil),
			"TempDir": temp} {
			if err != why {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got := names(t, dir); !slices.Equal(got, []string{"a"}) || text(t, path) != "old" {
			t.Errorf("files %v, %q", got, text(t, path))
		}
	})
}

// TestKilledWriterLeavesNothing: on Linux not even SIGKILL leaves a file.
func TestKilledWriterLeavesNothing(t *testing.T) {
	if path := os.Getenv("NEWFILE_KILLED"); path != "" {
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte("half"))
		if _, err := Scratch(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	dir := t.TempDir()
	if f, err := openUnnamed(dir, 0o600); err != nil {
		t.Skip("no files without a name here: ", err)
	} else {
		f.Close()
	}
	path := filepath.Join(dir, "a")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWriterLeavesNothing$")
	c.Env = append(os.Environ(), "NEWFILE_KILLED="+path)
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"a"}) || text(t, path) != "old" {
		t.Errorf("files %v, %q", got, text(t, path))
	}
}

// TestOpenFilesAreWrittenInPlace: what a shell redirected is appended to, not
// replaced behind its back.
func TestOpenFilesAreWrittenInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	name := fmt.Sprintf("/proc/self/fd/%d", out.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip("no /proc here: ", err)
	}
	if _, err := out.WriteString("first "); err != nil {
		t.Fatal(err)
	}
	if err := Write(name, []byte("second")); err != nil {
		t.Fatal(err)
	}
	here, err1 := out.Stat()
	there, err2 := os.Stat(path)
	if errors.Join(err1, err2) != nil || !os.SameFile(here, there) || text(t, path) != "first second" {
		t.Errorf("replaced, or written over: %q (%v %v)", text(t, path), err1, err2)
	}
}
