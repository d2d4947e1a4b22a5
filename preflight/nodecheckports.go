package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// portScript prints "ADDRESS open", "ADDRESS refused", "ADDRESS silent" or "ADDRESS error WHY" for each of its arguments after the seconds and the
// port. All connect at once. Some builds of busybox know no -z: there a program that ends at once takes the connection.
const portScript = `set -f
command -v nc >/dev/null || nc() { busybox nc "$@"; }
seconds=$1 port=$2; shift 2
for a in "$@"; do
  (
    out=$(nc -z -v -w "$seconds" "$a" "$port" 2>&1 </dev/null) && { echo "$a open"; exit; }
    case "$out" in *"invalid option"*|*"unrecognized option"*)
      out=$(nc -w "$seconds" "$a" "$port" -e true 2>&1 </dev/null) && { echo "$a open"; exit; } ;;
    esac
    case "$out" in
      *efused*) echo "$a refused" ;;
      *imed\ out*|*imeout*) echo "$a silent" ;;
      *) printf '%s error %.120s\n' "$a" "$(echo $out)" ;;
    esac
  ) &
done
wait
`

// targetsPerPod keeps the answers of one pod within what a kubelet keeps of its message.
const targetsPerPod = 24

// ports connects from each node to all others.
func (r *nodeChecking) ports(ctx context.Context, from, to []corev1.Node, port int32) ([]Finding, error) {
	var findings []Finding
	addresses := map[string]string{}
	for i := range to {
		if address := internalAddress(&to[i]); address != "" {
			addresses[to[i].Name] = address
		} else {
			findings = append(findings, unchecked(to[i].Name, "it has no internal address"))
		}
	}
	asked, err := eachNode(r.Parallel, from, func(node *corev1.Node) ([]Finding, error) {
		var targets []corev1.Node
		for _, target := range to {
			if target.Name != node.Name && addresses[target.Name] != "" {
				targets = append(targets, target)
			}
		}
		var findings []Finding
		for some := range slices.Chunk(targets, targetsPerPod) {
			more, err := r.portsFrom(ctx, node, some, addresses, port)
			findings = append(findings, more...)
			if err != nil {
				return findings, err
			}
		}
		return findings, nil
	})
	return append(findings, asked...), err
}

func (r *nodeChecking) portsFrom(ctx context.Context, node *corev1.Node, targets []corev1.Node, addresses map[string]string, port int32) ([]Finding, error) {
	args := []string{fmt.Sprint(connectSeconds), fmt.Sprint(port)}
	for i := range targets {
		args = append(args, addresses[targets[i].Name])
	}
	end, err := r.run(ctx, r.pod(node, portScript, args...), nil)
	if err != nil {
		return nil, err
	}
	if end.why != "" {
		return []Finding{unchecked(node.Name, "%s", end.why)}, nil
	}
	answers := map[string]string{}
	for line := range strings.Lines(end.message) {
		address, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		answers[address] = answer
	}
	var findings []Finding
	for i := range targets {
		address := addresses[targets[i].Name]
		if finding, found := portFinding(node.Name, targets[i].Name, address, port, answers[address], end.message); found {
			findings = append(findings, finding)
		}
	}
	return findings, nil
}

// portFinding reads the answer about one node; an open path is no finding.
func portFinding(from, to, address string, port int32, answer, message string) (Finding, bool) {
	kind, words, _ := strings.Cut(answer, " ")
	why := ""
	switch kind {
	case "open", "refused":
		return Finding{}, false
	case "silent":
		why = fmt.Sprintf("nothing answered within %d s, so a firewall blocks it", connectSeconds)
	case "error":
		why = words
	default:
		return unchecked(from, "nothing was said about the way to node %s: %s", to, strings.TrimSpace(message)), true
	}
	fix := fmt.Sprintf("open TCP port %d from node %s to node %s", port, from, to)
	return Finding{
		Severity: Warn, Code: CodeNodePort, Object: "Node " + from,
		Message: fmt.Sprintf("node %s cannot reach node %s (%s) on TCP port %d: %s — %s", from, to, address, port, why, fix), Fix: fix,
	}, true
}

func internalAddress(node *corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}
