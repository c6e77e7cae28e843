package rng

// MRG32k3a, the combined multiple recursive generator (L'Ecuyer, Operations Research 47, 1999), in streams
// 2^127 steps apart, each in runs 2^76 steps apart (L'Ecuyer, Simard, Chen and Kelton, Operations Research
// 50, 2002).
const (
	m1, m2 = 4294967087, 4294944443 // moduli of the two components
	norm   = 2.328306549295727688e-10

	step12, step13, step21, step23 = 1403580, 810728, 527612, 1370589
)

// state is three words of each of the two components. All are 1 at first.
type state [2][3]uint64

// jump is a linear map of both components.
type jump [2][3][3]uint64

// step is what a draw does.
var step = jump{
	{{0, 1, 0}, {0, 0, 1}, {m1 - step13, step12, 0}},
	{{0, 1, 0}, {0, 0, 1}, {m2 - step23, 0, step21}},
}

// after is the map that does b and then a.
func (a *jump) after(b *jump) (c jump) {
	for i := range 3 {
		p, q := &a[0][i], &a[1][i]
		for j := range 3 { // a division by a constant is a multiplication
			x, y := &b[0], &b[1]
			c[0][i][j] = (p[0]*x[0][j]%m1 + p[1]*x[1][j]%m1 + p[2]*x[2][j]%m1) % m1
			c[1][i][j] = (q[0]*y[0][j]%m2 + q[1]*y[1][j]%m2 + q[2]*y[2][j]%m2) % m2
		}
	}
	return c
}

// of is where the map leads from a state.
func (a *jump) of(s *state) (t state) {
	x, y := &s[0], &s[1]
	for i := range 3 {
		p, q := &a[0][i], &a[1][i]
		t[0][i] = (p[0]*x[0]%m1 + p[1]*x[1]%m1 + p[2]*x[2]%m1) % m1
		t[1][i] = (q[0]*y[0]%m2 + q[1]*y[1]%m2 + q[2]*y[2]%m2) % m2
	}
	return t
}

// doubled is the map done 2^times times.
func (a jump) doubled(times int) jump {
	for range times {
		a = a.after(&a)
	}
	return a
}

// repeated moves a state n times.
func (a jump) repeated(n uint64, s state) state {
	for ; n != 0; n >>= 1 {
		if n&1 != 0 {
			s = a.of(&s)
		}
		a = a.after(&a)
	}
	return s
}

// number draws from a state.
func (s *state) number() float64 {
	x, y := &s[0], &s[1]
	a := (step12*x[1] + (m1-step13)*x[0]%m1) % m1
	b := (step21*y[2] + (m2-step23)*y[0]%m2) % m2
	x[0], x[1], x[2] = x[1], x[2], a
	y[0], y[1], y[2] = y[1], y[2], b
	if a <= b {
		a += m1
	}
	return float64(a-b) * norm
}

// Firsts are the first numbers of streams in turn.
type Firsts struct {
	state state
	next  jump
}

// NewFirsts starts with the first number of a stream in a run.
func NewFirsts(stream, run uint64) *Firsts {
	ones := state{{1, 1, 1}, {1, 1, 1}}
	next := step.doubled(127)
	return &Firsts{next.repeated(stream, step.doubled(76).repeated(run, ones)), next}
}

// Numbers are the numbers of one stream.
type Numbers struct{ state state }

// NewNumbers starts a stream of a run.
func NewNumbers(stream, run uint64) Numbers { return Numbers{NewFirsts(stream, run).state} }

// Draw is the next number, in (0,1).
func (n *Numbers) Draw() float64 { return n.state.number() }

// Draw is the first number of the present stream, in (0,1); it goes on to the next.
func (f *Firsts) Draw() float64 {
	s := f.state
	f.Skip()
	return s.number()
}

// Skip goes on to the next stream.
func (f *Firsts) Skip() { f.state = f.next.of(&f.state) }
