package coll

import "fmt"

// Sweep is the sizes of -b, -e, -f and -i.
type Sweep struct {
	Min, Max  int64
	Factor    int64 // > 1: multiply, else add Step
	StepBytes int64
}

// maxSizes bounds a sweep: a step of one byte up to 1 GiB is a typing error.
const maxSizes = 1 << 20

// Sizes lists the sizes in order (common.cu:936). Sweeps that nccl-tests would
// never end are an error.
func (s Sweep) Sizes() ([]int64, error) {
	switch {
	case s.Min > s.Max:
		return nil, fmt.Errorf("sizes from %d to %d: the first is larger; swap -b and -e", s.Min, s.Max)
	case s.Factor > 1 && s.Min == 0:
		return nil, fmt.Errorf("size 0 times a factor stays 0; begin at 1 or more, or use -i")
	case s.Factor <= 1 && s.StepBytes <= 0:
		return nil, fmt.Errorf("a step of %d bytes never ends; write -i 1M or -f 2", s.StepBytes)
	}
	var out []int64
	for size := s.Min; size <= s.Max; {
		if len(out) == maxSizes {
			return nil, fmt.Errorf("more than %d sizes from %d to %d; use a larger step", maxSizes, s.Min,
				s.Max)
		}
		out = append(out, size)
		if s.Factor > 1 {
			if size > s.Max/s.Factor {
				break
			}
			size *= s.Factor
		} else {
			size += s.StepBytes
		}
	}
	return out, nil
}
