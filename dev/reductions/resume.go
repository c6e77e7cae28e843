package reductions

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Resumed is a file of rows, each a line of JSON, to which later calls add.
type Resumed[T any] struct {
	All  []T // of earlier calls and this one
	file *os.File
}

// Resume opens a file, or begins it. A torn last line is as if it were not there.
func Resume[T any](name string) (*Resumed[T], error) {
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r := &Resumed[T]{}
	for line := range bytes.Lines(data) {
		var row T
		if json.Unmarshal(line, &row) == nil {
			r.All = append(r.All, row)
		}
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	if r.file, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		_, err = r.file.WriteString("\n")
	}
	return r, err
}

// Add adds a row.
func (r *Resumed[T]) Add(row *T) error {
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	r.All = append(r.All, *row)
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// Close closes the file.
func (r *Resumed[T]) Close() error { return r.file.Close() }
