package logcheck

import (
	"errors"
	"path/filepath"

	"github.com/simccl/simccl/study/ncclog"
)

// Request names the files to check and the output.
type Request struct {
	Logs    []string // of one job, in any order; gzip or plain
	Topo    string   // topology file in place of the logs' system print; "" for none
	Env     []string // settings NAME=VALUE beside those of the logs
	Version string   // in place of the logs' release
	JUnit   string   // file of a JUnit report; "" for none
	GitHub  bool     // annotations for GitHub Actions after the text
}

// Run reads the files of a request, checks them and writes the report. If the logs have no system print, it
// uses the file of NCCL_TOPO_DUMP_FILE if that is in the folder of a log. A log of RCCL needs a topology
// file.
func (q *Request) Run(read func(name string) ([]byte, error), write func(name string, data []byte) error) (
	*Report, error) {
	rep, err := q.check(read)
	if err != nil {
		return nil, err
	}
	rep.github = q.GitHub
	if q.JUnit == "" {
		return rep, nil
	}
	text, err := rep.ci().JUnit()
	if err == nil {
		err = write(q.JUnit, text)
	}
	return rep, err
}

func (q *Request) check(read func(name string) ([]byte, error)) (*Report, error) {
	var files []ncclog.File
	for _, name := range q.Logs {
		data, err := read(name)
		if err != nil {
			return nil, err
		}
		files = append(files, ncclog.File{Name: name, Data: data})
	}
	log, err := ncclog.Read(files...)
	var amd *ncclog.AMDError
	if errors.As(err, &amd) && q.Topo != "" {
		log, err = ncclog.ReadRCCL(files...)
	}
	if err != nil {
		return nil, err
	}
	in := Input{Log: log, Env: q.Env, Version: q.Version}
	switch {
	case q.Topo != "":
		data, err := read(q.Topo)
		if err != nil {
			return nil, err
		}
		in.Topo = &File{q.Topo, data}
	case !log.Printed() && log.Dump != "":
		for _, name := range q.Logs {
			beside := filepath.Join(filepath.Dir(name), filepath.Base(log.Dump))
			if data, err := read(beside); err == nil {
				in.Topo = &File{beside, data}
				break
			}
		}
	}
	return Check(in)
}
