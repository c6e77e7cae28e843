package newfile

import (
	"errors"
	"os"
	"path/filepath"
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

// TestWholeOrNotAtAll: a writer that fails leaves the old file and no other;
// one that succeeds replaces it.
func TestWholeOrNotAtAll(t *testing.T) {
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
	f.WriteString("ha")
	broken := errors.New("broken")
	if err := f.Finish(broken); err != broken || text(t, path) != "old" {
		t.Errorf("%v, and the file holds %q", err, text(t, path))
	}
	second.WriteString("new")
	if err := second.Finish(nil); err != nil || text(t, path) != "new" || len(names(t, dir)) != 1 {
		t.Errorf("%v, %q, files %v", err, text(t, path), names(t, dir))
	}
	if err := Write(filepath.Join(dir, "none", "x"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := Write(dir, nil); err == nil {
		t.Error("a directory became a file")
	}
}

// TestNoRegularFileIsReplaced: a link keeps pointing where it does, and a device
// stays one.
func TestNoRegularFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
	if err := errors.Join(Write(path, []byte("old")), os.Symlink("a", link), Write(link, []byte("new"))); err != nil {
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
