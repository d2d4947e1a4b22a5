package jr2

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/clip"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// GCOptions say whose images to sweep, and by the needs of which cluster. The zero GCOptions sweeps the Docker Engine that the docker
// command would use without any variable set, by the kubeconfig's current context; and the nodes, where that is a kind cluster.
type GCOptions struct {
	// Config, Kubeconfig and Context choose the cluster, as in Options.
	Config     *rest.Config
	Kubeconfig string
	Context    string
	// Env is where Docker's variables are looked up, as in images.ConnectOptions; nil is empty.
	Env map[string]string
	// Store holds the images. Nil looks for the Docker Engine.
	Store images.Store
	// Nodes are the kind cluster that the context is. Nil looks for its nodes in the Docker Engine when the context's name says that it is one,
	// and sweeps them only when they are the cluster's own.
	Nodes *images.Kind
	// DryRun removes nothing and says what would be removed.
	DryRun bool
	// Keep are refs that count as needed beside what the cluster names.
	Keep []string
}

// GC removes the images that converges built and that nothing in the cluster needs any more, from the Docker Engine and from the nodes of a
// kind cluster; the nodes of other clusters look after themselves. Registries are never swept.
//
// Needed is what the image map of any Instance names, or named before the last converge that changed it; and what any Sandbox (a parked one
// too) or any pod of an Instance or of the operator names, also one that is ending. All of that is read before anything is removed; one read that fails
// sweeps nothing. Where a namespace was read and its record says what is no image map, because somebody changed it, the images of its Instance stay, the
// rest is swept, and the error says which namespaces those are. A converge that runs at the same time is no root: what it has built and not yet recorded
// may go, and is built or found in the registry again.
func GC(ctx context.Context, opts GCOptions) (*images.Sweeping, error) {
	c, err := resolve(Options{Config: opts.Config, Kubeconfig: opts.Kubeconfig, Context: opts.Context})
	if err != nil {
		return nil, err
	}
	if err := c.dial(); err != nil {
		return nil, err
	}
	roots, unclear, err := c.imageRoots(ctx)
	if err != nil {
		return nil, fmt.Errorf("nothing was swept, because what %s needs could not be read: %w", c.context, err)
	}
	env := opts.Env
	if env == nil {
		env = map[string]string{}
	}
	docker, sweep := images.ConnectOptions{Env: env}, images.SweepOptions{DryRun: opts.DryRun, Keep: opts.Keep}
	store := opts.Store
	if store == nil {
		engine, err := images.ConnectDocker(ctx, docker)
		if err != nil {
			return nil, fmt.Errorf("nothing was swept: %w", err)
		}
		defer engine.Close() //nolint:errcheck // nothing is left to say to it
		store = engine
	}
	done, err := images.Sweep(ctx, store, roots, sweep)
	err = errors.Join(unclear, err)
	if ctx.Err() != nil {
		return done, err
	}
	nodes := opts.Nodes
	if nodes == nil && c.kind() != "" {
		nodes = &images.Kind{Cluster: c.kind(), Docker: docker}
		defer nodes.Close() //nolint:errcheck // nothing is left to say to it
		var failed error
		if nodes.Machines, failed = c.machines(ctx); failed != nil {
			return done, errors.Join(err, fmt.Errorf("nothing was swept on nodes: %w", failed))
		}
	}
	if nodes == nil {
		return done, err
	}
	var failed error
	done.Nodes, failed = images.SweepKind(ctx, nodes, roots, sweep)
	return done, errors.Join(err, failed)
}

// machines are the machine ids of the cluster's nodes by name.
func (c cluster) machines(ctx context.Context) (map[string]string, error) {
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	machines := map[string]string{}
	for _, node := range list.Items {
		machines[node.Name] = node.Status.NodeInfo.MachineID
	}
	return machines, nil
}

// imageRoots reads what anything of jr2 in the cluster names: records and pods in the namespaces of Instances, and Sandboxes wherever they are, for a
// program may make them in a namespace that is no Instance's. unclear says which records do not read.
func (c cluster) imageRoots(ctx context.Context) (roots *images.Roots, unclear, err error) {
	roots = &images.Roots{}
	local, err := c.localRegistry(ctx)
	if err != nil {
		return nil, nil, err
	}
	roots.Alias(local)
	namespaces, err := c.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: names.LabelInstance})
	if err != nil {
		return nil, nil, fmt.Errorf("list namespaces: %w", err)
	}
	for _, namespace := range namespaces.Items {
		instance := namespace.Labels[names.LabelInstance]
		for _, add := range []func(context.Context, string, *images.Roots) error{c.addImageMap, c.addRecord, c.addPods} {
			err := add(ctx, namespace.Name, roots)
			if damaged := (*damagedRecord)(nil); errors.As(err, &damaged) {
				roots.Spare(instance)
				unclear = errors.Join(unclear, fmt.Errorf("no image of instance %q was swept, because nobody can read what it needs: %w; converge it again to have it written anew", instance, err))
			} else if err != nil {
				return nil, nil, err
			}
		}
	}
	if err := c.addSandboxes(ctx, roots); err != nil {
		return nil, nil, err
	}
	return roots, unclear, c.addPods(ctx, names.OperatorNamespace, roots)
}

// A damagedRecord is a record of images that was read and says nothing: whoever may edit the namespace may have written it.
type damagedRecord struct{ err error }

func (e *damagedRecord) Error() string { return clip.Text(e.err.Error()) }
func (e *damagedRecord) Unwrap() error { return e.err }

// asDamaged marks an error about what was read.
func asDamaged(err error) error {
	if err == nil {
		return nil
	}
	return &damagedRecord{err}
}

// localRegistry asks by which name nodes know a registry beside the cluster; not to be told is the zero value.
func (c cluster) localRegistry(ctx context.Context) (images.LocalRegistry, error) {
	const namespace, name = images.LocalRegistryNamespace, images.LocalRegistryConfigMap
	found, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return images.LocalRegistry{}, nil
	}
	if err != nil {
		return images.LocalRegistry{}, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return images.ParseLocalRegistry(found.Data)
}

func (c cluster) addImageMap(ctx context.Context, namespace string, roots *images.Roots) error {
	found, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, names.ImagesConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		if text, ok := found.Data[names.ImagesKey]; ok {
			err = asDamaged(roots.AddMap([]byte(text)))
		}
	}
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", namespace, names.ImagesConfig, err)
	}
	return nil
}

// addRecord adds what the Orchestrator's Deployment says of the image map: the same map, and what it replaced.
func (c cluster) addRecord(ctx context.Context, namespace string, roots *images.Roots) error {
	found, err := c.client.AppsV1().Deployments(namespace).Get(ctx, names.Orchestrator, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if text := found.Annotations[names.AnnotationImages]; err == nil && text != "" {
		err = asDamaged(roots.AddMap([]byte(text)))
	}
	if text := found.Annotations[names.AnnotationReplaced]; err == nil && text != "" {
		err = asDamaged(roots.AddList([]byte(text)))
	}
	if err != nil {
		return fmt.Errorf("Deployment %s/%s: %w", namespace, names.Orchestrator, err)
	}
	return nil
}

// addSandboxes takes a cluster without the kind for one without Sandboxes.
func (c cluster) addSandboxes(ctx context.Context, roots *images.Roots) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	list, err := client.Resource(v1alpha1.GroupVersion().WithResource("sandboxes")).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // of the resource
		return nil
	}
	if err != nil {
		return fmt.Errorf("list Sandboxes: %w", err)
	}
	for _, item := range list.Items {
		var sandbox v1alpha1.Sandbox
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &sandbox); err != nil {
			return fmt.Errorf("read Sandbox %s/%s: %w", item.GetNamespace(), item.GetName(), err)
		}
		roots.Add(sandbox.Spec.Image)
		addContainers(roots, sandbox.Spec.InitContainers, sandbox.Spec.Sidecars)
		addVolumes(roots, sandbox.Spec.Volumes)
	}
	return nil
}

func (c cluster) addPods(ctx context.Context, namespace string, roots *images.Roots) error {
	list, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods in %s: %w", namespace, err)
	}
	for _, pod := range list.Items {
		addContainers(roots, pod.Spec.InitContainers, pod.Spec.Containers)
		for _, container := range pod.Spec.EphemeralContainers {
			roots.Add(container.Image)
		}
		addVolumes(roots, pod.Spec.Volumes)
	}
	return nil
}

func addContainers(roots *images.Roots, lists ...[]corev1.Container) {
	for _, list := range lists {
		for _, container := range list {
			roots.Add(container.Image)
		}
	}
}

func addVolumes(roots *images.Roots, volumes []corev1.Volume) {
	for _, volume := range volumes {
		if volume.Image != nil {
			roots.Add(volume.Image.Reference)
		}
	}
}
