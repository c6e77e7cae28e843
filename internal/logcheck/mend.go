package logcheck

import "github.com/simccl/simccl/internal/ncclog"

func (f *finder) lack() {}

func added(print, changed []ncclog.Text) string { return "" }
