#!/bin/sh
# Installs what the tests need beside Go: a C compiler and libseccomp to build runc, interpreters for foreign executables,
# strace, which shows what a test opens, busybox, which base images are made of, ip, mount and nsenter for real nodes, and Docker Engine, which is unpacked and not installed:
# tests start one of their own. Quick when all is there. Takes root on Debian or Ubuntu; elsewhere the tests that need it are skipped and
# say so.
#
# usage: .ci/deps.sh [ARCH…]   architectures beside this machine's to fetch busybox for (default: arm64)
set -eu

[ $# -gt 0 ] || set -- arm64
cache=${JR2_DEVCLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jr2-devcluster}
busybox=${JR2_BUSYBOX_DIR:-$cache/busybox}
host=$(dpkg --print-architecture)

updated=
update() {
	[ -n "$updated" ] || apt-get update -qq
	updated=yes
}

missing=
for package in strace gcc libc6-dev pkg-config libseccomp-dev busybox-static qemu-user-static mount util-linux iproute2 libdevmapper1.02.1; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
	update
	# shellcheck disable=SC2086 # a list
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

if [ ! -x "$busybox/$host/busybox" ]; then
	mkdir -p "$busybox/$host"
	cp /bin/busybox "$busybox/$host/busybox"
fi

for arch; do
	[ ! -x "$busybox/$arch/busybox" ] || continue
	dpkg --print-foreign-architectures | grep -qx "$arch" || dpkg --add-architecture "$arch"
	apt-cache show "busybox-static:$arch" >/dev/null 2>&1 || { updated= && update; }
	work=$(mktemp -d)
	# apt drops to a user of its own, who must be able to write here.
	chmod 755 "$work"
	(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "busybox-static:$arch" && dpkg -x busybox-static_*.deb root)
	mkdir -p "$busybox/$arch"
	find "$work/root" -path '*/bin/busybox' -exec cp {} "$busybox/$arch/busybox" \;
	rm -r "$work"
	[ -x "$busybox/$arch/busybox" ] || { echo "no busybox in busybox-static:$arch" >&2; exit 1; }
done

# libdevmapper1.02.1 above is what dockerd is linked with.
docker=${JR2_DOCKER_DIR:-$cache/docker}
if [ ! -x "$docker/usr/sbin/dockerd" ]; then
	apt-cache show docker.io >/dev/null 2>&1 || { updated= && update; }
	work=$(mktemp -d)
	chmod 755 "$work"
	(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download docker.io containerd && for package in *.deb; do dpkg -x "$package" root; done)
	mkdir -p "$docker"
	cp -R "$work/root/usr" "$docker/"
	rm -r "$work"
	[ -x "$docker/usr/sbin/dockerd" ] || { echo "no dockerd in docker.io" >&2; exit 1; }
fi
