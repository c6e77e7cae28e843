package train

// Longest is for how many windows at most no host is looked at where none sends a train: to look costs more
// than a window with few frames.
const Longest = 15

// Search says in which windows hosts are looked at for whether they send trains: where none did, not in some
// to come.
type Search struct {
	Moved bool // hosts sent or acknowledged some in this window

	rest  uint8 // windows in which none is looked at
	rests uint8 // how many those were the last time
}

// Rests says that none is looked at.
func (s *Search) Rests() bool { return s.rest > 0 }

// Next ends a window.
func (s *Search) Next() {
	if s.rest > 0 && !s.Moved {
		s.rest--
		return
	}
	if s.rests = min(2*s.rests+1, Longest); s.Moved {
		s.rests = 0
	}
	s.rest, s.Moved = s.rests, false
}
