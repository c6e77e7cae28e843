// Package golist reads what the go command lists of packages.
package golist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
)

// Query is one run of go list.
type Query struct {
	Dir      string   // in which it runs
	Env      []string // beyond that of this process
	Flags    []string // beyond -e and -json
	Patterns []string
}

// Packages lists packages into T, a struct whose fields are those of `go help list` that are wanted. What
// cannot be loaded is listed, too, and says so in its Error.
func Packages[T any](q Query) ([]*T, error) {
	var fields []string
	for f := range reflect.TypeFor[T]().Fields() {
		fields = append(fields, f.Name)
	}
	args := append([]string{"list", "-e", "-json=" + strings.Join(fields, ",")}, q.Flags...)
	cmd := exec.Command("go", append(args, q.Patterns...)...)
	cmd.Dir, cmd.Env = q.Dir, append(os.Environ(), q.Env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var all []*T
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		l := new(T)
		if err := d.Decode(l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, l)
	}
}
