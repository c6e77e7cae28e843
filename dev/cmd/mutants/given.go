package main

import (
	"fmt"
	"os"
	"strings"
)

// given is the kind of a change that a file says.
const given = "given"

// givenPlaces reads changes: what a change means after #, the file, its old lines after "- " and the new ones
// after "+ "; empty lines are between them. The old lines must be in the file once.
func givenPlaces(name string) (places []*Place, err error) {
	table, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	line := 1
	for block := range strings.SplitSeq(string(table), "\n\n") {
		p, err := givenPlace(strings.Split(strings.Trim(block, "\n"), "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if line += strings.Count(block, "\n") + 2; p != nil {
			places = append(places, p)
		}
	}
	return places, nil
}

// givenPlace is a change, nil for lines that have none.
func givenPlace(lines []string) (*Place, error) {
	p := &Place{Kind: given, Nth: 1}
	var was, is []string
	for _, line := range lines {
		sign, text, _ := strings.Cut(line, " ")
		switch sign {
		case "#":
			p.Func = strings.TrimSpace(p.Func + " " + text)
		case "-":
			was = append(was, text)
		case "+":
			is = append(is, text)
		default:
			p.File = strings.TrimSpace(line)
		}
	}
	if p.File == "" && was == nil && is == nil {
		return nil, nil
	}
	file, err := os.ReadFile(p.File)
	if err != nil {
		return nil, err
	}
	p.Old, p.New = strings.Join(was, "\n"), strings.Join(is, "\n")
	if n := strings.Count(string(file), p.Old); n != 1 {
		return nil, fmt.Errorf("%s has %q %d times: write a part of it that is there once", p.File, p.Old, n)
	}
	p.offset = strings.Index(string(file), p.Old)
	p.end = p.offset + len(p.Old)
	p.Line = 1 + strings.Count(string(file[:p.offset]), "\n")
	return p, nil
}
