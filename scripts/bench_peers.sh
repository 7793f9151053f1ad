#!/usr/bin/env bash
# Installs what the benchmarks compare with and Debian does not have: Taichi, from PyPI, into build/bench-peers.
#
# Leaves build/bench-peers/taichi.ready, or taichi.absent with the reason in one line, and succeeds either way: the
# benchmarks then say that the peer is absent. COPPICE_BENCH_TAICHI=0 does not try.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=1.7.4
folder=build/bench-peers
mkdir -p "$folder"
absent() {
  echo "$1" | tr -d '\r' | tail -n 1 | cut -c 1-200 >"$folder/taichi.absent"
  echo "bench: taichi absent: $(cat "$folder/taichi.absent")" >&2
  exit 0
}

[ "$(cat "$folder/taichi.ready" 2>/dev/null)" = "$version" ] && exit 0
rm -f "$folder/taichi.ready" "$folder/taichi.absent"
[ "${COPPICE_BENCH_TAICHI:-1}" != 0 ] || absent "COPPICE_BENCH_TAICHI is 0"
echo "bench: installing taichi $version into $folder/taichi, once" >&2
rm -rf "$folder/taichi"
output=$(python3 -m venv "$folder/taichi" 2>&1) || absent "python3 -m venv: $output"
output=$("$folder/taichi/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 \
  "taichi==$version" 2>&1) || absent "$(grep ERROR <<<"$output" || echo "$output")"
# Its kernels take ten seconds each to compile; it keeps them.
for grid in 64 128; do
  echo "bench: taichi compiles its kernels for a $grid^3 grid, once" >&2
  output=$("$folder/taichi/bin/python" benchmarks/peers/mpm3d_taichi.py --grid "$grid" --frames 0 \
    --cache "$folder/taichi-cache" 2>&1) || absent "$output"
done
echo "bench: taichi compiles the kernels of the sparse benchmark, once" >&2
output=$("$folder/taichi/bin/python" benchmarks/peers/sparse_taichi.py --quick --threads 1 \
  --cache "$folder/taichi-cache" 2>&1) || absent "$output"
echo "$version" >"$folder/taichi.ready"
