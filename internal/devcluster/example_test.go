package devcluster_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
)

func ExampleStart() {
	ctx := context.Background()
	cluster, err := devcluster.Start(ctx, devcluster.Options{
		Nodes: []devcluster.Node{{Name: "a"}, {Name: "b", Arch: "arm64"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, node := range nodes.Items {
		fmt.Println(node.Name, node.Status.NodeInfo.Architecture)
	}
	// Output:
	// a amd64
	// b arm64
}

// A pod runs on a real node, from an image that was pulled.
func ExampleCluster_StartRealNode() {
	ctx := context.Background()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Nodes: []devcluster.Node{}})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	registry, err := devcluster.StartRegistry(ctx, devcluster.RegistryOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close()
	node, err := cluster.StartRealNode(ctx, devcluster.RealNodeOptions{
		Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		Registries:  []*devcluster.Registry{registry},
	})
	if errors.Is(err, devcluster.ErrNoRealNode) {
		fmt.Println("takes root on Linux:", err)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	image, err := registry.PushBusybox(ctx, "base/busybox:1", runtime.GOARCH)
	if err != nil {
		log.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"},
		Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{
			{Name: "main", Image: image, Command: []string{"echo", "hello"}},
		}},
	}
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
}

func ExampleStartProxy() {
	ctx := context.Background()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Nodes: []devcluster.Node{}})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	proxy, err := devcluster.StartProxy(ctx, cluster.Config(), devcluster.ServerVersion("v1.33.1"))
	if err != nil {
		log.Fatal(err)
	}
	defer proxy.Close()
	client, err := kubernetes.NewForConfig(proxy.Config())
	if err != nil {
		log.Fatal(err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(version)
	// Output: v1.33.1
}

func ExampleStartRegistry() {
	ctx := context.Background()
	registry, err := devcluster.StartRegistry(ctx, devcluster.RegistryOptions{User: "me", Password: "secret", TLS: true})
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close()
	ref, err := registry.Reference("team/app:1")
	if err != nil {
		log.Fatal(err)
	}
	if err := remote.Write(ref, empty.Image, registry.RemoteOptions(ctx)...); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ref.Context().RepositoryStr(), ref.Identifier())
	// Output: team/app 1
}
