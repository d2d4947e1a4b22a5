// Package devcluster starts a real Kubernetes control plane, with simulated nodes, in a few seconds and without a
// container runtime: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, as child processes on
// loopback, built from Go modules on first use (package build).
//
//	cluster, err := devcluster.Start(ctx, devcluster.Options{})
//	defer cluster.Close()
//	client, err := kubernetes.NewForConfig(cluster.Config())
//
// It decides how a cluster is put together for tests and for trying things: ports, keys, flags, what a node looks like.
// It knows nothing of jr2. What a test needs beside a cluster is here too, each useful alone: a Registry, a Buildkitd, a
// Dockerd, a Proxy that makes the API server look older or ill, a BusyboxImage to build from.
//
// What is real: admission, defaulting, validation, RBAC, server-side apply, controllers, scheduling, quotas, garbage
// collection. What is simulated: the kubelets of Options.Nodes. A pod on such a node becomes Running and Ready at once and nothing is executed; a
// Job's pod completes; a claim of the default StorageClass is bound to a volume that nobody reads. No image is pulled, so
// an image that does not exist runs as well as any other; see Trouble for pods that fail.
//
// A real node can stand beside the simulated ones, or alone: Cluster.StartRealNode. Its pods run, and its images are pulled. It is made of
// a kubelet of the control plane's version, containerd, runc and CNI plugins, in namespaces and cgroups of its own, and takes root on Linux.
// See RealNode for what works there.
//
// With Options.Audit the API server keeps an audit log, and a Witness tells by it what a program asked of the cluster, and whether any of it could
// have changed something. Options.Bare leaves out all that acts on objects, for a cluster with thousands of them.
//
// Processes never outlive their parent: see spawner.
package devcluster
