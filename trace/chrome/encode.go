package chrome

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome/internal/pack"
)

// appendMicros prints a number of nanoseconds as microseconds with three
// decimals, from the integer alone.
func appendMicros(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	f := ns % 1000
	return append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
}

const hexDigits = "0123456789abcdef"

// appendString prints a JSON string; invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			b = append(append(b, s[from:i]...), "\ufffd"...)
			i++
			from = i
			continue
		}
		b = append(b, s[from:i]...)
		if c == '"' || c == '\\' {
			b = append(b, '\\', c)
		} else {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	if v == 0 {
		return append(b, '0')
	}
	if a := math.Abs(v); a < 1e15 && a >= 1e-6 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'e', -1, 64)
}

// appendValue prints a value of an argument; a number that JSON has no word for is
// null.
func appendValue(b []byte, kind trace.ArgKind, v *pack.Value) []byte {
	switch kind {
	case trace.StringArg:
		return append(b, v.Word.Text...)
	case trace.IntArg:
		return strconv.AppendInt(b, v.Num, 10)
	}
	return appendFloat(b, v.Float)
}

// appendArgs prints `,"args":{…}` where there are any.
func appendArgs(t *pack.Tables, b []byte, p *pack.Packed) []byte {
	if len(p.Shape.Args) == 0 {
		return b
	}
	b = append(b, `,"args":{`...)
	rest := p.Args()
	for i := range p.Shape.Args {
		a := &p.Shape.Args[i]
		rest = t.Value(p, i, rest)
		b = append(appendValue(append(b, a.Text...), a.Kind, &p.Value), ',')
	}
	b[len(b)-1] = '}'
	return b
}

// appendEvent prints one event without the line end.
func appendEvent(t *pack.Tables, b []byte, p *pack.Packed, at *track) []byte {
	if p.Kind >= pack.PairBegin {
		return appendPair(t, b, p, at)
	}
	from := p.TS
	switch trace.Phase(p.Kind) {
	case trace.Slice:
		b = append(append(b, `{"ph":"X",`...), at.place...)
		b = appendMicros(append(b, `,"ts":`...), from)
		b = appendMicros(append(b, `,"dur":`...), p.Dur)
	case trace.Instant:
		b = append(append(b, `{"ph":"i","s":"t",`...), at.place...)
		b = appendMicros(append(b, `,"ts":`...), from)
	case trace.FlowStart, trace.FlowEnd:
		if trace.Phase(p.Kind) == trace.FlowStart {
			b = append(b, `{"ph":"s",`...)
		} else {
			b = append(b, `{"ph":"f","bp":"e",`...)
		}
		b = appendMicros(append(append(b, at.place...), `,"ts":`...), from)
		b = append(strconv.AppendUint(append(b, `,"id":"0x`...), p.ID, 16), '"')
	case trace.Counter:
		b = append(append(b, `{"ph":"C",`...), at.process...)
		b = appendMicros(append(b, `,"ts":`...), from)
	}
	return append(appendArgs(t, append(b, p.Shape.Text...), p), '}')
}

// appendPair prints one half of an asynchronous pair.
func appendPair(t *pack.Tables, b []byte, p *pack.Packed, at *track) []byte {
	b = appendString(append(b, `{"name":`...), p.Shape.Name)
	b = appendString(append(b, `,"cat":`...), p.Shape.Cat)
	ph := `,"ph":"e","id":`
	if p.Kind == pack.PairBegin {
		ph = `,"ph":"b","id":`
	}
	b = strconv.AppendUint(append(b, ph...), p.ID, 10)
	b = append(append(b, ','), at.process...)
	b = appendMicros(append(b, `,"tid":1,"ts":`...), p.TS)
	if p.Kind == pack.PairBegin {
		b = appendArgs(t, b, p)
	}
	return append(b, '}')
}

// appendMeta prints a metadata event. A tid below 0 names the process.
func appendMeta(b []byte, pid, tid int64, name, key, str string, num int64) []byte {
	b = strconv.AppendInt(append(b, `{"ph":"M","pid":`...), pid, 10)
	if tid >= 0 {
		b = strconv.AppendInt(append(b, `,"tid":`...), tid, 10)
	}
	b = appendString(append(b, `,"name":`...), name)
	b = append(appendString(append(b, `,"args":{`...), key), ':')
	if str != "" {
		b = appendString(b, str)
	} else {
		b = strconv.AppendInt(b, num, 10)
	}
	return append(b, `}}`...)
}
