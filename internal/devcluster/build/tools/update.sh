#!/bin/sh
# Writes NAME.mod and NAME.sum of every tool again. Change a version here, run it, commit what it wrote.
set -eu
cd "$(dirname "$0")"
here=$PWD
kubernetes=v1.36.3

pin() { # NAME MODULE VERSION PACKAGE…
	name=$1 module=$2 version=$3
	shift 3
	work=$(mktemp -d)
	cd "$work"
	go mod init "jr2.dev/jr2/internal/devcluster/build/tools/$name"
	go mod edit -go=1.26.0 -require "$module@$version"
	if [ "$module" = k8s.io/kubernetes ]; then
		# Its own go.mod replaces the staging modules by directories, which nobody else has: here they are the
		# published modules of the same release.
		dir=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
		sed -n 's#^\t\(k8s.io/[a-z-]*\) => \./staging/.*#\1#p' "$dir/go.mod" | while read -r staging; do
			go mod edit -replace "$staging=$staging@v0${version#v1}"
		done
	fi
	for package; do go mod edit -tool "$package"; done
	go mod tidy
	cp go.mod "$here/$name.mod"
	cp go.sum "$here/$name.sum"
	rm -r "$work"
}

pin kubernetes k8s.io/kubernetes $kubernetes k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager \
	k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kubelet
pin kubectl k8s.io/kubernetes $kubernetes k8s.io/kubernetes/cmd/kubectl
pin etcd go.etcd.io/etcd/server/v3 v3.6.16 go.etcd.io/etcd/server/v3
pin kwok sigs.k8s.io/kwok v0.8.0 sigs.k8s.io/kwok/cmd/kwok
pin buildkit github.com/moby/buildkit v0.34.2 github.com/moby/buildkit/cmd/buildkitd github.com/moby/buildkit/cmd/buildctl
pin runc github.com/opencontainers/runc v1.5.3 github.com/opencontainers/runc
pin controller-gen sigs.k8s.io/controller-tools v0.21.0 sigs.k8s.io/controller-tools/cmd/controller-gen
containerd=github.com/containerd/containerd/v2
pin containerd $containerd v2.4.2 $containerd/cmd/containerd $containerd/cmd/containerd-shim-runc-v2 $containerd/cmd/ctr
plugins=github.com/containernetworking/plugins
pin cni $plugins v1.10.0 $plugins/plugins/main/bridge $plugins/plugins/main/loopback $plugins/plugins/ipam/host-local
