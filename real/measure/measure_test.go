package measure

import "testing"

// TestCountOfGPUs: without a driver, or with fewer GPUs than are asked for, there is an error.
func TestCountOfGPUs(t *testing.T) {
	if n, err := Count(1); err == nil && n != 1 || err != nil && n != 0 {
		t.Errorf("1 GPU: %d, %v", n, err)
	}
	if n, err := Count(1 << 20); err == nil || n != 0 {
		t.Errorf("a million GPUs: %d, %v", n, err)
	}
}
