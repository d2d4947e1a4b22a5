package devcluster

import (
	"fmt"
	"path/filepath"
)

// SweepCgroups does what the start of a real node does first, and returns what is left of the trees that the process owned.
func SweepCgroups(owner int) (left []string, err error) {
	hierarchies, err := findHierarchies()
	if err != nil {
		return nil, err
	}
	sweepCgroups(hierarchies)
	return CgroupsOf(owner), nil
}

// CgroupsOf are the trees that the process owns.
func CgroupsOf(owner int) []string {
	var all []string
	for _, pattern := range []string{cgroupRoot + "/*/", cgroupRoot + "/"} {
		found, _ := filepath.Glob(fmt.Sprintf("%s%s*-%d", pattern, cgroupPrefix, owner))
		all = append(all, found...)
	}
	return all
}
