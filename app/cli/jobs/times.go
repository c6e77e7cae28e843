package jobs

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/jsonfile"
	"github.com/simccl/simccl/units"
)

// maxMicros is the largest accepted time of an operation, in microseconds.
const maxMicros = 1e9

type timeError struct {
	file      string
	line, col int
	problem   string
}

// Error states the position and an example.
func (e *timeError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; write op,us a line, for example qkv,123.4", e.file, e.line, e.col,
		e.problem)
}

// readTimes parses times of operations: CSV lines "op,us" with an optional heading of these words, or a JSON
// object of microseconds by operation.
func readTimes(data []byte, file string) (map[string]units.Time, error) {
	if t := bytes.TrimSpace(data); len(t) > 0 && t[0] == '{' {
		return jsonTimes(data, file)
	}
	out := map[string]units.Time{}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', -1, true
	for first := true; ; first = false {
		row, err := r.Read()
		var parse *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.As(err, &parse):
			return nil, &timeError{file, parse.Line, parse.Column, parse.Err.Error()}
		case err != nil:
			return nil, err
		}
		line, col := r.FieldPos(len(row) - 1)
		if len(row) != 2 {
			return nil, &timeError{file, line, col, fmt.Sprintf("%d fields", len(row))}
		}
		name, text := strings.TrimSpace(row[0]), strings.TrimSpace(row[1])
		if first && strings.EqualFold(name, "op") {
			continue
		}
		us, err := strconv.ParseFloat(text, 64)
		if err != nil || !inRange(us) {
			return nil, &timeError{file, line, col, fmt.Sprintf("%q is no time in microseconds from 0 to %g",
				text, float64(maxMicros))}
		}
		if _, twice := out[name]; twice || name == "" {
			line, col = r.FieldPos(0)
			return nil, &timeError{file, line, col, fmt.Sprintf("operation %q has no name, or a time already",
				name)}
		}
		out[name] = units.FromMicros(us)
	}
}

func inRange(us float64) bool { return us >= 0 && us <= maxMicros && !math.IsNaN(us) }

// jsonTimes parses {"qkv": 123.4}.
func jsonTimes(data []byte, file string) (map[string]units.Time, error) {
	r := jsonfile.New(data, file)
	at := r.Next()
	var list map[string]float64
	if err := r.Decode(&list); err != nil {
		return nil, err
	}
	out := map[string]units.Time{}
	for name, us := range list { //lint:sorted into another map
		if !inRange(us) {
			return nil, r.Fail(at, `write {"qkv": 123.4}`, "%q has no time in microseconds from 0 to %g",
				name, float64(maxMicros))
		}
		out[name] = units.FromMicros(us)
	}
	return out, nil
}
