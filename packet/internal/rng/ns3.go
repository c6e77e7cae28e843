package rng

// MRG32k3a is ns-3's generator, a combined multiple recursive one (L'Ecuyer, Operations Research 47, 1999).
// Streams are 2^127 steps apart, runs of a stream 2^76 (L'Ecuyer, Simard, Chen and Kelton, Operations
// Research 50, 2002).
const (
	m1, m2 = 4294967087, 4294944443 // moduli of the two components
	norm   = 2.328306549295727688e-10

	step12, step13, step21, step23 = 1403580, 810728, 527612, 1370589
)

// state is the last three values of each component; initially all 1.
type state [2][3]uint64

// jump is a linear map of a state: a 3×3 matrix for each component.
type jump [2][3][3]uint64

// step advances a state by one draw.
var step = jump{
	{{0, 1, 0}, {0, 0, 1}, {m1 - step13, step12, 0}},
	{{0, 1, 0}, {0, 0, 1}, {m2 - step23, 0, step21}},
}

// after returns the map b, then a: the matrix product a·b.
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

// of applies the map to a state.
func (a *jump) of(s *state) (t state) {
	x, y := &s[0], &s[1]
	for i := range 3 {
		p, q := &a[0][i], &a[1][i]
		t[0][i] = (p[0]*x[0]%m1 + p[1]*x[1]%m1 + p[2]*x[2]%m1) % m1
		t[1][i] = (q[0]*y[0]%m2 + q[1]*y[1]%m2 + q[2]*y[2]%m2) % m2
	}
	return t
}

// doubled returns the map applied 2^times times.
func (a jump) doubled(times int) jump {
	for range times {
		a = a.after(&a)
	}
	return a
}

// repeated applies the map n times, by squaring.
func (a jump) repeated(n uint64, s state) state {
	for ; n != 0; n >>= 1 {
		if n&1 != 0 {
			s = a.of(&s)
		}
		a = a.after(&a)
	}
	return s
}

// number advances the state and returns a number in (0,1).
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

// Firsts draws the first number of one stream after the other: in ns-3 each mark makes a random variable, and
// each random variable has its own stream.
type Firsts struct {
	state state
	next  jump
}

// NewFirsts starts at a stream of a run.
func NewFirsts(stream, run uint64) *Firsts {
	ones := state{{1, 1, 1}, {1, 1, 1}}
	next := step.doubled(127)
	return &Firsts{next.repeated(stream, step.doubled(76).repeated(run, ones)), next}
}

// Numbers draws the numbers of one stream.
type Numbers struct{ state state }

func NewNumbers(stream, run uint64) Numbers { return Numbers{NewFirsts(stream, run).state} }

// Draw returns the next number, in (0,1).
func (n *Numbers) Draw() float64 { return n.state.number() }

// Draw returns the present stream's first number, in (0,1), and moves on to the next stream.
func (f *Firsts) Draw() float64 {
	s := f.state
	f.Skip()
	return s.number()
}

// Skip moves on to the next stream.
func (f *Firsts) Skip() { f.state = f.next.of(&f.state) }
