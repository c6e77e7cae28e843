// Package newfile writes files that appear under their name whole or not at
// all.
//
// A file has no name while it is written (O_TMPFILE of Linux), so that even a
// process that is killed leaves nothing behind; where the file system cannot do
// that, it is a hidden file beside its place until Finish. Finish replaces what
// was there in one step.
//
// The new file keeps the permissions of the one that it replaces, and its owner
// where that is allowed. Symbolic links are followed, also to a target that is
// not there yet, as the shell's > does; a loop of links is refused. Other hard
// links of a replaced file keep the old content. What is no regular file (a
// terminal, /dev/null, a pipe, /dev/stdout) cannot be replaced and is written in
// place. The package knows nothing of what the bytes mean.
package newfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File is a file in the making. It is an io.Writer until Finish.
type File struct {
	file    *os.File
	temp    string      // the hidden name it has meanwhile; empty: none
	to      string      // the name it will have; empty: written in place
	old     fs.FileInfo // the file that is replaced, nil without one
	fresh   bool        // replaces nothing, takes another name instead
	inPlace bool
}

// Create begins a file that replaces what is at path.
func Create(path string) (*File, error) {
	to, old, err := resolve(path)
	switch {
	case err != nil:
		return nil, err
	case old != nil && old.IsDir():
		return nil, &fs.PathError{Op: "create", Path: path, Err: syscall.EISDIR}
	case old != nil && !old.Mode().IsRegular():
		return openInPlace(to)
	}
	return begin(&File{to: to, old: old})
}

// CreateNew begins a file that replaces nothing: Finish gives it the first of
// path, path.0, path.1, … that is free.
func CreateNew(path string) (*File, error) {
	return begin(&File{to: path, fresh: true})
}

// unnamed and link are what the system offers; tests replace them by what other
// systems do.
var unnamed, link = openUnnamed, linkUnnamed

// maxLinks is how many symbolic links are followed, as in Linux.
const maxLinks = 40

// resolve follows symbolic links to the file that will be written, and says what
// is there: nil if nothing is.
func resolve(path string) (to string, old fs.FileInfo, err error) {
	to = path
	for range maxLinks {
		at, err := os.Lstat(to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return to, nil, nil
		case err != nil:
			return "", nil, err
		case at.Mode()&fs.ModeSymlink == 0:
			return to, at, nil
		case openFile(to):
			return to, at, nil // the link is no regular file: written in place
		}
		next, err := os.Readlink(to)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(next) {
			dir, _ := filepath.Split(to)
			next = dir + next // not Join: of a/../b it would drop a, which may be a link
		}
		to = next
	}
	return "", nil, &fs.PathError{Op: "create", Path: path, Err: syscall.ELOOP}
}

// openFile reports whether a link is the kernel's name of a file that this
// process has open: /dev/stdout leads to such a one.
func openFile(link string) bool {
	return strings.HasPrefix(link, "/proc/") || strings.HasPrefix(link, "/dev/fd/")
}

// openInPlace opens what cannot be replaced. Opening a pipe waits for a reader.
func openInPlace(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return register(&File{file: f, inPlace: true})
}

// begin opens the file that will be f.to.
func begin(f *File) (*File, error) {
	var err error
	if f.file, err = unnamed(filepath.Dir(f.to), f.mode()); err != nil {
		if err := f.openNamed(); err != nil {
			return nil, err
		}
	}
	if f.old != nil {
		keepOwner(f.file, f.old)
		if err := f.file.Chmod(f.mode()); err != nil {
			f.discard()
			return nil, err
		}
	}
	return register(f)
}

// mode is the permissions of the new file: those of the old one, else what the
// umask leaves.
func (f *File) mode() fs.FileMode {
	if f.old != nil {
		return f.old.Mode().Perm()
	}
	return 0o666
}

// maxTries bounds the hidden names that are tried.
const maxTries = 1000

// hidden is a name beside the file's place.
func (f *File) hidden(try int) string {
	base := filepath.Base(f.to)
	return filepath.Join(filepath.Dir(f.to), fmt.Sprintf(".%s.%d.%d", base[:min(len(base), 200)], os.Getpid(),
		try))
}

// openNamed opens a hidden file: for file systems without unnamed ones. Not
// os.CreateTemp, whose files others may not read with any umask.
func (f *File) openNamed() (err error) {
	for try := range maxTries {
		f.temp = f.hidden(try)
		if f.file, err = os.OpenFile(f.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, f.mode()); !errors.Is(err,
			fs.ErrExist) {
			break
		}
	}
	return err
}

// Write appends to the file. After Abandon it fails.
func (f *File) Write(p []byte) (int, error) {
	if err := abandoned(); err != nil {
		return 0, err
	}
	return f.file.Write(p)
}

// Name is where the file is, once Finish has returned without an error.
func (f *File) Name() string {
	if f.inPlace {
		return f.file.Name()
	}
	return f.to
}

// Size is how many bytes the file has; 0 for what is written in place.
func (f *File) Size() int64 {
	at, err := f.file.Stat()
	if err != nil || f.inPlace {
		return 0
	}
	return at.Size()
}

// Finish ends the writing: without an error the file gets its name, else nothing
// of it stays. It returns the first error.
func (f *File) Finish(err error) error {
	live.Lock()
	defer live.Unlock()
	delete(live.files, f)
	if err == nil {
		err = live.err
	}
	if err == nil && !f.inPlace {
		if err = flush(f.file); err == nil {
			err = f.commit()
		}
	}
	if e := f.discard(); err == nil {
		err = e
	}
	return err
}

// discard closes the file and removes its hidden name, if it still has one.
func (f *File) discard() error {
	err := f.file.Close()
	if f.temp != "" {
		_ = os.Remove(f.temp)
		f.temp = ""
	}
	return err
}

// commit gives the file its name.
func (f *File) commit() error {
	if f.fresh {
		return f.commitFresh()
	}
	if f.temp == "" {
		if f.old == nil && link(f.file, f.to) == nil {
			return nil
		}
		if err := f.name(); err != nil {
			return err
		}
	}
	err := os.Rename(f.temp, f.to)
	if err == nil {
		f.temp = ""
	}
	return err
}

// commitFresh gives the file the first free name.
func (f *File) commitFresh() error {
	path := f.to
	for try := 0; ; {
		var err error
		if f.temp == "" {
			err = link(f.file, f.to)
		} else {
			err = moveFresh(f.temp, f.to)
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			f.to = fmt.Sprintf("%s.%d", path, try)
			try++
		case err == nil || f.temp != "":
			return err
		default:
			if err := f.name(); err != nil {
				return err
			}
		}
	}
}

// moveFresh renames a file to a name that must be free.
func moveFresh(from, to string) error {
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return err // the hidden name is removed with the rest
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // a file system without hard links
	if err != nil {
		return err
	}
	f.Close()
	return os.Rename(from, to)
}

// name gives an unnamed file a hidden name, to be renamed in the next step.
func (f *File) name() error {
	for try := range maxTries {
		name := f.hidden(try)
		err := link(f.file, name)
		if err == nil {
			f.temp = name
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f.copy()
}

// copy makes a hidden file of an unnamed one that cannot get a name: where /proc
// is not mounted.
func (f *File) copy() error {
	from := f.file
	defer from.Close()
	if err := f.openNamed(); err != nil {
		f.file = from
		return err
	}
	if f.old != nil {
		keepOwner(f.file, f.old)
	}
	at, err := from.Stat()
	if err == nil {
		err = f.file.Chmod(at.Mode().Perm())
	}
	if err == nil {
		_, err = io.Copy(f.file, io.NewSectionReader(from, 0, at.Size()))
	}
	return err
}

// Write makes a file of data.
func Write(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return f.Finish(err)
}
