package nccltests

import "github.com/simccl/simccl/internal/fail"

// BelowMinBW fails where nccl-tests does: with an error of kind fail.No.
func (s *Summary) BelowMinBW() error {
	if !s.Failed() {
		return nil
	}
	return fail.Check("average bus bandwidth %.3f GB/s is below 0.9 of NCCL_TESTS_MIN_BW=%g", s.AvgBusBW,
		s.MinBW)
}
