package main

import (
	"context"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/apply"
)

// ours is package apply as a Go program uses it, from objects in memory.
func ours() engine {
	return engine{
		name: "jr2 apply", ours: true,
		told: "apply.NewSet of the objects and apply.Apply with Prune, all else by default",
		prepare: func(j job) (func(context.Context) error, error) {
			objects := make([]runtime.Object, 0, len(j.objects))
			for _, o := range asUnstructured(j.objects) {
				objects = append(objects, o)
			}
			config := j.fresh()
			return func(ctx context.Context) error {
				set, err := apply.NewSet("benchmark", j.namespace, objects...)
				if err != nil {
					return err
				}
				_, err = apply.Apply(ctx, config, set, apply.Options{Prune: true})
				return err
			}, nil
		},
	}
}

// oursFromFiles reads the YAML that the commands read.
func oursFromFiles() engine {
	return engine{
		name: "jr2 apply, from YAML", ours: false,
		told: "apply.Read of the folder that kubectl reads and apply.Apply with Prune",
		prepare: func(j job) (func(context.Context) error, error) {
			config := j.fresh()
			return func(ctx context.Context) error {
				set, err := apply.Read("benchmark", j.namespace, apply.Directory(filepath.Join(j.dir, "manifests")))
				if err != nil {
					return err
				}
				_, err = apply.Apply(ctx, config, set, apply.Options{Prune: true})
				return err
			}, nil
		},
	}
}
