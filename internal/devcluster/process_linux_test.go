package devcluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/devcluster"
)

// childEnv makes TestChildStartsCluster, run as a process of its own, start a cluster and wait to be killed.
const childEnv = "JR2_DEVCLUSTER_TEST_CHILD"

func TestChildStartsCluster(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("only runs as the child of TestKilledParent")
	}
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	builder := startBuildkitd(t, devcluster.BuildkitOptions{})
	devcluster.RealNodeForTest(t, cluster, devcluster.RealNodeOptions{})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "runs"}, Spec: podSpec("localhost/devcluster/pause:1").Spec}
	pod.Spec.NodeName = devcluster.DefaultRealNodeName
	client := clientFor(t, cluster.Config())
	runPod(t, client, pod)
	eventually(t, func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "runs", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("%+v", pod.Status)
		}
		return err
	})
	fmt.Printf("\ndirs %s %s\n", cluster.Dir(), filepath.Dir(strings.TrimPrefix(builder.Address, "unix://")))
	// Until the pipe ends, which is when the parent does.
	_, _ = bufio.NewReader(os.Stdin).ReadString(0)
}

// A parent that is killed takes all components with it, and what they have started.
func TestKilledParent(t *testing.T) {
	t.Parallel()
	if err := errors.Join(devcluster.CanBuildkit(), devcluster.CanRealNode()); err != nil {
		devcluster.Missing(t, err.Error())
	}
	child := exec.Command(os.Args[0], "-test.run=^TestChildStartsCluster$", "-test.timeout=9m")
	child.Env = append(os.Environ(), childEnv+"=1")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var output []string
	var dirs []string
	for scanner := bufio.NewScanner(stdout); dirs == nil && scanner.Scan(); {
		output = append(output, scanner.Text())
		if rest, ok := strings.CutPrefix(scanner.Text(), "dirs "); ok {
			dirs = strings.Fields(rest)
		}
	}
	if dirs == nil {
		t.Fatalf("the child said %q: %v", output, child.Wait())
	}
	running := descendants(t, child.Process.Pid)
	if len(running) < 15 {
		t.Errorf("only %v are running", running)
	}
	if len(devcluster.CgroupsOf(child.Process.Pid)) == 0 {
		t.Error("the node has no cgroups")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	eventually(t, func(context.Context) error {
		for pid, name := range running {
			if commandName(pid) == name {
				return fmt.Errorf("%s (%d) is still running", name, pid)
			}
		}
		return nil
	})
	// All mounts were the node's own.
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
	// Cgroups outlive their processes; the next node, which may be another test's, removes them.
	eventually(t, func(context.Context) error {
		left, err := devcluster.SweepCgroups(child.Process.Pid)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left behind: %v", left)
		}
		return err
	})
}

// descendants are the processes below pid, with their names.
func descendants(t *testing.T, pid int) map[int]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := stat(child); fields != nil {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], child)
		}
	}
	all := map[int]string{}
	for todo := children[pid]; len(todo) > 0; todo = todo[1:] {
		all[todo[0]] = commandName(todo[0])
		todo = append(todo, children[todo[0]]...)
	}
	return all
}

// stat is state, parent, … of a process; nil when it is gone.
func stat(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.Fields(rest)
}

// commandName is empty when the process is gone, or has ended and waits for its parent to notice.
func commandName(pid int) string {
	if fields := stat(pid); fields == nil || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
