package jr2

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A MovedError says that a converge would not do any more what Options.Plan says. Nothing was written.
type MovedError struct {
	// Plan is what it would do now.
	Plan *Plan
	// Moved names what the two plans differ in: objects, "image toolbox", "the tokens", "the certificates", "the deploy keys", "the Assembly".
	Moved []string
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("the cluster or the Instance moved since the plan was made, which does not hold any more for %s", strings.Join(e.Moved, ", "))
}

// agreed checks that what somebody agreed to in a plan is what would be done.
func (c *converge) agreed(ctx context.Context) error {
	if c.opts.Plan == nil {
		return nil
	}
	opts := c.opts
	opts.Plan, opts.Events = nil, nil
	now, err := MakePlan(ctx, opts)
	if err != nil {
		return err
	}
	if err := now.Err(); err != nil {
		return err
	}
	if moved := c.opts.Plan.moved(now); len(moved) > 0 {
		return &MovedError{Plan: now, Moved: moved}
	}
	return nil
}

// moved names what another plan would do otherwise. Findings are not compared: they are no deeds.
func (p *Plan) moved(now *Plan) []string {
	var moved []string
	if p.Instance != now.Instance || p.Context != now.Context || p.Namespace != now.Namespace || p.FirstContact != now.FirstContact {
		moved = append(moved, "the namespace")
	}
	moved = append(moved, movedImages(p.Images, now.Images)...)
	moved = append(moved, movedLayers(p.Layers, now.Layers)...)
	if !reflect.DeepEqual(p.Mint, now.Mint) {
		moved = append(moved, "the tokens")
	}
	if !reflect.DeepEqual(p.Certificates, now.Certificates) {
		moved = append(moved, "the certificates")
	}
	moved = append(moved, movedDeployKeys(p.DeployKeys, now.DeployKeys)...)
	if p.Assembly != now.Assembly {
		moved = append(moved, "the Assembly")
	}
	return moved
}

func movedImages(was, now []PlannedImage) []string {
	var moved []string
	lacks := func(these, those []PlannedImage) {
		for _, image := range these {
			there := slices.ContainsFunc(those, func(other PlannedImage) bool {
				return other.Name == image.Name && other.Ref == image.Ref && other.Intent == image.Intent
			})
			if !there && !slices.Contains(moved, "image "+image.Name) {
				moved = append(moved, "image "+image.Name)
			}
		}
	}
	lacks(was, now)
	lacks(now, was)
	return moved
}

func movedLayers(was, now []PlannedLayer) []string {
	plans := map[string]PlannedLayer{}
	for _, layer := range was {
		plans[layer.Name] = layer
	}
	var moved []string
	for _, layer := range now {
		before, ok := plans[layer.Name]
		if !ok {
			moved = append(moved, "the layer "+layer.Name)
			continue
		}
		delete(plans, layer.Name)
		for _, ref := range before.Plan.Moved(layer.Plan) {
			moved = append(moved, ref.String())
		}
	}
	for _, layer := range was {
		if _, gone := plans[layer.Name]; gone {
			moved = append(moved, "the layer "+layer.Name)
		}
	}
	return moved
}
