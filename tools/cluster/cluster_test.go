// Package cluster runs a sweep as a Job of a real Kubernetes: its API server, its store and
// its Job controller in this process, where the test takes the place of the machines that
// run pods. It is a module of its own, since Kubernetes is large: minutes of a processor to
// build, which is why it runs by hand (make kubernetes).
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	etcd "k8s.io/apiserver/pkg/storage/etcd3/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/pkg/controller/job"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "sweeps"
	shards    = 5
	points    = 48
	sweep     = `base: {workload: {op: all_reduce}}
grid: {nodes: [2, 3], size: [1K, 64K, 4M], op: [all_reduce, alltoall]}
seeds: 1..4
`
)

// TestJob: the manifest of sweep emit is accepted by an API server, the Job controller makes
// a pod for each index and another where one was killed, the Job completes, and what the
// pods wrote equals the run of one process.
func TestJob(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(sweep), 0o666); err != nil {
		t.Fatal(err)
	}
	text := simccl(t, dir, "sweep", "emit", "k8s", "s.yaml", "--shards", fmt.Sprint(shards), "--out", "pods",
		"--max-time", "10m")
	var want batch.Job
	if err := yaml.UnmarshalStrict(text, &want); err != nil {
		t.Fatal(err)
	}

	config := serve(t)
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	control(ctx, t, rest.CopyConfig(config))
	if _, err := client.CoreV1().Namespaces().Create(ctx,
		&core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	strict := meta.CreateOptions{FieldValidation: meta.FieldValidationStrict}
	if _, err := client.BatchV1().Jobs(namespace).Create(ctx, &want, strict); err != nil {
		t.Fatalf("the API server refuses the Job: %v\n%s", err, text)
	}

	n := &node{t: t, client: client, dir: dir, attempts: map[string]int{}, slots: make(chan struct{}, 2)}
	status := n.until(ctx, want.Name)
	if status.Succeeded != shards || status.CompletedIndexes != fmt.Sprintf("0-%d", shards-1) ||
		n.killed == 0 || int(status.Failed) != n.killed {
		t.Errorf("%d of %d indexes succeeded (%s), %d pods failed, %d were killed", status.Succeeded, shards,
			status.CompletedIndexes, status.Failed, n.killed)
	}
	t.Logf("%d pods killed, %d indexes done", n.killed, status.Succeeded)

	simccl(t, dir, "sweep", "s.yaml", "--out", "one")
	pods, one := simccl(t, dir, "sweep", "merge", "pods"), simccl(t, dir, "sweep", "merge", "one")
	if lines := bytes.Count(one, []byte("\n")); !bytes.Equal(pods, one) || lines != points {
		t.Errorf("the pods' results are not those of one process (%d points)", lines)
	}
}

// simccl runs the program that SIMCCL names, in a folder.
func simccl(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	name := os.Getenv("SIMCCL")
	if name == "" {
		t.Skip("SIMCCL names no program: write SIMCCL=$PWD/bin/simccl")
	}
	c := exec.Command(name, args...)
	c.Dir = dir
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return out
}

// serve starts a store and an API server; pods need no account to run here.
func serve(t *testing.T) *rest.Config {
	store, storage := etcd.NewUnsecuredEtcd3TestClientServer(t)
	t.Cleanup(func() { store.Terminate(t) })
	s := apiserver.StartTestServerOrDie(t, nil, []string{"--disable-admission-plugins=ServiceAccount"},
		storage)
	t.Cleanup(s.TearDownFn)
	return s.ClientConfig
}

// control runs the Job controller until the context ends.
func control(ctx context.Context, t *testing.T, config *rest.Config) {
	config.QPS, config.Burst = 200, 200
	client := kubernetes.NewForConfigOrDie(config)
	made := informers.NewSharedInformerFactory(client, 0)
	c, err := job.NewController(ctx, client, made.Core().V1().Pods(), made.Batch().V1().Jobs(),
		made.Scheduling().V1beta1().Workloads(), made.Scheduling().V1beta1().PodGroups())
	if err != nil {
		t.Fatal(err)
	}
	made.Start(ctx.Done())
	go c.Run(ctx, 2)
}

// node takes the place of the machines of a cluster: it runs the command of each pod as a
// process, and says how it ended.
type node struct {
	t        *testing.T
	client   kubernetes.Interface
	dir      string
	mu       sync.Mutex
	attempts map[string]int // by index
	killed   int
	slots    chan struct{} // pods that run at a time
	running  sync.WaitGroup
}

// until runs pods until the Job has ended.
func (n *node) until(ctx context.Context, name string) batch.JobStatus {
	defer n.running.Wait()
	seen := map[string]bool{}
	for {
		pods, err := n.client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{})
		if err != nil {
			n.t.Fatal(err)
		}
		for _, p := range pods.Items {
			if p.Status.Phase == core.PodPending && !seen[p.Name] {
				seen[p.Name] = true
				n.running.Go(func() { n.run(ctx, &p) })
			}
		}
		j, err := n.client.BatchV1().Jobs(namespace).Get(ctx, name, meta.GetOptions{})
		if err != nil {
			n.t.Fatal(err)
		}
		for _, c := range j.Status.Conditions {
			if c.Status == core.ConditionTrue && (c.Type == batch.JobComplete || c.Type == batch.JobFailed) {
				if c.Type == batch.JobFailed {
					n.t.Errorf("the Job failed: %s", c.Message)
				}
				return j.Status
			}
		}
		select {
		case <-ctx.Done():
			n.t.Fatal("the Job came to no end")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run runs a pod's command. The first pod of an odd index is killed when it has a result.
func (n *node) run(ctx context.Context, p *core.Pod) {
	n.slots <- struct{}{}
	defer func() { <-n.slots }()
	env := environment(p)
	at := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "JOB_COMPLETION_INDEX=") })
	if at < 0 {
		n.t.Errorf("pod %s has no index: %q", p.Name, env)
		return
	}
	index := strings.TrimPrefix(env[at], "JOB_COMPLETION_INDEX=")
	n.mu.Lock()
	n.attempts[index]++
	kill := n.attempts[index] == 1 && (index == "1" || index == "3")
	n.mu.Unlock()
	n.report(ctx, p, core.PodRunning, 0)
	args := p.Spec.Containers[0].Command[1:]
	if kill {
		args = append(slices.Clone(args), "--jobs", "1")
	}
	c := exec.Command(os.Getenv("SIMCCL"), args...)
	c.Dir, c.Env = n.dir, append(os.Environ(), env...)
	if err := c.Start(); err != nil {
		n.t.Error(err)
		return
	}
	if kill {
		n.cut(c, index)
	}
	err := c.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		n.report(ctx, p, core.PodSucceeded, 0)
	case errors.As(err, &exit) && exit.ExitCode() == -1: // by a signal
		n.mu.Lock()
		n.killed++
		n.mu.Unlock()
		n.report(ctx, p, core.PodFailed, 137)
	default:
		n.t.Errorf("pod %s: %v", p.Name, err)
		n.report(ctx, p, core.PodFailed, 1)
	}
}

// cut kills the process of an index once it has written a result.
func (n *node) cut(c *exec.Cmd, index string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		parts, _ := filepath.Glob(filepath.Join(n.dir, "pods", fmt.Sprintf("part-%sof%d-*", index, shards)))
		for _, f := range parts {
			if st, err := os.Stat(f); err == nil && st.Size() > 0 {
				_ = c.Process.Kill()
				return
			}
		}
	}
}

// environment is what a pod's container has, NAME=VALUE, with its own annotations and labels
// where it asks for them.
func environment(p *core.Pod) (out []string) {
	for _, e := range p.Spec.Containers[0].Env {
		v := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			_, name, _ := strings.Cut(e.ValueFrom.FieldRef.FieldPath, "['")
			name = strings.TrimSuffix(name, "']")
			if v = p.Annotations[name]; v == "" {
				v = p.Labels[name]
			}
		}
		out = append(out, e.Name+"="+v)
	}
	return out
}

// report says in a pod's status where it is.
func (n *node) report(ctx context.Context, p *core.Pod, phase core.PodPhase, exit int32) {
	for range 20 { // until no other writer comes between
		now, err := n.client.CoreV1().Pods(namespace).Get(ctx, p.Name, meta.GetOptions{})
		if err == nil {
			now.Status.Phase = phase
			if phase != core.PodRunning {
				now.Status.ContainerStatuses = []core.ContainerStatus{{Name: p.Spec.Containers[0].Name,
					State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: exit,
						FinishedAt: meta.Now()}}}}
			}
			_, err = n.client.CoreV1().Pods(namespace).UpdateStatus(ctx, now, meta.UpdateOptions{})
		}
		if err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	n.t.Errorf("the status of pod %s could not be written", p.Name)
}
