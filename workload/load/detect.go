// Package load makes a job of files that profilers, loggers and other simulators
// wrote. It recognises each by its content, whatever its name, also compressed by
// gzip and in tar archives, and puts together what belongs to one run: the Kineto
// recordings of all ranks are the job, and Flight Recorder dumps, logs and meta.json
// beside them complete it.
//
// What it must not know: where files come from, machines, plans.
package load

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/simccl/simccl/workload/aicb"
	"github.com/simccl/simccl/workload/calls"
	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/flight"
	"github.com/simccl/simccl/workload/goal"
	"github.com/simccl/simccl/workload/inspector"
	"github.com/simccl/simccl/workload/nccllog"
	"github.com/simccl/simccl/workload/simai"
	"github.com/simccl/simccl/workload/torchet"
)

// Format is what a file is.
type Format uint8

// Formats that are read.
const (
	Unknown      Format = iota
	Native              // simccl's text form
	Kineto              // a Chrome trace of torch.profiler
	TorchET             // PyTorch's execution trace
	Chakra              // protobuf
	ChakraJSON          // the JSON form of Chakra's feeder
	ChakraGroups        // members of process groups, {"1": [0, 1]}
	FlightJSON
	FlightPickle
	Log
	SimAI
	AICB
	GOAL
	GOALBinary
	Inspector
	Meta  // meta.json: GPU, world size, settings of a run
	Calls // a record of simccl intercept
	Times // times_rank*.json: measured steps, which are compared with and not read
	numFormats
)

var formatNames = [numFormats]string{"unknown", "native", "kineto", "pytorch-et", "chakra", "chakra-json", "chakra-groups", "flight-recorder", "flight-recorder-pickle",
	"nccl-log", "simai", "aicb", "goal", "goal-binary", "inspector", "meta", "calls", "times"}

// String is the format's name.
func (f Format) String() string {
	if f < numFormats {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// RefusedError says what a file is that is known and no workload.
type RefusedError struct {
	File string
	What string // what it is
	Hint string // what to do with it
}

// Error names the file, what it is and what to do.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: this is %s, which is no workload; %s", e.File, e.What, e.Hint)
}

// HeadSize is how much of a file Detect looks at.
const HeadSize = 64 << 10

// Detect recognises a file by the beginning of its content. The error is a
// *RefusedError.
func Detect(head []byte, file string) (Format, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if what, hint := refused(text); what != "" {
		return Unknown, &RefusedError{file, what, hint}
	}
	switch {
	case bytes.HasPrefix(text, []byte("workload ")):
		return Native, nil
	case calls.Recognise(text):
		return Calls, nil
	case goal.RecogniseBinary(head):
		return GOALBinary, nil
	case flight.RecognisePickle(head):
		return FlightPickle, nil
	case goal.RecogniseText(head):
		return GOAL, nil
	case aicb.Recognise(text):
		return AICB, nil
	case simai.Recognise(text):
		return SimAI, nil
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[")):
		return detectJSON(text), nil
	case nccllog.Recognise(head):
		return Log, nil
	case chakra.Recognise(head):
		return Chakra, nil
	}
	return Unknown, nil
}

// detectJSON distinguishes what begins with a bracket or brace.
func detectJSON(text []byte) Format {
	has := func(words ...string) bool {
		for _, w := range words {
			if !bytes.Contains(text, []byte(`"`+w+`"`)) {
				return false
			}
		}
		return true
	}
	switch {
	case inspector.Recognise(text):
		return Inspector
	case has("traceEvents"), has("schemaVersion", "deviceProperties"), has("schemaVersion", "distributedInfo"), text[0] == '[' && has("ph", "ts"):
		return Kineto
	case chakra.RecogniseJSON(text):
		return ChakraJSON
	case torchet.Recognise(text):
		return TorchET
	case flight.RecogniseJSON(text):
		return FlightJSON
	case has("mode", "world", "env"):
		return Meta
	case has("variants") && (has("mode") || has("step_ms")):
		return Times
	case len(text) > 2 && text[0] == '{' && groupsOnly(text):
		return ChakraGroups
	}
	return Unknown
}

// groupsOnly reports whether a text begins like {"0": [0, 1].
func groupsOnly(text []byte) bool {
	rest := bytes.TrimLeft(text[1:], " \t\r\n")
	if len(rest) == 0 || rest[0] != '"' {
		return false
	}
	name, after, ok := bytes.Cut(rest[1:], []byte(`"`))
	after = bytes.TrimLeft(after, " \t\r\n")
	if !ok || len(name) == 0 || len(after) == 0 || after[0] != ':' {
		return false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return false
		}
	}
	return bytes.HasPrefix(bytes.TrimLeft(after[1:], " \t\r\n"), []byte("["))
}

// refused names what is known and no workload.
func refused(text []byte) (what, hint string) {
	has := func(words ...string) bool {
		for _, w := range words {
			if !bytes.Contains(text, []byte(w)) {
				return false
			}
		}
		return true
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case bytes.HasPrefix(text, []byte("<")) && has("<algo"):
		return "an MSCCL schedule of one collective", "simccl run --schedule takes it"
	case has(`"threadblocks"`, `"gpus"`), has(`"input_chunks"`, `"gpus"`):
		return "an MSCCL++ plan of one collective", "simccl run --schedule takes it"
	case has(`"intranode_sketch"`), has(`"symmetry_offsets"`):
		return "a TACCL sketch, an input of TACCL", "give the schedule that TACCL made of it to simccl run --schedule"
	case has(`"scheduling-policy"`), has(`"all-reduce-implementation"`):
		return "ASTRA-sim's description of a system", "give its workload, the .et files; --topo describes the machine here"
	case has("topology:", "npus_count:"):
		return "ASTRA-sim's description of a network", "give its workload, the .et files; --topo describes the machine here"
	case has("busbw:") && has("allreduce"), bytes.HasPrefix(text, []byte("test\n")) && has("allreduce,:"):
		return "SimAI's table of bus bandwidths", "give its workload, a .txt file; simccl computes bandwidths itself"
	case bytes.HasPrefix(text, []byte("train_iter:")):
		return "AIOB's table of measured compute times", "give the workload that AICB made with it"
	case strings.HasPrefix(string(first), "id\tName") && has("Hidden_size"):
		return "AICB's list of models", "give a workload that AICB made of it, or hyper-parameters to simccl workload gen"
	case bytes.HasPrefix(text, []byte("SQLite format 3")):
		return "an SQLite database, as Nsight Systems exports", "record with torch.profiler instead; Nsight's databases are not read"
	}
	return "", ""
}
