package newfile

import (
	"os"
	"sync"
)

// live lists the files that this process is writing, for Abandon.
var live = struct {
	sync.Mutex
	files map[*File]bool
	dirs  map[string]bool
	err   error // why nothing is written any more
}{files: map[*File]bool{}, dirs: map[string]bool{}}

// Abandon ends all writing of this process permanently: it removes unfinished files and directories of
// TempDir, and from then on Write, Finish and Create return err. A signal handler calls it, so that no
// further file appears.
func Abandon(err error) {
	live.Lock()
	defer live.Unlock()
	if live.err == nil {
		live.err = err
	}
	for f := range live.files { //lint:sorted each is removed
		if f.temp != "" {
			_ = os.Remove(f.temp)
		}
	}
	for dir := range live.dirs { //lint:sorted each is removed
		_ = os.RemoveAll(dir)
	}
	clear(live.files)
	clear(live.dirs)
}

func abandoned() error {
	live.Lock()
	defer live.Unlock()
	return live.err
}

// register notes a file as being written, or discards it after Abandon.
func register(f *File) (*File, error) {
	live.Lock()
	defer live.Unlock()
	if live.err != nil {
		_ = f.discard()
		return nil, live.err
	}
	live.files[f] = true
	return f, nil
}

// Scratch opens a file without a name in a directory (empty: the system's for
// temporary files). It is removed when it is closed or the process ends.
func Scratch(dir string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	if f, err := openUnnamed(dir, 0o600); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp(dir, ".simccl-*")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}

// TempDir creates a temporary directory; remove deletes it, and so does Abandon.
func TempDir(pattern string) (dir string, remove func(), err error) {
	live.Lock()
	defer live.Unlock()
	if live.err != nil {
		return "", nil, live.err
	}
	if dir, err = os.MkdirTemp("", pattern); err != nil {
		return "", nil, err
	}
	live.dirs[dir] = true
	return dir, func() {
		live.Lock()
		defer live.Unlock()
		delete(live.dirs, dir)
		_ = os.RemoveAll(dir)
	}, nil
}
