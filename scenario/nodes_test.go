package scenario

import "testing"

// TestWithEnv: the Spec that it is made of keeps its own.
func TestWithEnv(t *testing.T) {
	s := Spec{NCCL: NCCL{Env: map[string]string{"NCCL_ALGO": "Ring"}}}
	got := s.WithEnv([]string{"NCCL_ALGO=Tree", "word"})
	if got.NCCL.Env["NCCL_ALGO"] != "Tree" || s.NCCL.Env["NCCL_ALGO"] != "Ring" || len(got.NCCL.Env) != 1 {
		t.Error(got.NCCL.Env, s.NCCL.Env)
	}
}
