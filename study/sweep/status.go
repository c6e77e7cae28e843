package sweep

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/simccl/simccl/internal/fail"
)

// Status is the progress of a sweep in a folder.
type Status struct {
	Points  int     `json:"points"`
	Done    int     `json:"done"`
	Failed  int     `json:"failed"`
	Left    int     `json:"left"`
	Torn    int     `json:"torn_lines"`
	CPU     float64 `json:"cpu_s"`
	Parts   []Part  `json:"parts"`
	Example string  `json:"first_error,omitempty"`
}

// Part is the progress of one process's file.
type Part struct {
	File   string  `json:"file"`
	Done   int     `json:"done"`
	Failed int     `json:"failed"`
	CPU    float64 `json:"cpu_s"`
}

// StatusOf reads the progress of a folder.
func StatusOf(dir string) (*Status, error) {
	m, err := readManifest(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, fail.Input(err)
	}
	files, err := parts(dir)
	if err != nil {
		return nil, err
	}
	s := &Status{Points: m.Points, Parts: []Part{}}
	state := map[Key]string{} // "" done, else the error
	for _, f := range files {
		p := Part{File: filepath.Base(f)}
		torn, err := read(f, func(l *Line) error {
			if p.CPU += l.CPU; l.Error != "" {
				p.Failed++
			} else {
				p.Done++
			}
			if old, ok := state[l.Key]; !ok || old != "" {
				state[l.Key] = l.Error
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		s.Torn += torn
		s.CPU += p.CPU
		s.Parts = append(s.Parts, p)
	}
	for _, e := range state { //lint:sorted counts, and the least text
		if e == "" {
			s.Done++
			continue
		}
		if s.Failed++; s.Example == "" || e < s.Example {
			s.Example = e
		}
	}
	s.Left = s.Points - s.Done - s.Failed
	return s, nil
}

// Estimate is the expected cost of a sweep, extrapolated from some of its points.
type Estimate struct {
	Points int `json:"points"`
	Same   int `json:"same"` // combinations that say what another says
	Probed int `json:"probed"`
	Failed int `json:"failed"`
	// Seconds is the estimated time of all points on one machine with Jobs at a time, by
	// the mean of the probes; Low and High bound it by their least and largest.
	Seconds float64         `json:"seconds"`
	Low     float64         `json:"low_s"`
	High    float64         `json:"high_s"`
	Largest json.RawMessage `json:"slowest_probe,omitempty"`
	Error   string          `json:"first_error,omitempty"`
}

// Plan counts the points and simulates some, spread over all, for at most limit.
func (r *Run) Plan(ctx context.Context, probes int, limit time.Duration) (*Estimate, error) {
	jobs, same, err := r.keys(ctx)
	if err != nil {
		return nil, err
	}
	e := &Estimate{Points: len(jobs), Same: same}
	w := &worker{run: r, sites: map[string]*site{}}
	begin, worst, least := time.Now(), 0.0, 0.0
	for k := range min(probes, len(jobs)) {
		if time.Since(begin) > limit || ctx.Err() != nil {
			break
		}
		// the middle of each of the equal parts: neighbouring points differ only in the last factor
		j := jobs[(2*k+1)*len(jobs)/(2*min(probes, len(jobs)))]
		p, _, err := r.Spec.point(j.index)
		if err != nil {
			return nil, err
		}
		at := time.Now()
		_, err = w.simulate(ctx, p)
		took := time.Since(at).Seconds()
		if e.Probed++; err != nil {
			if e.Failed++; e.Error == "" {
				e.Error = err.Error()
			}
			continue
		}
		e.Seconds += took
		if took > worst {
			worst, e.Largest = took, p.labels()
		}
		if least == 0 || took < least {
			least = took
		}
	}
	if n := e.Probed - e.Failed; n > 0 {
		e.Seconds *= float64(len(jobs)) / float64(n)
	}
	e.Low, e.High = least*float64(len(jobs)), worst*float64(len(jobs))
	return e, ctx.Err()
}
