package main

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const fluxConcurrency = 8

// fluxSSA is the library below Flux's kustomize-controller.
func fluxSSA() engine {
	log.SetLogger(logr.Discard()) // its client would complain that there is none
	return engine{
		name: "flux ssa", peer: true,
		told: fmt.Sprintf("ResourceManager.ApplyAll with owner labels and the default options, concurrency %d", fluxConcurrency),
		prepare: func(j job) (func(context.Context) error, error) {
			objects := make([]*unstructured.Unstructured, 0, len(j.objects))
			for _, o := range asUnstructured(j.objects) {
				objects = append(objects, o.DeepCopy()) // it labels what it gets
			}
			config := j.fresh()
			return func(ctx context.Context) error {
				c, err := client.New(config, client.Options{})
				if err != nil {
					return err
				}
				manager := ssa.NewResourceManager(c, nil, ssa.Owner{Field: "flux", Group: "benchmark.example.com"})
				manager.SetConcurrency(fluxConcurrency)
				manager.SetOwnerLabels(objects, "benchmark", j.namespace)
				_, err = manager.ApplyAll(ctx, objects, ssa.DefaultApplyOptions())
				return err
			}, nil
		},
	}
}
