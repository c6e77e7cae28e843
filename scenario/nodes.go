package scenario

import "strings"

// WithEnv is the Spec with settings, NAME=VALUE, that outrank its own.
func (s *Spec) WithEnv(list []string) Spec {
	out := *s
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok {
			if out = out.Clone(); out.NCCL.Env == nil {
				out.NCCL.Env = map[string]string{}
			}
			out.NCCL.Env[k] = v
		}
	}
	return out
}
