package images_test

import (
	"errors"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
)

func TestRef(t *testing.T) {
	const digest = "6389bdf72d50"
	cases := []struct {
		registry, instance, name string
		platforms                []string
		want, err                string
	}{
		{"registry.example.com/team", "my-instance", "default", []string{"linux/amd64"}, "registry.example.com/team/jr2-sandbox-my-instance-default:6389bdf72d50-amd64", ""},
		{"registry.example.com/team/", "i", "n", []string{"linux/amd64"}, "registry.example.com/team/jr2-sandbox-i-n:6389bdf72d50-amd64", ""},
		{"", "i", "n", []string{"linux/arm64"}, "jr2-sandbox-i-n:6389bdf72d50-arm64", ""},
		{"localhost:5555", "i", "n", []string{"linux/arm64", "linux/amd64"}, "localhost:5555/jr2-sandbox-i-n:6389bdf72d50-amd64-arm64", ""},
		{"[::1]:5000/x", "i", "n", []string{"linux/arm64/v8", "linux/arm64", "linux/x86_64"}, "[::1]:5000/x/jr2-sandbox-i-n:6389bdf72d50-amd64-arm64", ""},
		{"r.test", "I", "n", []string{"linux/amd64"}, "", `the Instance name "I" has capitals`},
		{"r.test", "i", "Toolbox", []string{"linux/amd64"}, "", `the image folder name "Toolbox" has capitals`},
		{"r.test/Team", "i", "n", []string{"linux/amd64"}, "", "must be lowercase"},
		{"r.test", "i", "my image", []string{"linux/amd64"}, "", "invalid reference format"},
		{"r.test", "i", "a..b", []string{"linux/amd64"}, "", "invalid reference format"},
		{"r.test", "i", "n:1", []string{"linux/amd64"}, "", "invalid reference format"},
		{"r.test", "i", "ä", []string{"linux/amd64"}, "", "invalid reference format"},
		{"https://r.test", "i", "n", []string{"linux/amd64"}, "", "without a scheme"},
		{"r.test", "i", strings.Repeat("n", 300), []string{"linux/amd64"}, "", "must not be more than 255"},
		{"r.test", "i", "n", nil, "", "at least one platform"},
		{"r.test", "i", "n", []string{"amd64"}, "", "amd64"},
	}
	for _, c := range cases {
		got, err := images.Ref(c.registry, c.instance, c.name, digest, c.platforms)
		if c.err == "" {
			if err != nil || got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: %v, want %q", c, err, c.err)
		}
	}
	_, err := images.Ref("r.test", "I", "n", digest, []string{"linux/amd64"})
	var ref *images.RefError
	if !errors.As(err, &ref) {
		t.Errorf("%T is no *RefError", err)
	}
}
