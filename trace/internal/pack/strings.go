package pack

// Strings are short strings of a trace, which repeats a few.
type Strings struct{ known map[string]string }

// Intern returns a shared copy of a short string.
func (x *Strings) Intern(b []byte) string {
	if len(b) > 256 {
		return string(b)
	}
	if s, ok := x.known[string(b)]; ok {
		return s
	}
	if x.known == nil || len(x.known) > 1<<16 {
		x.known = make(map[string]string)
	}
	s := string(b)
	x.known[s] = s
	return s
}
