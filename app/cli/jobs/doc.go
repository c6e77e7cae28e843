// Package jobs has the commands about recorded jobs: replay, which runs them on any machine; workload, which
// shows, checks, converts, cuts, scales and makes their files; advise, which tries settings for a job or an
// operation; and intercept, which runs programs on simulated clusters.
//
// What it must not know: how files are read, programs changed and jobs simulated.
package jobs
