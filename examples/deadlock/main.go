// Command deadlock reads a job in which two ranks call two communicators in different
// orders, where NCCL would hang, and prints what is wrong before anything runs.
package main

import (
	"errors"
	"fmt"
	"log"

	"github.com/simccl/simccl/workload"
)

const job = `workload 1
ranks 2
comm a *
list first 0
  call 0 a all_reduce float sum 1024
  call 0 a all_gather float sum 512
list second 1
  call 0 a all_gather float sum 512
  call 0 a all_reduce float sum 1024
`

func main() {
	_, err := workload.Parse(job, "job.txt") // checks what a Program's Lint checks, too
	var problem *workload.Problem
	if !errors.As(err, &problem) {
		log.Fatalf("no problem was found: %v", err)
	}
	fmt.Printf("list %s: %s\n", problem.Name, problem.Text)
}
