package chrome

import (
	"strconv"
	"unicode/utf8"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/internal/pack"
)

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string; invalid UTF-8 becomes U+FFFD.
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

// encoder prints events as JSON; each goroutine has its own.
type encoder struct {
	w      *Writer
	floats floats
}

// args prints `,"args":{…}` if there are arguments; a number that JSON cannot express is printed as null.
func (c *encoder) args(b []byte, p *pack.Packed) []byte {
	if len(p.Shape.Args) == 0 {
		return b
	}
	rest := p.Args()
	for i := range p.Shape.Args {
		a := &p.Shape.Args[i]
		b = append(b, a.Text...)
		switch a.Kind {
		case trace.IntArg:
			var v int64
			v, rest = pack.Int(rest)
			b = appendInt(b, v)
		case trace.FloatArg:
			var v float64
			v, rest = pack.Float(rest)
			b = c.floats.Append(b, v)
		default:
			rest = c.w.tables.Value(p, i, rest)
			b = append(b, p.Value.Word.Text...)
		}
	}
	return append(b, '}')
}

// event prints one event, preceded by the separator.
func (c *encoder) event(b []byte, p *pack.Packed) []byte {
	at := &c.w.tracks[p.Track]
	if p.Kind >= pack.PairBegin {
		return c.pair(append(b, separator...), p, at)
	}
	switch trace.Phase(p.Kind) {
	case trace.Slice:
		b = appendMicros(append(b, at.slice...), p.TS)
		b = appendMicros(append(b, `,"dur":`...), p.Dur)
	case trace.Counter:
		b = append(append(b, separator+`{"ph":"C",`...), at.process...)
		b = appendMicros(append(b, `,"ts":`...), p.TS)
	case trace.Instant:
		b = append(append(b, separator+`{"ph":"i","s":"t",`...), at.place...)
		b = appendMicros(append(b, `,"ts":`...), p.TS)
	default:
		start := separator + `{"ph":"f","bp":"e",`
		if trace.Phase(p.Kind) == trace.FlowStart {
			start = separator + `{"ph":"s",`
		}
		b = appendMicros(append(append(append(b, start...), at.place...), `,"ts":`...), p.TS)
		b = append(strconv.AppendUint(append(b, `,"id":"0x`...), p.ID, 16), '"')
	}
	return append(c.args(append(b, p.Shape.Text...), p), '}')
}

// pair prints one half of an asynchronous pair.
func (c *encoder) pair(b []byte, p *pack.Packed, at *track) []byte {
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
		b = c.args(b, p)
	}
	return append(b, '}')
}

// appendMeta appends a metadata event. A tid below 0 names the process.
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
