set -eu
apt-get update
apt-get install -y --no-install-recommends git ca-certificates make
