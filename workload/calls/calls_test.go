package calls_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/workload/calls"
	"github.com/simccl/simccl/workload/nccllog"
)

const head = `{"simccl":"calls","version":1,"ranks":2}` + "\n" + `{"comm":0,"members":[0,1]}` + "\n"

// TestRoundTrip: what is read of a record is written as it was, makes a program
// without faults, and a log with the same calls.
func TestRoundTrip(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(golden.Root(t), "intercept", "testdata", "life.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !calls.Recognise(text) {
		t.Error("a record is not recognised")
	}
	r, err := calls.Read(bytes.NewReader(text), "life.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil || b.String() != string(text) {
		t.Errorf("%v: another text: %d bytes of %d", err, b.Len(), len(text))
	}
	if err := r.Program().Lint(); err != nil {
		t.Error(err)
	}
	b.Reset()
	if err := r.WriteLog(&b); err != nil {
		t.Fatal(err)
	}
	var log nccllog.Log
	if err := log.Read(&b, "log"); err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(string(text), `"func"`); log.Calls() != want {
		t.Errorf("%d calls in the log, %d in the record", log.Calls(), want)
	}
}

// TestWork: what kernels took is compute of their stream behind what the host did before, and
// events that the program has timed are known.
func TestWork(t *testing.T) {
	const text = `{"simccl":"calls","version":1,"ranks":1}
{"comm":0,"members":[0]}
{"rank":0,"hostPs":5000,"record":0,"timed":true,"stream":1}
{"rank":0,"workPs":9000,"stream":1}
{"comm":0,"rank":0,"hostPs":7000,"group":1,"func":"all_reduce","type":"float","op":"sum","count":8,"stream":1}
{"rank":0,"record":1,"timed":true,"since":1,"stream":1}
`
	r, err := calls.Read(strings.NewReader(text), "r")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil || b.String() != text {
		t.Errorf("%v: another text: %s", err, b.String())
	}
	p, timed := r.Timed()
	const want = `list rank0 0
  compute h0 5000
  record 1 0 after=0
  compute 1 9000 after=0
  compute h0 7000
  call 1 comm0 all_reduce float sum 8 after=3
  record 1 1 after=3
`
	if err := p.Lint(); err != nil || !strings.Contains(p.Format(), want) || len(timed) != 1 ||
		len(timed[0]) != 1 || timed[0][0] != [2]int32{1, 5} {
		t.Errorf("%v, timed %v: %s", err, timed, p.Format())
	}
	if _, err := calls.Read(strings.NewReader(head+`{"rank":0,"workPs":-1}`), "r"); err == nil ||
		!strings.Contains(err.Error(), "r:3:1: work of -1 ps") {
		t.Errorf("negative work: %v", err)
	}
	if _, err := calls.Read(strings.NewReader(head+`{"rank":0,"record":0,"since":-1}`), "r"); err == nil ||
		!strings.Contains(err.Error(), "r:3:1: since -1") {
		t.Errorf("since a later event: %v", err)
	}
}

// TestSteps: calls of a group stay one, and the host waits for what it synchronised.
func TestSteps(t *testing.T) {
	r, err := calls.Read(strings.NewReader(head+
		`{"rank":0,"hostPs":5000,"comm":0,"group":1,"func":"all_reduce","type":"float","op":"sum","count":8}
{"rank":0,"comm":0,"group":1,"func":"send","type":"float","count":4,"peer":1,"stream":1}
{"rank":0,"sync":1}
{"rank":0,"hostPs":7000,"comm":0,"group":2,"func":"broadcast","type":"half","count":4,"root":1}
{"rank":1,"comm":0,"group":1,"func":"all_reduce","type":"float","op":"sum","count":8}
{"rank":1,"comm":0,"group":1,"func":"recv","type":"float","count":4,"peer":0}
{"rank":1,"comm":0,"group":2,"func":"broadcast","type":"half","count":4,"root":1}
`), "r")
	if err != nil {
		t.Fatal(err)
	}
	p := r.Program()
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	const want = `list rank0 0
  compute h0 5000
  group 0
  call 0 comm0 all_reduce float sum 8 after=0
  call 1 comm0 send float sum 4 peer=1 after=0
  end 0
  compute h0 7000 after=4
  call 0 comm0 broadcast half sum 4 root=1 after=5
`
	if text := p.Format(); !strings.Contains(text, want) {
		t.Errorf("%s\nwanted\n%s", text, want)
	}
}

// TestFaults: every fault names its line.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "r:1:1: the record is empty"},
		{`{"simccl":"calls","version":2,"ranks":2}`, "r:1:1: no head of version 1"},
		{`{"simccl":"calls","version":1,"ranks":0}`, "r:1:1"},
		{head + `{"comm":2,"members":[0]}`, "r:3:1: communicator 2 after 0"},
		{head + `{"comm":1,"members":[0,0]}`, "r:3:1: member 0"},
		{head + `{"comm":1,"members":[]}`, "no members"},
		{head + `{"comm":1,"members":[1],"parent":1}`, "parent 1"},
		{head + `{"rank":2,"comm":0,"func":"all_reduce","type":"float"}`, "rank 2 of 2"},
		{head + `{"rank":1,"comm":1,"func":"all_reduce","type":"float"}`, "no communicator"},
		{head + `{"rank":1,"comm":0,"func":"all_reduce","type":"flaot"}`, "flaot"},
		{head + `{"rank":1,"comm":0,"func":"send","type":"float","count":1}`, "r:3:1: send"},
		{head + `{"rank":1,"comm":0,"func":"broadcast","type":"float","count":-1}`, "-1"},
		{head + `{"rank":1,"hostPs":-5,"comm":0,"func":"broadcast","type":"float"}`, "-5 ps"},
		{head + `{"rank":1,"stream":-5,"comm":0,"func":"broadcast","type":"float"}`, "stream -5"},
		{head + `{"rnak":1}`, "rnak"},
		{head + `{}`, "neither"},
		{head + `[`, "r:3:1"},
	} {
		_, err := calls.Read(strings.NewReader(c.text), "r")
		var fault *fail.FileError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.120s: %v", c.text, err)
		}
	}
}

// FuzzRead: no text ends in a panic, and what is read is written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head +
		`{"rank":0,"hostPs":5000,"comm":0,"group":1,"func":"all_reduce","type":"float","op":"sum","count":8}`))
	f.Add([]byte(head + `{"rank":0,"wait":3}` + "\n" + `{"rank":0,"record":3}` + "\n" +
		`{"rank":0,"sync":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := calls.Read(bytes.NewReader(text), "r")
		if err != nil || r.Ranks > 1000 {
			return
		}
		r.Program()
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := calls.Read(&b, "r"); err != nil {
			t.Fatal(err)
		}
	})
}
