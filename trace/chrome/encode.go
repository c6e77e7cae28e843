package chrome

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/simccl/simccl/trace"
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
func appendValue(b []byte, kind trace.ArgKind, v *value) []byte {
	switch kind {
	case trace.StringArg:
		return append(b, v.word.text...)
	case trace.IntArg:
		return strconv.AppendInt(b, v.num, 10)
	}
	return appendFloat(b, v.float)
}

// appendArgs prints `,"args":{…}` where there are any.
func (t *tables) appendArgs(b []byte, p *packed) []byte {
	if len(p.shape.args) == 0 {
		return b
	}
	b = append(b, `,"args":{`...)
	t.values(p, func(a *shapeArg, v *value) {
		b = append(appendValue(append(b, a.text...), a.kind, v), ',')
	})
	b[len(b)-1] = '}'
	return b
}

// appendEvent prints one event without the line end.
func (t *tables) appendEvent(b []byte, p *packed, at *track) []byte {
	if p.kind >= pairBegin {
		return t.appendPair(b, p, at)
	}
	from := p.ts
	switch trace.Phase(p.kind) {
	case trace.Slice:
		b = append(append(b, `{"ph":"X",`...), at.place...)
		b = appendMicros(append(b, `,"ts":`...), from)
		b = appendMicros(append(b, `,"dur":`...), p.dur)
	case trace.Instant:
		b = append(append(b, `{"ph":"i","s":"t",`...), at.place...)
		b = appendMicros(append(b, `,"ts":`...), from)
	case trace.FlowStart, trace.FlowEnd:
		if trace.Phase(p.kind) == trace.FlowStart {
			b = append(b, `{"ph":"s",`...)
		} else {
			b = append(b, `{"ph":"f","bp":"e",`...)
		}
		b = appendMicros(append(append(b, at.place...), `,"ts":`...), from)
		b = append(strconv.AppendUint(append(b, `,"id":"0x`...), p.id, 16), '"')
	case trace.Counter:
		b = append(append(b, `{"ph":"C",`...), at.process...)
		b = appendMicros(append(b, `,"ts":`...), from)
	}
	return append(t.appendArgs(append(b, p.shape.text...), p), '}')
}

// appendPair prints one half of an asynchronous pair.
func (t *tables) appendPair(b []byte, p *packed, at *track) []byte {
	b = appendString(append(b, `{"name":`...), p.shape.name)
	b = appendString(append(b, `,"cat":`...), p.shape.cat)
	ph := `,"ph":"e","id":`
	if p.kind == pairBegin {
		ph = `,"ph":"b","id":`
	}
	b = strconv.AppendUint(append(b, ph...), p.id, 10)
	b = append(append(b, ','), at.process...)
	b = appendMicros(append(b, `,"tid":1,"ts":`...), p.ts)
	if p.kind == pairBegin {
		b = t.appendArgs(b, p)
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
