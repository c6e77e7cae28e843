package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// value builds what encoding/json would.
func value(s *Scanner) (any, error) {
	switch s.Peek() {
	case '{':
		m := map[string]any{}
		return m, s.Object(func(key []byte) error {
			k := string(key)
			v, err := value(s)
			m[k] = v
			return err
		})
	case '[':
		a := []any{}
		err := s.Array(func(int) error {
			v, err := value(s)
			a = append(a, v)
			return err
		})
		return a, err
	case '"':
		t, err := s.String()
		return string(t), err
	}
	t, err := s.Number()
	if err != nil {
		return nil, err
	}
	switch string(t) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	f, _ := ParseFloat(t)
	return f, nil
}

const sample = `{"a": [1, -2.5, 1e3, {"b\"\\": "x\u00e9\ud83d\ude00\n"}], "": null, "c": {"d": [[], {}]},
 "t": true, "esc": "\\", "last": "\\\"\\"}`

// TestReadsWhatEncodingJSONReads: also a byte at a time, so that every value
// crosses the end of a window once.
func TestReadsWhatEncodingJSONReads(t *testing.T) {
	var want any
	if err := json.Unmarshal([]byte(sample), &want); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Scanner{New(strings.NewReader(sample), "f"),
		New(iotest.OneByteReader(strings.NewReader(sample)), "f")} {
		got, err := value(s)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v %v, want %v", got, err, want)
		}
	}
	for _, s := range []*Scanner{New(strings.NewReader(sample+"7"), "f"),
		New(iotest.OneByteReader(strings.NewReader(sample+"7")), "f")} {
		if err := s.Skip(); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Int(); n != 7 || err != nil {
			t.Errorf("after the value %d, %v; want 7", n, err)
		}
	}
}

// TestFaultsHavePlaces: line and column, and the end of a file by type.
func TestFaultsHavePlaces(t *testing.T) {
	for text, want := range map[string]string{
		"[1,\n 2;]":   "f:2:3: ']' is expected here, not ';'",
		"{\"a\" 1}":   "f:1:6: ':' is expected here, not '1'",
		"[\n\n  :]":   "f:3:3: a value is expected here, not ':'",
		"{1:2}":       "f:1:2: '\"' is expected here, not '1'",
		"[1,\n\"abc":  "f:2:5: the file ends within a value",
		"[{\"a\":[1":  "f:1:9: the file ends within a value",
		"[\"\\u12\",": "f:1:9: the file ends within a value",
	} {
		_, err := value(New(strings.NewReader(text), "f"))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if errors.Is(err, ErrTruncated) != strings.Contains(want, "ends within") {
			t.Errorf("%q: truncated by type: %v", text, err)
		}
	}
	if _, err := value(New(strings.NewReader(strings.Repeat("[", 20000)), "f")); err == nil ||
		!strings.Contains(err.Error(), "nested more than 10000 deep") {
		t.Error(err)
	}
	if err := New(strings.NewReader(strings.Repeat("[", 20000)), "f").Skip(); err == nil ||
		!strings.Contains(err.Error(), "nested more than 10000 deep") {
		t.Error(err)
	}
}

// TestNumbers: thousandths of decimal text, without a float in between.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"4479720042987.993": "4479720042987993 true", "12": "12000 true", "-1.5": "-1500 true",
		"0.0019": "1 true",
		"1e3":    "1000000 true", "NaN": "0 false", "": "0 false", "-": "0 false", "1e400": "0 false",
		"99999999999999999999": "0 false",
	} {
		n, ok := Milli([]byte(text))
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"[0, 1, 2]": "[0 1 2] false", "[]": "[] false", "[0, 1, ...]": "[0 1] true", "[-3,4]": "[-3 4] false",
		"x": "[] true",
	} {
		l, cut := intsOf([]byte(text))
		if got := fmt.Sprint(l, cut); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// FuzzScanner: what encoding/json reads, the scanner reads the same, whole or a
// byte at a time; nothing makes it panic.
func FuzzScanner(f *testing.F) {
	f.Add(sample)
	f.Add(`{"a":[1,2`)
	f.Add(`"\ud800x"`)
	f.Fuzz(func(t *testing.T, text string) {
		whole, err1 := value(New(strings.NewReader(text), "f"))
		bytewise, err2 := value(New(iotest.OneByteReader(strings.NewReader(text)), "f"))
		if (err1 == nil) != (err2 == nil) || err1 == nil && !reflect.DeepEqual(whole, bytewise) {
			t.Fatalf("%v %v, byte by byte %v %v", whole, err1, bytewise, err2)
		}
		if err := New(strings.NewReader(text), "f").Skip(); err1 == nil && err != nil {
			t.Fatalf("is read but not skipped: %v", err)
		}
		var v any
		if json.Unmarshal([]byte(text), &v) == nil && err1 != nil {
			t.Fatalf("encoding/json reads it: %v", err1)
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	text := "[" + strings.Repeat(sample+",\n", 10000) + "1]"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := New(strings.NewReader(text), "f").Skip(); err != nil {
			b.Fatal(err)
		}
	}
}
