package jr2

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/preflight"
)

// onObject is a command of kubectl about one object. The group is named, because two groups may have kinds of one name.
func onObject(verb string, ref apply.Ref) string {
	kind := strings.ToLower(ref.Kind)
	if ref.Group != "" {
		kind += "." + ref.Group
	}
	if ref.Namespace == "" {
		return fmt.Sprintf("kubectl %s %s %s", verb, kind, ref.Name)
	}
	return fmt.Sprintf("kubectl -n %s %s %s %s", ref.Namespace, verb, kind, ref.Name)
}

func deletion(ref apply.Ref) string { return onObject("delete", ref) }

// withoutKeys takes empty keys out of a Secret: what is to be made is then made.
func withoutKeys(empty *apply.EmptyKeyError) string {
	var out []string
	for _, key := range empty.Keys {
		out = append(out, fmt.Sprintf(`{"op":"remove","path":"/data/%s"}`, key))
	}
	return fmt.Sprintf("kubectl -n %s patch secret %s --type json -p '[%s]'", empty.Ref.Namespace, empty.Ref.Name, strings.Join(out, ","))
}

// leastCPU is what a Harness should have where it has nothing, in thousandths of a core.
const leastCPU = 100

// raisedSize says what to write where a Size leaves the Harness too little.
func raisedSize(size *config.SizeError) string {
	value, source := config.FormatMemory(size.Size.Memory+config.HarnessFloor-size.Harness.Memory), size.MemorySource
	if size.Short == "cpu" {
		value, source = config.FormatCPU(size.Size.CPU+leastCPU-size.Harness.CPU), size.CPUSource
	}
	if source == config.FromMachine {
		return fmt.Sprintf("write resources.limits.%s: %q or more in workflows/%s.ts", size.Short, value, size.Workflow)
	}
	return fmt.Sprintf("write sandbox.resources.limits.%s: %q or more in jr2.config.ts", size.Short, value)
}

// calledWebhook is how the API server names a webhook that does not answer.
var calledWebhook = regexp.MustCompile(`failed calling webhook "([^"]+)"`)

// preciser writes a fix with what an error knows of the object that is refused.
func preciser(object *apply.ObjectError, f *preflight.Finding) {
	namespace := object.Ref.Namespace
	switch f.Code {
	case preflight.CodeNamespaceTerminating:
		if namespace != "" {
			f.Fix = preflight.AwaitDeletion(namespace)
		}
	case preflight.CodePodSecurity:
		if namespace != "" {
			f.Fix = preflight.LowerPodSecurity(namespace)
		}
	case preflight.CodeQuotaNever, preflight.CodeQuotaFull:
		if fix := preflight.RaiseQuota(namespace, f.Message); fix != "" {
			f.Fix = fix
		}
	case preflight.CodeWebhookUnreachable:
		if name := calledWebhook.FindStringSubmatch(f.Message); name != nil {
			f.Fix = "bring up the server of the webhook " + name[1] + ", or delete its configuration if it is a leftover"
		}
	}
}

// ownPods says what helps pods whose template nobody but the Kit writes.
func ownPods(f preflight.Finding) preflight.Finding {
	_, name, _ := strings.Cut(f.Object, " ")
	namespace, _, ok := strings.Cut(name, "/")
	if ok && f.Code == preflight.CodePodSecurity {
		f.Fix = preflight.LowerPodSecurity(namespace)
	}
	if fix := preflight.DefaultLimits(namespace, f.Message); ok && fix != "" && f.Code == preflight.CodePodQuotaNever {
		f.Message = strings.Replace(f.Message, f.Fix, "give the namespace a LimitRange with defaults for what the quota wants", 1)
		f.Fix = fix
	}
	return f
}

// labeling is the command that gives a node the labels for which alone Sandboxes can't land on it. It is empty where no node is so, and where the labels
// are those of kubelet or of other values: they say what the node is, and typing them makes it nothing else.
func labeling(nodes []corev1.Node, rules placement.Rules) string {
each:
	for _, node := range placement.Look(nodes, placement.Rules{Tolerations: rules.Tolerations}).Nodes {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(rules.NodeSelector)) {
			value := rules.NodeSelector[key]
			switch has, labeled := node.Labels[key]; {
			case labeled && has == value:
			case labeled, strings.Contains(key, "kubernetes.io/"), !plainLabel.MatchString(key + value):
				continue each
			default:
				labels = append(labels, key+"="+value)
			}
		}
		if len(labels) > 0 {
			return "kubectl label node " + node.Name + " " + strings.Join(labels, " ")
		}
	}
	return ""
}

// plainLabel is what a shell takes as it stands.
var plainLabel = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

// lowerSize says what to write where no node has what a Sandbox asks for, by the node that has most memory.
func lowerSize(nodes []corev1.Node, large placement.Demand) string {
	most := slices.MaxFunc(nodes, func(a, b corev1.Node) int { return a.Status.Allocatable.Memory().Cmp(*b.Status.Allocatable.Memory()) })
	has := most.Status.Allocatable
	var files []string
	for _, workflow := range large.Workflows {
		files = append(files, "workflows/"+workflow+".ts")
	}
	return fmt.Sprintf("write resources.limits of at most memory %s, cpu %s in %s, or add a node that has memory %s, cpu %s", config.FormatMemory(has.Memory().Value()),
		config.FormatCPU(has.Cpu().MilliValue()), strings.Join(files, ", "), config.FormatMemory(large.Size.Memory), config.FormatCPU(large.Size.CPU))
}
