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

// appendArgs prints `,"args":{…}`; a number that JSON has no word for is null.
func appendArgs(b []byte, args []trace.Arg) []byte {
	b = append(b, `,"args":{`...)
	for i := range args {
		if i > 0 {
			b = append(b, ',')
		}
		a := &args[i]
		b = append(appendString(b, a.Key), ':')
		switch a.Kind {
		case trace.StringArg:
			b = appendString(b, a.Str)
		case trace.IntArg:
			b = strconv.AppendInt(b, a.Int, 10)
		case trace.FloatArg:
			b = appendFloat(b, a.Num)
		}
	}
	return append(b, '}')
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

// appendEvent prints one event without the line end. from and to are its
// bounds in ticks; place is the track's `"pid":…,"tid":…`.
func appendEvent(b []byte, e *trace.Event, place, process []byte, from, to int64) []byte {
	switch e.Phase {
	case trace.Slice:
		b = append(append(b, `{"ph":"X",`...), place...)
		b = appendMicros(append(b, `,"ts":`...), from)
		b = appendMicros(append(b, `,"dur":`...), to-from)
	case trace.Instant:
		b = append(append(b, `{"ph":"i","s":"t",`...), place...)
		b = appendMicros(append(b, `,"ts":`...), from)
	case trace.FlowStart, trace.FlowEnd:
		if e.Phase == trace.FlowStart {
			b = append(b, `{"ph":"s",`...)
		} else {
			b = append(b, `{"ph":"f","bp":"e",`...)
		}
		b = appendMicros(append(append(b, place...), `,"ts":`...), from)
		b = append(strconv.AppendUint(append(b, `,"id":"0x`...), uint64(e.ID), 16), '"')
	case trace.Counter:
		b = append(append(b, `{"ph":"C",`...), process...)
		b = appendMicros(append(b, `,"ts":`...), from)
	}
	if e.Cat != "" {
		b = appendString(append(b, `,"cat":`...), e.Cat)
	}
	b = appendString(append(b, `,"name":`...), e.Name)
	if len(e.Args) > 0 {
		b = appendArgs(b, e.Args)
	}
	return append(b, '}')
}

// appendPair prints one half of an asynchronous pair.
func appendPair(b []byte, e *trace.Event, process []byte, id, at int64, begin bool) []byte {
	b = appendString(append(b, `{"name":`...), e.Name)
	b = appendString(append(b, `,"cat":`...), e.Cat)
	ph := `,"ph":"e","id":`
	if begin {
		ph = `,"ph":"b","id":`
	}
	b = strconv.AppendInt(append(b, ph...), id, 10)
	b = append(append(b, ','), process...)
	b = appendMicros(append(b, `,"tid":1,"ts":`...), at)
	if begin && len(e.Args) > 0 {
		b = appendArgs(b, e.Args)
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
