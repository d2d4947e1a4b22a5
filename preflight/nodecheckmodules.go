package preflight

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

// moduleName is what modprobe takes for a name, and never for an option.
var moduleName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

// moduleScript prints "ok NAME" or "no NAME WHY" for each of its arguments. What the kernel has already needs no modprobe, which some nodes
// do not have. A busybox may lack the links to its commands.
const moduleScript = `set -f
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin
command -v chroot >/dev/null || chroot() { busybox chroot "$@"; }
for m in "$@"; do
  if [ -d "/sys/module/$(echo "$m" | tr - _)" ]; then echo "ok $m"; continue; fi
  if out=$(chroot /host modprobe "$m" 2>&1); then echo "ok $m"; else printf 'no %s %.300s\n' "$m" "$(echo $out)"; fi
done
`

// modules asks each node by one pod.
func (r *nodeChecking) modules(ctx context.Context, nodes []corev1.Node, modules []string) ([]Finding, error) {
	return eachNode(r.Parallel, nodes, func(node *corev1.Node) ([]Finding, error) {
		end, err := r.run(ctx, r.modulePod(node, modules), nil)
		if err != nil {
			return nil, err
		}
		if end.why != "" {
			return []Finding{unchecked(node.Name, "%s", end.why)}, nil
		}
		return moduleFindings(node.Name, modules, end.message), nil
	})
}

func (r *nodeChecking) modulePod(node *corev1.Node, modules []string) *corev1.Pod {
	yes := true
	pod := r.pod(node, moduleScript, modules...)
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "host", MountPath: "/host"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	return pod
}

func moduleFindings(node string, modules []string, message string) []Finding {
	loaded, why := map[string]bool{}, map[string]string{}
	for line := range strings.Lines(message) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		module, words, _ := strings.Cut(rest, " ")
		switch word {
		case "ok":
			loaded[module] = true
		case "no":
			why[module] = words
		}
	}
	var findings []Finding
	for _, module := range modules {
		words, failed := why[module]
		switch {
		case failed:
			fix := fmt.Sprintf("install the kernel module %s on node %s", module, node)
			findings = append(findings, Finding{
				Severity: Warn, Code: CodeKernelModule, Object: "Node " + node,
				Message: fmt.Sprintf("the kernel module %s does not load on node %s: %s — %s", module, node, words, fix), Fix: fix,
			})
		case !loaded[module]:
			findings = append(findings, unchecked(node, "nothing was said about the kernel module %s: %s", module, strings.TrimSpace(message)))
		}
	}
	return findings
}

// eachNode asks all nodes, some at a time, and gives the findings in the nodes' order. The first error stops those that have not begun.
func eachNode(parallel int, nodes []corev1.Node, ask func(*corev1.Node) ([]Finding, error)) ([]Finding, error) {
	answers := make([][]Finding, len(nodes))
	var group errgroup.Group
	group.SetLimit(parallel)
	failed := make(chan struct{}, len(nodes))
	for i := range nodes {
		group.Go(func() (err error) {
			if len(failed) > 0 {
				return nil
			}
			if answers[i], err = ask(&nodes[i]); err != nil {
				failed <- struct{}{}
			}
			return err
		})
	}
	err := group.Wait()
	var findings []Finding
	for _, answer := range answers {
		findings = append(findings, answer...)
	}
	return findings, err
}
