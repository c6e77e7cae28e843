package pairs

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/jsonfile"
)

// MaxBytes bounds a file of counts: 4,096 ranks of 20 digits.
const MaxBytes = 21 * coll.MaxPairRanks * coll.MaxPairRanks

const hint = "write a square matrix of whole numbers from 0: a row for each sender, in it a count of " +
	"elements for each receiver"

// Read reads a matrix of counts: JSON, [[0,8],[8,0]], or CSV without a head, where lines
// that begin with # are comments. Errors are *jsonfile.Errors with line and column.
func Read(data []byte, file string) ([][]int64, error) {
	var rows [][]int64
	var place func(src, dst int) (line, col int)
	var err error
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		places, err := jsonfile.Strict(data, file, &rows)
		if err != nil {
			return nil, err
		}
		place = func(src, dst int) (int, int) {
			var at *fail.FileError
			if errors.As(places.Fail(fmt.Sprintf("[%d][%d]", src, dst), "", ""), &at) {
				return at.Line, at.Col
			}
			return 1, 1
		}
	} else if rows, place, err = readCSV(data, file); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &fail.FileError{File: file, Line: 1, Col: 1, Problem: "no counts", Hint: hint}
	}
	_, err = Matrix(rows)
	var bad *coll.PairError
	if errors.As(err, &bad) {
		line, col := place(max(bad.Src, 0), max(bad.Dst, 0))
		return nil, &fail.FileError{File: file, Line: line, Col: col, Problem: bad.Error(), Hint: hint}
	}
	return rows, err
}

// readCSV reads a matrix; place says where a count is, or else the last of its row.
func readCSV(data []byte, file string) (rows [][]int64, place func(src, dst int) (int, int), err error) {
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace, r.ReuseRecord = '#', -1, true, true
	var at [][][2]int
	for {
		record, err := r.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return rows, func(src, dst int) (int, int) {
				p := at[src][min(dst, len(at[src])-1)]
				return p[0], p[1]
			}, nil
		case errors.As(err, &bad):
			return nil, nil, &fail.FileError{File: file, Line: bad.Line, Col: bad.Column,
				Problem: bad.Err.Error(), Hint: hint}
		case err != nil:
			return nil, nil, err
		case len(rows) >= coll.MaxPairRanks:
			line, col := r.FieldPos(0)
			return nil, nil, &fail.FileError{File: file, Line: line, Col: col,
				Problem: fmt.Sprintf("more than %d rows", coll.MaxPairRanks), Hint: hint}
		}
		row, places := make([]int64, len(record)), make([][2]int, len(record))
		for i, text := range record {
			line, col := r.FieldPos(i)
			if row[i], err = strconv.ParseInt(string(bytes.TrimSpace([]byte(text))), 10, 64); err != nil {
				return nil, nil, &fail.FileError{File: file, Line: line, Col: col,
					Problem: fmt.Sprintf("%q is no count of elements", text), Hint: hint}
			}
			places[i] = [2]int{line, col}
		}
		rows, at = append(rows, row), append(at, places)
	}
}
