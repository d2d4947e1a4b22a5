package render

import (
	"errors"
	"testing"
)

func TestKitOf(t *testing.T) {
	const pin = "distroless-v1.39.1@sha256:eb2c01c13125d1629637cb4e4cce7207009fb7cc2c8027f9742758549d15b6f4"
	for _, test := range []struct {
		name, version string
		registry      *string
		home          string
		harness       string
		custodian     string
		bad           bool
	}{
		{"published", "0.3.0", nil, KitHome, "ghcr.io/snapwich/jr2-harness:0.3.0", "docker.io/envoyproxy/envoy:" + pin, false},
		{"leading v", "v0.3.0", nil, KitHome, "ghcr.io/snapwich/jr2-harness:0.3.0", "docker.io/envoyproxy/envoy:" + pin, false},
		{"pre-release", "1.0.0-rc.1", nil, KitHome, "ghcr.io/snapwich/jr2-harness:1.0.0-rc.1", "docker.io/envoyproxy/envoy:" + pin, false},
		{"mirror", "0.3.0", text("registry.example.com/mirror"), "registry.example.com/mirror",
			"registry.example.com/mirror/jr2-harness:0.3.0", "registry.example.com/mirror/envoy:" + pin, false},
		{"port and slash", "0.3.0", text("localhost:5000/"), "localhost:5000", "localhost:5000/jr2-harness:0.3.0", "localhost:5000/envoy:" + pin, false},
		{"several slashes", "0.3.0", text("r.example.com:5000/a/b//"), "r.example.com:5000/a/b",
			"r.example.com:5000/a/b/jr2-harness:0.3.0", "r.example.com:5000/a/b/envoy:" + pin, false},
		{"set to nothing", "0.3.0", text(""), KitHome, "ghcr.io/snapwich/jr2-harness:0.3.0", "docker.io/envoyproxy/envoy:" + pin, false},
		{"URL", "0.3.0", text("https://registry.example.com"), "", "", "", true},
		{"capitals in the path", "0.3.0", text("registry.example.com/Team"), "", "", "", true},
		{"with a tag", "0.3.0", text("registry.example.com/team:latest"), "", "", "", true},
		{"no version", "", nil, "", "", "", true},
		{"build metadata", "1.0.0+abc", nil, "", "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			kit, err := KitOf(test.version, test.registry)
			if test.bad {
				var malformed *KitError
				if !errors.As(err, &malformed) {
					t.Fatalf("got %+v, %v; want a *KitError", kit, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if kit.Home != test.home || kit.Harness != test.harness || kit.Custodian != test.custodian {
				t.Errorf("got %+v", kit)
			}
		})
	}
}

func TestCompareVersions(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"1.2.0", "1.2.0", 0}, {"v1.2.0", "1.2.0", 0}, {"1.2.0+a", "1.2.0+b", 0},
		{"1.2.0-rc.1", "1.2.0", -1}, {"1.2.0-rc.2", "1.2.0-rc.10", -1}, {"1.10.0", "1.9.9", 1}, {"2.0.0-alpha", "1.99.99", 1},
	} {
		got, err := CompareVersions(test.a, test.b)
		if err != nil || got != test.want {
			t.Errorf("%s and %s: %d, %v; want %d", test.a, test.b, got, err, test.want)
		}
		back, err := CompareVersions(test.b, test.a)
		if err != nil || back != -test.want {
			t.Errorf("%s and %s: %d, %v; want %d", test.b, test.a, back, err, -test.want)
		}
	}
	for _, bad := range []string{"", "latest", "1.2.3.4", "sha-6389bdf"} {
		if _, err := CompareVersions(bad, "1.0.0"); err == nil {
			t.Errorf("%q compares", bad)
		}
		if _, err := CompareVersions("1.0.0", bad); err == nil {
			t.Errorf("%q compares", bad)
		}
	}
}
