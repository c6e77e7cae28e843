package chrome

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readAll(data []byte) (*Info, error) {
	return Read(bytes.NewReader(data), func(*Event) error { return nil })
}

const oneEvent = `[{"ph":"i","pid":1,"tid":2,"ts":1,"name":"a"}]`

// TestGzipFaultsHavePlaces: where in the file, after how much text, and what.
func TestGzipFaultsHavePlaces(t *testing.T) {
	whole := zipped(t, oneEvent)
	n := len(whole)
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 0xff
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut in the data", whole[:n-12], fmt.Sprintf("byte %d of the compressed file, after", n-12)},
		{"cut in the trailer", whole[:n-3],
			fmt.Sprintf("byte %d of the compressed file, after %d bytes of text: the file is cut", n-3,
				len(oneEvent))},
		{"cut in the header", whole[:5],
			"byte 5 of the compressed file, after 0 bytes of text: the file is cut"},
		{"checksum", flip(n - 6),
			fmt.Sprintf("byte %d of the compressed file, after %d bytes of text: checksum", n,
				len(oneEvent))},
		{"length", flip(n - 2),
			fmt.Sprintf("byte %d of the compressed file, after %d bytes of text: checksum or length", n,
				len(oneEvent))},
		{"junk", append(bytes.Clone(whole), "junk"...), fmt.Sprintf("byte %d of the compressed file, after "+
			"%d bytes of text: what follows the compressed data is no gzip", n, len(oneEvent))},
		{"a second header that is cut", append(bytes.Clone(whole), whole[:4]...),
			fmt.Sprintf("byte %d of the compressed file, after %d bytes of text: the file is cut", n+4,
				len(oneEvent))},
		{"method", flip(2), "no header of gzip"},
	} {
		_, err := readAll(c.data)
		var fault *GzipError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	good := map[string][]byte{
		"whole": whole, "zeros behind": append(bytes.Clone(whole), 0, 0, 0),
		"two members": append(zipped(t, oneEvent[:10]), zipped(t, oneEvent[10:])...),
	}
	for name, data := range good {
		if info, err := readAll(data); err != nil || info.Events != 1 || !info.Compressed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// repeated is text that never ends in memory.
func repeated(head, text string, n int) io.Reader {
	return io.MultiReader(strings.NewReader(head), io.LimitReader(&loop{text: text},
		int64(n)*int64(len(text))))
}

type loop struct {
	text string
	at   int
}

func (l *loop) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], l.text[l.at:])
		n, l.at = n+k, (l.at+k)%len(l.text)
	}
	return n, nil
}

// TestReadIsBounded: what costs more than a trace is refused by its bound.
func TestReadIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of megabytes are read")
	}
	event := `{"ph":"i","pid":1,"tid":2,"ts":1,"name":"a"},` + "\n"
	item := strings.Repeat("i", 500)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.Copy(z, repeated("[", event, 5*freeText/4/len(event))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		in   io.Reader
		want string
	}{
		{"bomb", &bomb, "MiB of text come out of"},
		{"blanks", repeated("", " ", maxBlank+2), "more than 16 MiB of white space"},
		{"blanks in lines", repeated("[", "\n", maxBlank+2), "more than 16 MiB of white space"},
		{"arguments", repeated(`[{"args":{"a":1`, `,"b":2`, maxArgs+1),
			"an event of more than 4096 arguments"},
		{"a list", repeated(`[{"args":{"a":[1`, `,"`+item+`"`, maxToken/len(item)),
			"a value of more than 16 MiB"},
		{"a list that is skipped", repeated(`[{"x":[1`, `,"`+item+`"`, maxEvent/len(item)),
			"an event of more than 32 MiB of text"},
		{"a name", repeated(`[{"name":"`, `nnnnnnnnnnnnnnnn`, 1<<13), ""},
		{"a long name", strings.NewReader(`[{"name":"` + strings.Repeat("n", 1<<17) + `"}]`),
			`a name of 131072 bytes, beginning "nnnn`},
		{"a long key", strings.NewReader(`[{"` + strings.Repeat("k", 1<<17) + `":1}]`),
			`a key of 131072 bytes`},
		{"otherData", repeated(`{"otherData":{"a":1`, `,"b":"0123456789"`, 1<<18),
			"otherData of more than 16 MiB"},
		{"words", wordy(maxWords*64/maxName + 10), "too many process and thread numbers"},
	} {
		_, err := Read(c.in, func(*Event) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		} else if len(err.Error()) > 300 {
			t.Errorf("%s: an error of %d bytes", c.name, len(err.Error()))
		}
	}
}

// wordy has n processes whose numbers are long words.
func wordy(n int) io.Reader {
	parts := []io.Reader{strings.NewReader("[")}
	for i := range n {
		parts = append(parts, strings.NewReader(fmt.Sprintf(`{"ph":"i","ts":1,"pid":"%d`, i)),
			repeated("", "p", maxName-10), strings.NewReader(`"},`))
	}
	return io.MultiReader(parts...)
}

// TestLongNumbersAreCut: a number of a million digits is no message.
func TestLongNumbersAreCut(t *testing.T) {
	long := strings.Repeat("9", 1<<20)
	for _, text := range []string{`[{"ph":"i","ts":` + long + `}]`, `[{"ph":"X","ts":1,"dur":` + long +
		`}]`} {
		_, err := Read(strings.NewReader(text), func(e *Event) error {
			if e.BadTS == "" || len(e.BadTS) > 100 {
				t.Errorf("BadTS of %d bytes", len(e.BadTS))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	info, err := Read(strings.NewReader(`[{"ph":"i","ts":1,"name":`+strings.Repeat("w", 60000)+`}]`),
		func(*Event) error { return nil })
	if err != nil || info.FirstRepair == nil || len(info.FirstRepair.Error()) > 200 {
		t.Errorf("%v, %.300v", err, info.FirstRepair)
	}
}

// TestEndsBeyondTimeAreNoTimes: ts and dur fit each, their sum does not.
func TestEndsBeyondTimeAreNoTimes(t *testing.T) {
	_, err := Read(strings.NewReader(`[{"ph":"i","ts":0},{"ph":"X","ts":9000000000000,"dur":9000000000000}]`),
		func(e *Event) error {
			if e.Phase == 'X' && e.BadTS == "" {
				t.Errorf("%v + %v is taken for a time", e.TS, e.Dur)
			}
			return nil
		})
	if err != nil {
		t.Error(err)
	}
}
