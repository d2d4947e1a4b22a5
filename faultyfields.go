package jr2

import (
	"context"
	"errors"
	"slices"

	"jr2.dev/jr2/config"
)

// faultyFields are the paths of the fields that an error finds fault with; the path of the whole is "".
func faultyFields(err error) []string {
	var paths []string
	for _, one := range append(joined(err), err) {
		var field *config.FieldError
		if errors.As(one, &field) && !slices.Contains(paths, field.Path) {
			paths = append(paths, field.Path)
		}
	}
	return paths
}

// faulty says whether a field, one below it or one around it is at fault, so that nothing can stand on it.
func (c *converge) faulty(field string) bool {
	return slices.ContainsFunc(c.faults, func(path string) bool { return config.IsWithin(path, field) || config.IsWithin(field, path) })
}

// standsOnFault says whether a look stands on a field that is at fault. The looks that are not here stand on no field, or leave out by themselves
// what is not there.
func (k *checking) standsOnFault(look string) bool {
	return slices.ContainsFunc(map[string][]string{
		"kit names":        {"kitRegistry", "kitVersion"},
		"platform names":   {"platforms"},
		"connect":          {"name"},
		"platforms":        {"sandbox"},
		"named classes":    {"priorityClasses"},
		"images":           {"registry"},
		"priority classes": {"priorityClasses"},
		"operator":         {"operator", "priorityClasses"},
		"tokens":           {"git"},
		"certificates":     {"secrets", "harness"},
		"models":           {"harness", "secrets"},
		"objects":          {"priorityClasses", "sandbox", "harness", "secrets", "git"},
		"workloads":        {"priorityClasses", "sandbox", "harness", "secrets", "git"},
	}[look], k.faulty)
}

// readWhole of a check tells what could not be read, and goes on with what could.
func (k *checking) readWhole(context.Context) error {
	k.gather(k.unread, true)
	k.noteReading()
	return nil
}
