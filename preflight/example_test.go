package preflight_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/fake"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

func ExampleFloor() {
	findings, err := preflight.Floor("shared", &version.Info{GitVersion: "v1.34.2-gke.1043002"})
	if err != nil {
		fmt.Println(err)
	}
	for _, finding := range findings {
		fmt.Println(finding.Code, "on", finding.Object+":", finding.Fix)
	}
	// Output: kubernetes-floor on cluster shared: upgrade the control plane to Kubernetes 1.35 or newer
}

func ExampleMeetsFloor() {
	for _, found := range []string{"v1.35.0-gke.1043002", "v1.35.0-rc.1", "v1.34.9"} {
		meets, err := preflight.MeetsFloor(&version.Info{GitVersion: found}, preflight.KubernetesFloor)
		fmt.Println(found, meets, err)
	}
	// Output:
	// v1.35.0-gke.1043002 true <nil>
	// v1.35.0-rc.1 false <nil>
	// v1.34.9 false <nil>
}

func ExampleOwnership() {
	home, _ := preflight.Ownership("shared", "team-a", "app", nil)
	fmt.Println(home.FirstContact, home.What)
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"jr2.dev/instance": "elder"}}}
	_, findings := preflight.Ownership("shared", "team-a", "app", theirs)
	fmt.Println(findings[0].Code)
	// Output:
	// true create namespace "team-a"
	// namespace-owner
}

func ExamplePodLevelResources() {
	// A client of a real cluster goes here: kubernetes.NewForConfig(config).
	client := fake.NewClientset()
	findings, err := preflight.PodLevelResources(context.Background(), client.CoreV1().Pods("team-a"), "shared", "v1.36.1")
	fmt.Println(findings, err)
	// Output: [] <nil>
}

func ExampleNamedSecrets() {
	// A client of a real cluster goes here: kubernetes.NewForConfig(config).
	client := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "model-key"},
		Data:       map[string][]byte{"token": []byte("…")},
	})
	instance := &config.Instance{Secrets: []config.HeldSecret{
		{Name: "MODEL_KEY", ValueFrom: &config.SecretKeyRef{Name: "model-key", Key: "key"}},
	}}
	findings, err := preflight.NamedSecrets(context.Background(), client.CoreV1().Secrets("team-a"), instance, "team-a")
	if err != nil {
		fmt.Println(err)
	}
	for _, finding := range findings {
		fmt.Println(finding.Code, finding.Object)
	}
	// Output: secret-key-missing Secret team-a/model-key
}

func ExampleRefused() {
	err := preflight.Refused([]preflight.Finding{
		{Severity: preflight.Warn, Code: "registry", Message: "the registry is slow"},
		{Severity: preflight.Refuse, Code: preflight.CodeNamespaceOwner, Message: "refusing: the namespace has an owner"},
	})
	var refusal *preflight.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Findings[0].Code, "—", refusal)
	}
	// Output: namespace-owner — refusing: the namespace has an owner
}
