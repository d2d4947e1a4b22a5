package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
)

// profileRuns is how often each phase is repeated: one no-op is too short for a sampler of 100 Hz.
func profileRuns(p phase) int {
	if p == cold {
		return 2
	}
	return 30
}

// profile writes PHASE-SIZE.cpu.pprof, and mem.pprof of all allocations, of package apply alone.
func profile(ctx context.Context, o options, logf func(string, ...any)) (err error) {
	if err := os.MkdirAll(o.profiles, 0o755); err != nil {
		return err
	}
	s, err := openSite(ctx, logf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.pass(ctx, s.direct, "warm", warmUp, []engine{ours()}, nil); err != nil {
		return err
	}
	for _, size := range o.sizes {
		for _, p := range phases() {
			if err := s.profilePhase(ctx, o.profiles, size, p); err != nil {
				return err
			}
		}
	}
	f, err := os.Create(filepath.Join(o.profiles, "mem.pprof"))
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}

// profilePhase prepares all runs of a phase before it samples any.
func (s *site) profilePhase(ctx context.Context, dir string, size int, p phase) error {
	var acts []func(context.Context) error
	var namespaces []string
	for i := range profileRuns(p) {
		namespace := fmt.Sprintf("profile-%d-0", size)
		if p == cold {
			namespace = fmt.Sprintf("profile-%d-%d", size, i)
			if err := s.newNamespace(ctx, namespace); err != nil {
				return err
			}
		}
		namespaces = append(namespaces, namespace)
		j, err := s.job(s.direct, namespace, size, p == change && i%2 == 0)
		if err != nil {
			return err
		}
		act, err := ours().prepare(j)
		if err != nil {
			return err
		}
		acts = append(acts, act)
	}
	runtime.GC()
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.cpu.pprof", p, size)))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	var errs []error
	for _, act := range acts {
		errs = append(errs, act(ctx))
	}
	pprof.StopCPUProfile()
	errs = append(errs, f.Close())
	for _, namespace := range slices.Compact(namespaces) {
		errs = append(errs, s.settle(ctx, namespace))
	}
	return errors.Join(errs...)
}
