package lint

// Entry is a Finding in JSON.
type Entry struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"`
	Rule     string `json:"rule"`
	Path     string `json:"path"`
	Problem  string `json:"problem"`
	Remedy   string `json:"remedy"`
}

// Entry converts a finding for JSON.
func (f *Finding) Entry() Entry {
	return Entry{f.Pos.File, f.Pos.Line, f.Pos.Col, f.Severity.String(), f.Rule, f.Path, f.Problem, f.Remedy}
}
