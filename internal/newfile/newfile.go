// Package newfile writes files atomically: they appear under their name completely or not at all.
//
// A file has no name while it is written (O_TMPFILE of Linux), so that even a killed process leaves nothing
// behind. On file systems without O_TMPFILE it is a hidden file in the same directory until Finish. Finish
// replaces an existing file in one step.
//
// The new file keeps the permissions of the one that it replaces, and its owner if the process may set it.
// Symbolic links are followed, also to a target that does not exist, as with the shell's >; a loop of links
// is an error. Other hard links of a replaced file keep the old content. Anything but a regular file (a
// terminal, /dev/null, a pipe, /dev/stdout) cannot be replaced and is written in place. The package does not
// interpret the bytes.
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

// unnamed and link are the system's operations; tests replace them by those of other systems.
var unnamed, link = openUnnamed, linkUnnamed

// maxLinks is the maximum number of symbolic links that are followed, as in Linux.
const maxLinks = 40

// resolve follows symbolic links to the file that will be written and returns its path and its info, nil if
// it does not exist.
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

// openInPlace opens a file that cannot be replaced, such as a pipe, which waits for a reader.
func openInPlace(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return register(&File{file: f, inPlace: true})
}

// begin opens the temporary file for f.to.
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

// mode returns the permissions of the new file: those of the old one, else 0666 minus the umask.
func (f *File) mode() fs.FileMode {
	if f.old != nil {
		return f.old.Mode().Perm()
	}
	return 0o666
}

// maxTries is the maximum number of hidden names that are tried.
const maxTries = 1000

// hidden returns a hidden name in the directory of the file.
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

// Name returns the path of the file, after Finish has returned without an error.
func (f *File) Name() string {
	if f.inPlace {
		return f.file.Name()
	}
	return f.to
}

// Size returns the number of bytes written; 0 for a file that is written in place.
func (f *File) Size() int64 {
	at, err := f.file.Stat()
	if err != nil || f.inPlace {
		return 0
	}
	return at.Size()
}

// Finish completes the file: if err is nil the file gets its name, else it is removed. It returns the first
// error.
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

// commit gives the file its final name.
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

// commitFresh gives the file the first name that does not exist: NAME, NAME.0, NAME.1, ….
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

// name gives an unnamed file a hidden name, which the next step renames.
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

// copy copies an unnamed file that cannot be linked, because /proc is not mounted, to a hidden file.
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

// Write writes a file with the given content.
func Write(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return f.Finish(err)
}
