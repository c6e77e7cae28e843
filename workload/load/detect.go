// Package load builds a job from files of profilers, loggers and other simulators. It recognises each file by
// its content, independent of its name, also in gzip and tar, and combines the files of one run: the Kineto
// recordings of all ranks are the job; Flight Recorder dumps, logs and meta.json complete it.
//
// What it must not know: where files come from, machines, plans.
package load

import (
	"fmt"

	"github.com/simccl/simccl/workload/inputs"
)

// Format is the format of a file.
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

var formatNames = [numFormats]string{"unknown", "native", "kineto", "pytorch-et", "chakra", "chakra-json",
	"chakra-groups", "flight-recorder", "flight-recorder-pickle",
	"nccl-log", "simai", "aicb", "goal", "goal-binary", "inspector", "meta", "calls", "times"}

// String returns the format's name.
func (f Format) String() string {
	if f < numFormats {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// HeadSize is the number of bytes of a file that Detect examines.
const HeadSize = 64 << 10

// detect recognises a file by the beginning of its content. The error, an *inputs.OtherError, names a known
// kind that is no job.
func detect(head []byte, file string) (Format, error) {
	v := inputs.Of(head)
	for _, f := range v.Found {
		if format := formatOf(f.Kind); format != Unknown {
			return format, nil
		}
	}
	return Unknown, v.Want(file, inputs.Jobs()...)
}

// formatOf returns the format of a kind of content, Unknown if the content is no job.
func formatOf(k inputs.Kind) Format {
	switch k {
	case inputs.Native:
		return Native
	case inputs.Kineto, inputs.ChromeTrace:
		return Kineto
	case inputs.TorchET:
		return TorchET
	case inputs.Chakra:
		return Chakra
	case inputs.ChakraJSON:
		return ChakraJSON
	case inputs.ChakraGroups:
		return ChakraGroups
	case inputs.FlightJSON:
		return FlightJSON
	case inputs.FlightPickle:
		return FlightPickle
	case inputs.NCCLLog, inputs.NCCLCalls, inputs.SystemPrint:
		return Log
	case inputs.SimAI:
		return SimAI
	case inputs.AICB:
		return AICB
	case inputs.GOAL:
		return GOAL
	case inputs.GOALBinary:
		return GOALBinary
	case inputs.Inspector:
		return Inspector
	case inputs.Meta:
		return Meta
	case inputs.Calls:
		return Calls
	case inputs.StepTimes:
		return Times
	}
	return Unknown
}
