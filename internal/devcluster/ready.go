package devcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageClass is the default StorageClass of every cluster. kwok's stages bind its claims.
const StorageClass = "standard"

// answering waits until the API server answers requests, which is before it is ready.
func (c *Cluster) answering(ctx context.Context) error {
	return pollWhile(ctx, c.components("kube-apiserver"), func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	})
}

// ready waits for the API server's own word, and for what the controllers make before the first pod can be created.
func (c *Cluster) ready(ctx context.Context) error {
	return pollWhile(ctx, c.components("kube-apiserver"), func(ctx context.Context) error {
		if err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return fmt.Errorf("the API server is not ready: %w", err)
		}
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("the controllers are not ready: %w", err)
		}
		return nil
	})
}

// ensureAccount makes what pods of the default namespace run as, where no controller does.
func (c *Cluster) ensureAccount(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	return pollWhile(ctx, c.components("kube-apiserver"), func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, account, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (c *Cluster) ensureStorageClass(ctx context.Context) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        StorageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: provisioner,
	}
	return pollWhile(ctx, c.components("kube-apiserver"), func(ctx context.Context) error {
		_, err := c.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
