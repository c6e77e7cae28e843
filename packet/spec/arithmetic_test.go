package spec

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestNanos: 64 bits of the fraction of a second, cut, times 10^9, cut.
func TestNanos(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 20_000 {
		s := r.Float64() * []float64{1e-9, 1e-6, 0.5, 1, 3}[r.IntN(5)]
		f := new(big.Float).SetPrec(200).SetFloat64(s)
		whole, _ := f.Int64()
		f.Sub(f, new(big.Float).SetInt64(whole))
		bits, _ := f.SetMantExp(f, 64).Int(nil)
		ns := bits.Mul(bits, big.NewInt(1e9)).Rsh(bits, 64).Int64() + whole*1e9
		if got := Nanos(s); got != ns {
			t.Fatalf("%g s are %d ns, want %d", s, got, ns)
		}
	}
}
