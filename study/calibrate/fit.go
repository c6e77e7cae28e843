package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/sim/gpu"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// Options controls a fit.
type Options struct {
	// Holdout excludes every nth size from the fit; at least 2, 0 means 2.
	Holdout int
	// Quantities lists the names of quantities to fit; empty selects all that the data depend on.
	Quantities []string
	// Rounds bounds the steps of the search, 0 means 12.
	Rounds int
	// Round, if set, is called with each step's cost.
	Round func(round int, cost float64)
}

// Estimate is the result for one quantity.
type Estimate struct {
	gpu.Quantity
	Before, Value float64
	// Uncertainty is the relative standard deviation of Value.
	Uncertainty float64
	// Identified reports whether the data determine the value; if not, it is close to its prior.
	Identified bool
}

// Residual is a measured point with its simulated times before and after the fit.
type Residual struct {
	*Sample
	Held          bool
	Before, After float64 // simulated time, microseconds
}

// Result is the outcome of a fit.
type Result struct {
	Class     gpu.Class
	Estimates []Estimate
	Residuals []Residual
	Rounds    int
	Cost      [2]float64 // before and after, of the points fitted
}

// Errors of a fit's data.
var (
	ErrNoHoldout = errors.New("nothing is held out: a fit needs two sizes of an operation at least, and " +
		"--holdout 2 or more")
	ErrTooFew = errors.New("no points to fit")
	ErrNoSuch = errors.New("no such quantity")
)

// scale is the deviation up to which it counts by its square, and beyond by its size: more than 4 % is an
// error of the model, not noise.
const scale = 0.04

// A quantity is identified if its posterior standard deviation is below
// identifiedShare of the prior's.
const identifiedShare = 0.8

// step is the relative change for numerical derivatives. With a smaller one the steps of the event simulation
// would show.
const step = 0.04

// Standard deviations of the prior of a quantity's logarithm: started for a guessed value, known for one that
// was measured on some machine of the class; its stated uncertainty does not hold on another machine.
const (
	started = 0.5
	known   = 0.5
)

// Fit moves a class's quantities, in the logarithm, until simulated times meet
// the measured ones that are not held out: least squares of the logarithm of
// simulated over measured, linear beyond scale, with the start as a prior. The
// search is gonum's Newton with the Hessian of Gauss and Newton.
func Fit(ctx context.Context, points []Point, class gpu.Class, o Options) (*Result, error) {
	o.Holdout = cmp.Or(o.Holdout, 2)
	var train []Point
	held := 0
	for _, p := range points {
		if o.Holdout > 1 && p.Held(o.Holdout) {
			held++
		} else {
			train = append(train, p)
		}
	}
	switch {
	case held == 0:
		return nil, ErrNoHoldout
	case len(train) == 0:
		return nil, ErrTooFew
	}
	f := &fit{ctx: ctx, train: train, given: class, start: class}
	if err := f.guess(o.Quantities); err != nil {
		return nil, err
	}
	rounds := cmp.Or(o.Rounds, 12)
	x, n, err := f.search(rounds, o.Round)
	if err != nil {
		return nil, err
	}
	return f.result(x, n, points, o.Holdout)
}

// guesses returns the quantities, among those named or all, for which a class uses another quantity's value
// and which a fit may separate.
func guesses(c *gpu.Class, names []string) []gpu.Quantity {
	return slices.DeleteFunc(gpu.Quantities(), func(q gpu.Quantity) bool {
		return q.Guess == 0 || *q.At(c) != 0 || len(names) > 0 && !slices.Contains(names, q.Name)
	})
}

// guess starts these quantities with values of other classes; quantities on which no time depends are shared
// again.
func (f *fit) guess(names []string) error {
	own := guesses(&f.start, names)
	f.start.Origins = maps.Clone(f.start.Origins)
	for _, q := range own {
		*q.At(&f.start) = q.Guess
		f.start.Origins[q.Name] = gpu.Origin{Source: gpu.Estimated, Uncertainty: 0.7}
	}
	if err := f.choose(names); err != nil {
		return err
	}
	for _, q := range own {
		if !slices.ContainsFunc(f.free, func(free gpu.Quantity) bool { return free.Name == q.Name }) {
			*q.At(&f.start) = 0
			f.start.Origins[q.Name] = f.given.Origins[q.Name]
		}
	}
	return nil
}

// fit holds the points, the class and the cached derivatives of a search in progress.
type fit struct {
	ctx   context.Context
	train []Point
	given gpu.Class      // the fit was begun with
	start gpu.Class      // given, and guesses
	free  []gpu.Quantity // the quantities to fit
	err   error          // of a simulation

	at       []float64 // where residual was computed
	residual []float64
	slope    []float64 // where jacobian was computed
	jacobian *mat.Dense
	touches  *mat.Dense // the first jacobian; its zero entries are not computed again
}

// choose sets f.free to the quantities with the given names, or to all on which a measured time depends.
func (f *fit) choose(names []string) error {
	all := gpu.Quantities()
	for _, n := range names {
		found := false
		for _, q := range all {
			if q.Name == n {
				f.free, found = append(f.free, q), true
			}
		}
		if !found {
			return fmt.Errorf("%w: %q", ErrNoSuch, n)
		}
	}
	if len(names) == 0 {
		for _, q := range all {
			// measured runs use plain buffers
			if o, known := f.start.Origins[q.Name]; q.For == "" && *q.At(&f.start) > 0 &&
				(!known || o.Uncertainty > 0) {
				f.free = append(f.free, q)
			}
		}
	}
	if len(f.free) == 0 {
		return errors.New("the class has no quantity that could be fitted")
	}
	if _, err := f.slopes(make([]float64, len(f.free))); err != nil {
		return err
	}
	var free []gpu.Quantity
	var columns []int
	for j, q := range f.free {
		if mat.Norm(f.jacobian.ColView(j), math.Inf(1)) > 0 {
			free, columns = append(free, q), append(columns, j)
		}
	}
	if len(free) == 0 {
		return errors.New("no measured time depends on any quantity that is to be fitted")
	}
	f.touches = mat.NewDense(len(f.train), len(free), nil)
	for i := range f.train {
		for k, j := range columns {
			f.touches.Set(i, k, f.jacobian.At(i, j))
		}
	}
	zero := make([]float64, len(free))
	f.free, f.at, f.slope, f.jacobian = free, zero, zero, f.touches
	return nil
}

// class returns the machine class at x; x is logarithms relative to the start.
func (f *fit) class(x []float64) gpu.Class {
	c := f.start
	for j, q := range f.free {
		v := q.At(&c)
		*v *= math.Exp(x[j])
		*v = max(*v, q.Low)
		if q.High > 0 {
			*v = min(*v, q.High)
		}
	}
	return c
}

// deviations returns log(simulated/measured) for every training point.
func (f *fit) deviations(x []float64) ([]float64, error) {
	if f.at != nil && same(f.at, x) {
		return f.residual, nil
	}
	c := f.class(x)
	us, err := Predict(f.ctx, f.train, &c)
	if err != nil {
		return nil, err
	}
	for i, v := range us {
		us[i] = math.Log(v / f.train[i].Us)
	}
	f.at, f.residual = append([]float64(nil), x...), us
	return us, nil
}

// slopes returns the derivatives of the deviations by the free quantities.
func (f *fit) slopes(x []float64) (*mat.Dense, error) {
	if f.slope != nil && same(f.slope, x) {
		return f.jacobian, nil
	}
	base, err := f.deviations(x)
	if err != nil {
		return nil, err
	}
	jac := mat.NewDense(len(f.train), len(f.free), nil)
	moved := func(which ...int) gpu.Class {
		y := append([]float64(nil), x...)
		for _, j := range which {
			y[j] += step
		}
		return f.class(y)
	}
	each := make([]gpu.Class, len(f.free))
	for j := range each {
		each[j] = moved(j)
	}
	groups := f.groups()
	together := make([]gpu.Class, len(groups))
	for k, which := range groups {
		together[k] = moved(which...)
	}
	err = sideBySide(len(f.train), func(i int) error {
		p := &f.train[i]
		for k, which := range groups {
			if f.touches == nil {
				// Most points depend on few quantities: a group that changes nothing
				// together need not be asked one by one.
				us, err := p.Predict(f.ctx, &together[k])
				if err != nil {
					return err
				}
				if math.Log(us/p.Us) == base[i] {
					continue
				}
			}
			for _, j := range which {
				if f.touches != nil && f.touches.At(i, j) == 0 {
					continue
				}
				us, err := p.Predict(f.ctx, &each[j])
				if err != nil {
					return err
				}
				jac.Set(i, j, (math.Log(us/p.Us)-base[i])/step)
			}
		}
		return nil
	})
	f.slope, f.jacobian = append([]float64(nil), x...), jac
	return jac, err
}

// groups groups the free quantities by the first word of their names, such as those of a protocol, of NICs or
// of jitter.
func (f *fit) groups() [][]int {
	var words []string
	var out [][]int
	for j, q := range f.free {
		word, _, _ := strings.Cut(q.Name, "_")
		k := slices.Index(words, word)
		if k < 0 {
			k = len(words)
			words, out = append(words, word), append(out, nil)
		}
		out[k] = append(out[k], j)
	}
	return out
}

func same(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// prior returns the standard deviation of a quantity's logarithm before the data.
func (f *fit) prior(j int) float64 {
	o := f.start.Origins[f.free[j].Name]
	if o.Source.Times() {
		return max(known, o.Uncertainty)
	}
	return max(started, o.Uncertainty)
}

// loss returns the cost of a deviation, quadratic near zero and linear beyond scale (pseudo-Huber), and its
// weight in a sum of squares.
func loss(r float64) (cost, weight float64) {
	root := math.Sqrt(1 + (r/scale)*(r/scale))
	return scale * scale * (root - 1), 1 / root
}

// freeShare is the weight of a run in which NCCL chose algorithm and protocol, the case that users ask about.
// Runs that force them weigh 1; they separate causes.
const freeShare = 2

// loss returns the cost and the weight of training point i with deviation r.
func (f *fit) loss(i int, r float64) (cost, weight float64) {
	cost, weight = loss(r)
	if !f.train[i].Run.forced() {
		cost, weight = freeShare*cost, freeShare*weight
	}
	return cost, weight
}

// cost returns the function that is minimised, in units of scale², the variance of one training point.
func (f *fit) cost(x []float64) float64 {
	r, err := f.deviations(x)
	if err != nil {
		f.err = err
		return math.Inf(1)
	}
	sum := 0.0
	for i, v := range r {
		c, _ := f.loss(i, v)
		sum += c
	}
	for j, v := range x {
		p := v / f.prior(j) * scale
		sum += p * p / 2
	}
	return sum
}

// gradient and hessian return the derivatives of cost. The Hessian is that of the deviations' linear part
// (Gauss-Newton) and therefore positive.
func (f *fit) gradient(grad, x []float64) {
	jac, err := f.slopes(x)
	if err != nil {
		f.err = err
		return
	}
	r, _ := f.deviations(x)
	for j := range x {
		s := f.prior(j) / scale
		grad[j] = x[j] / (s * s)
	}
	for i, v := range r {
		_, w := f.loss(i, v)
		for j := range x {
			grad[j] += jac.At(i, j) * w * v
		}
	}
}

func (f *fit) hessian(h *mat.SymDense, x []float64) {
	jac, err := f.slopes(x)
	if err != nil {
		f.err = err
		return
	}
	r, _ := f.deviations(x)
	h.Zero()
	row := make([]float64, len(x))
	for i, v := range r {
		_, w := f.loss(i, v)
		mat.Row(row, i, jac)
		h.SymRankOne(h, w, mat.NewVecDense(len(row), row))
	}
	for j := range x {
		s := f.prior(j) / scale
		h.SetSym(j, j, h.At(j, j)+1/(s*s))
	}
}

// search minimises the cost, starting at the prior.
func (f *fit) search(rounds int, free func(int, float64)) (x []float64, n int, err error) {
	problem := optimize.Problem{Func: f.cost, Grad: f.gradient, Hess: f.hessian,
		Status: func() (optimize.Status, error) {
			if f.err != nil {
				return optimize.Failure, f.err
			}
			return optimize.NotTerminated, nil
		}}
	set := &optimize.Settings{MajorIterations: rounds, Concurrent: 0,
		Converger: &optimize.FunctionConverge{Relative: 1e-2, Iterations: 2},
		Recorder:  recorder(free)}
	method := &optimize.Newton{Linesearcher: &optimize.Backtracking{}}
	res, err := optimize.Minimize(problem, make([]float64, len(f.free)), set, method)
	if f.err != nil {
		return nil, 0, f.err
	}
	if err != nil && !lineSearchEnded(err) {
		return nil, 0, err
	}
	return res.X, res.MajorIterations, nil
}

// lineSearchEnded reports whether err means that no smaller cost was found along the last direction, which
// ends the search successfully: simulated times are step functions.
func lineSearchEnded(err error) bool {
	return errors.Is(err, optimize.ErrLinesearcherFailure) || errors.Is(err, optimize.ErrNoProgress) ||
		errors.Is(err, optimize.ErrNonDescentDirection)
}

type recorder func(round int, cost float64)

func (recorder) Init() error { return nil }

// Record implements optimize.Recorder; it reports each major iteration.
func (r recorder) Record(loc *optimize.Location, op optimize.Operation, stats *optimize.Stats) error {
	if r != nil && op == optimize.MajorIteration {
		r(stats.MajorIterations, loc.F)
	}
	return nil
}

// result builds the Result of a search that ended at x: the estimates with their uncertainty, and the
// residuals of all points.
func (f *fit) result(x []float64, rounds int, points []Point, holdout int) (*Result, error) {
	out := &Result{Class: f.class(x), Rounds: rounds, Cost: [2]float64{f.cost(make([]float64, len(x))),
		f.cost(x)}}
	cov, err := f.covariance(x)
	if err != nil {
		return nil, err
	}
	for j, q := range f.free {
		sd := math.Sqrt(max(0, cov.At(j, j)))
		out.Estimates = append(out.Estimates, Estimate{Quantity: q, Before: *q.At(&f.start),
			Value:       *q.At(&out.Class),
			Uncertainty: sd, Identified: sd < identifiedShare*f.prior(j) || math.Abs(x[j]) > f.prior(j)})
	}
	before, err := Predict(f.ctx, points, &f.given)
	if err != nil {
		return nil, err
	}
	after, err := Predict(f.ctx, points, &out.Class)
	if err != nil {
		return nil, err
	}
	for i := range points {
		out.Residuals = append(out.Residuals, Residual{points[i].Sample, points[i].Held(holdout), before[i],
			after[i]})
	}
	return out, nil
}

// covariance returns the covariance of x: the sandwich estimator of the Hessian and the scatter of gradients
// by series, because points of one series share the model's error; the prior is included.
func (f *fit) covariance(x []float64) (*mat.Dense, error) {
	k := len(x)
	h, inverse := mat.NewSymDense(k, nil), new(mat.SymDense)
	f.hessian(h, x)
	if f.err != nil {
		return nil, f.err
	}
	var chol mat.Cholesky
	if !chol.Factorize(h) {
		return nil, errors.New("the fitted quantities' covariance is singular")
	}
	if err := chol.InverseTo(inverse); err != nil {
		return nil, err
	}
	r, _ := f.deviations(x)
	scatter := mat.NewSymDense(k, nil)
	sum := mat.NewVecDense(k, nil)
	close := func() {
		scatter.SymRankOne(scatter, 1, sum)
		sum.Zero()
	}
	row := make([]float64, k)
	for i, v := range r {
		if i > 0 && f.train[i].series() != f.train[i-1].series() {
			close()
		}
		_, w := f.loss(i, v)
		mat.Row(row, i, f.jacobian)
		sum.AddScaledVec(sum, w*v, mat.NewVecDense(k, row))
	}
	close()
	for j := range x { // the prior's own scatter
		s := f.prior(j) / scale
		scatter.SetSym(j, j, scatter.At(j, j)+scale*scale/(s*s))
	}
	var half, cov mat.Dense
	half.Mul(inverse, scatter)
	cov.Mul(&half, inverse)
	return &cov, nil
}
