package main

import (
	"io/fs"
	"os"
)

// files are the input files of a command as scenarios read them: names are paths
// as a shell has them, and given contents take the place of files.
type files struct {
	app   *app
	given map[string][]byte
}

// Open opens a file.
func (f files) Open(name string) (fs.File, error) { return os.Open(f.app.path(name)) }

// ReadLimited reads a file, or returns what was given in its place.
func (f files) ReadLimited(name string, limit int64) ([]byte, error) {
	if data := f.given[name]; data != nil {
		return data, nil
	}
	return f.app.read(name, limit)
}
