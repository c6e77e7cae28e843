package jsonscan

import (
	"math"
	"strconv"
)

// exponent parses a number with an exponent, in thousandths.
func exponent(t []byte) (int64, bool) {
	f, err := strconv.ParseFloat(string(t), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1<<52 {
		return 0, false
	}
	return int64(math.Floor(f*1000 + 0.5)), true
}

// ParseFloat parses a number; ok is false for NaN, infinities and text that is no number.
func ParseFloat(t []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(t), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// Float reads a number, also one in quotes; what is none is 0.
func (s *Scanner) Float() (float64, error) {
	return number(s, ParseFloat)
}

// Ints reads an array of integers, also one written in a string: "[0, 1]". An
// element that is no number ends it: cut is true (profilers write "…" after 30).
func (s *Scanner) Ints() (list []int64, cut bool, err error) {
	switch s.Peek() {
	case '[':
		err = s.Array(func(int) error {
			n, err := s.Int()
			list = append(list, n)
			return err
		})
		return list, false, err
	case '"':
		t, err := s.String()
		if err != nil {
			return nil, false, err
		}
		list, cut = intsOf(t)
		return list, cut, nil
	}
	return nil, false, s.Skip()
}

// intsOf reads the integers of "[0, 1, 2]"; cut is true when something else ends
// the list.
func intsOf(t []byte) (list []int64, cut bool) {
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c >= '0' && c <= '9' || c == '-':
			n, ok := ParseInt(t[i:])
			if !ok {
				return list, true
			}
			list = append(list, n)
			for i++; i < len(t) && t[i] >= '0' && t[i] <= '9'; i++ {
			}
			i--
		case c == '[', c == ']', c == ',', c == ' ', c == '(', c == ')':
		default:
			return list, true
		}
	}
	return list, false
}
