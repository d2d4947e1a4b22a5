package controller_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// A program that has its own way to run operators runs this one in its own process, for all namespaces.
func ExampleRun() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	if err := install(ctx, cluster); err != nil { // v1alpha1.CRDs, as a converge applies them
		log.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(running, cluster.Config(), controller.Options{}) }()

	c, err := newClient(cluster.Config())
	if err != nil {
		log.Fatal(err)
	}
	boxes, err := c.Watch(ctx, &v1alpha1.SandboxList{}, client.InNamespace("default"))
	if err != nil {
		log.Fatal(err)
	}
	box := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Spec: v1alpha1.SandboxSpec{Image: "example.com/image:1"}}
	if err := c.Create(ctx, box); err != nil {
		log.Fatal(err)
	}
	for event := range boxes.ResultChan() {
		if box, ok := event.Object.(*v1alpha1.Sandbox); ok && box.Status.Phase == v1alpha1.SandboxReady {
			fmt.Println(box.Name, "is", box.Status.Phase, "at", box.Status.Endpoint)
			break
		}
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// mine is Ready at http://mine.default.svc:8080
	// <nil>
}

func ExamplePod() {
	box := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}, Spec: v1alpha1.SandboxSpec{
		Image: "example.com/image:1", Sidecars: []corev1.Container{{Name: "user", Image: "example.com/users:1"}},
		Repos: []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}},
	}}
	pod := controller.Pod(box, map[string][]string{"app": {"node-1"}})
	for _, container := range pod.Spec.Containers {
		fmt.Println(container.Name, container.SecurityContext != nil, container.VolumeMounts[0].MountPath)
	}
	fmt.Println(pod.Spec.Volumes[0].HostPath.Path)
	// Output:
	// harness true /repos/app
	// user false /repos/app
	// /var/lib/jr2/team/repos/app
}

func ExampleService() {
	box := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}, Spec: v1alpha1.SandboxSpec{Port: 9000}}
	fmt.Println(controller.Service(box).Spec.Selector, controller.Endpoint(box))
	// Output: map[sandbox.jr2.dev/name:mine] http://mine.team.svc:9000
}
