// Package jobs has the commands about recorded jobs: replay, which runs them on any machine; workload, which
// shows, checks, converts, cuts, scales and makes their files; and advise, which tries settings for a job or
// an operation.
//
// What it must not know: how files are read, programs changed and jobs simulated.
package jobs
