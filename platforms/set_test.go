package platforms_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/seed"
	"jr2.dev/jr2/platforms"
)

func node(name, architecture string) corev1.Node { return nodeOf(name, "linux", architecture) }

func nodeOf(name, system, architecture string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{OperatingSystem: system, Architecture: architecture}},
	}
}

func TestNamed(t *testing.T) {
	for name, test := range map[string]struct {
		list, want []string
		text       string // of the error: what stands for <platforms>
	}{
		"one":               {list: []string{"linux/arm64"}, want: []string{"linux/arm64"}},
		"sorted, once each": {list: []string{"linux/arm64", "linux/amd64", "linux/arm64"}, want: []string{"linux/amd64", "linux/arm64"}},
		"F13: spelling":     {list: []string{"linux/arm64/v8", "linux/arm64", "linux/amd64"}, want: []string{"linux/amd64", "linux/arm64"}},
		"other names":       {list: []string{"linux/x86_64", "Linux/AArch64"}, want: []string{"linux/amd64", "linux/arm64"}},
		"split with blanks": {list: []string{"linux/amd64", " linux/arm64"}, want: []string{"linux/amd64", "linux/arm64"}},
		"unsupported":       {list: []string{"linux/s390x", "linux/amd64", "linux/arm/v7"}, text: "linux/arm/v7, linux/s390x"},
		"variant":           {list: []string{"linux/amd64/v3"}, text: "linux/amd64/v3"},
		"bare architecture": {list: []string{"arm64"}, text: "arm64"},
		"other system":      {list: []string{"windows/amd64"}, text: "windows/amd64"},
		"no platform":       {list: []string{"a/b/c/d"}, text: "a/b/c/d"},
		"empty list":        {list: []string{}, text: "no platform (the list is empty)"},
		"empty variable":    {list: []string{""}, text: "an empty entry"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := platforms.Named(test.list)
			if test.text == "" {
				if err != nil || !slices.Equal(set.Platforms, test.want) || !set.FromConfig || set.Nodes != 0 {
					t.Fatalf("got %+v, %v; want %v", set, err, test.want)
				}
				return
			}
			var unsupported *platforms.UnsupportedError
			if !errors.As(err, &unsupported) {
				t.Fatalf("got %v, want an UnsupportedError", err)
			}
			if want := fmt.Sprintf(seed.PlatformsName, test.text); err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		})
	}
}

func TestFromNodes(t *testing.T) {
	for name, test := range map[string]struct {
		nodes, soon []corev1.Node
		want        platforms.Set
		text        string // of the error: what stands for <architectures>
	}{
		"the document's example": {
			nodes: []corev1.Node{node("a", "amd64"), node("b", "s390x")},
			want:  platforms.Set{Platforms: []string{"linux/amd64"}, Nodes: 2, Skipped: []string{"s390x"}},
		},
		"both, sorted": {
			nodes: []corev1.Node{node("a", "arm64"), node("b", "amd64"), node("c", "arm64")},
			want:  platforms.Set{Platforms: []string{"linux/amd64", "linux/arm64"}, Nodes: 3},
		},
		"a node that says nothing counts": {
			nodes: []corev1.Node{node("a", "amd64"), node("b", "")},
			want:  platforms.Set{Platforms: []string{"linux/amd64"}, Nodes: 2},
		},
		"each unsupported architecture once, sorted": {
			nodes: []corev1.Node{node("a", "s390x"), node("b", "ppc64le"), node("c", "s390x"), node("d", "amd64")},
			want:  platforms.Set{Platforms: []string{"linux/amd64"}, Nodes: 4, Skipped: []string{"ppc64le", "s390x"}},
		},
		"a Windows node runs no Linux image": {
			nodes: []corev1.Node{nodeOf("a", "windows", "amd64"), node("b", "arm64")},
			want:  platforms.Set{Platforms: []string{"linux/arm64"}, Nodes: 2, Skipped: []string{"windows/amd64"}},
		},
		"F07: a node that starts adds its architecture and is not counted": {
			nodes: []corev1.Node{node("e", "amd64")}, soon: []corev1.Node{node("a", "arm64"), node("b", "amd64"), node("d", "s390x")},
			want: platforms.Set{Platforms: []string{"linux/amd64", "linux/arm64"}, Nodes: 1, Skipped: []string{"s390x"}},
		},
		"F07: all nodes start": {
			soon: []corev1.Node{node("a", "arm64")},
			want: platforms.Set{Platforms: []string{"linux/arm64"}},
		},
		"none supported": {nodes: []corev1.Node{node("a", "s390x"), node("b", "ppc64le")}, text: "ppc64le, s390x"},
		"none reported":  {nodes: []corev1.Node{node("a", "")}, text: "no architecture"},
		"no node":        {text: "no architecture (there is no such node)"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := platforms.FromNodes(test.nodes, test.soon...)
			if test.text == "" {
				if err != nil || fmt.Sprintf("%+v", set) != fmt.Sprintf("%+v", test.want) {
					t.Fatalf("got  %+v, %v\nwant %+v", set, err, test.want)
				}
				return
			}
			var none *platforms.NoneError
			if !errors.As(err, &none) {
				t.Fatalf("got %v, want a NoneError", err)
			}
			if want := fmt.Sprintf(seed.NodesReport, test.text); err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		})
	}
}

func TestSuffix(t *testing.T) {
	for want, list := range map[string][]string{
		"-amd64":       {"linux/amd64"},
		"-amd64-arm64": {"linux/arm64/v8", "linux/amd64"},
	} {
		set, err := platforms.Named(list)
		if err != nil || set.Suffix() != want {
			t.Errorf("%v: got %q, %v; want %q", list, set.Suffix(), err, want)
		}
	}
}

func TestSupportedIsNobodysToChange(t *testing.T) {
	platforms.Supported()[0] = "linux/s390x"
	if _, err := platforms.Named([]string{"linux/amd64"}); err != nil {
		t.Error(err)
	}
}
