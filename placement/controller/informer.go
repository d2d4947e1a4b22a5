package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// An informer logs to the caller's logger. controller-runtime gives its informers the logger of the whole process, which complains on
// standard error where nobody has set one.
type informer struct {
	toolscache.SharedIndexInformer
	logger logr.Logger
}

func newInformer(logger logr.Logger) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return &informer{toolscache.NewSharedIndexInformer(lw, example, resync, indexers), logger}
	}
}

// RunWithContext runs the informer until ctx ends.
func (i *informer) RunWithContext(ctx context.Context) {
	i.SharedIndexInformer.RunWithContext(logr.NewContext(ctx, i.logger))
}
