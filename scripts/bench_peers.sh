#!/usr/bin/env bash
# Installs what the benchmarks compare with and Debian does not have, from PyPI, into build/bench-peers: Taichi, and with the
# argument `gpu` Warp, too.
#
# Leaves build/bench-peers/PACKAGE.ready, or PACKAGE.absent with the reason in one line, and succeeds either way: the
# benchmarks then say that the peer is absent. COPPICE_BENCH_TAICHI=0 and COPPICE_BENCH_WARP=0 do not try.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=build/bench-peers
mkdir -p "$folder"

# absent PACKAGE REASON
absent() {
  echo "$2" | tr -d '\r' | tail -n 1 | cut -c 1-200 >"$folder/$1.absent"
  echo "bench: $1 absent: $(cat "$folder/$1.absent")" >&2
  return 1
}

# install PACKAGE NAME_ON_PYPI VERSION: a virtual environment of its own. Fails when it is absent, or is there already.
install() {
  local output
  [ "$(cat "$folder/$1.ready" 2>/dev/null)" != "$3" ] || return 1
  rm -f "$folder/$1.ready" "$folder/$1.absent"
  local wanted=COPPICE_BENCH_${1^^}
  [ "${!wanted:-1}" != 0 ] || { absent "$1" "$wanted is 0" || return 1; }
  echo "bench: installing $1 $3 into $folder/$1, once" >&2
  rm -rf "${folder:?}/$1"
  output=$(python3 -m venv "$folder/$1" 2>&1) || { absent "$1" "python3 -m venv: $output" || return 1; }
  output=$("$folder/$1/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 "$2==$3" 2>&1) ||
    { absent "$1" "$(grep ERROR <<<"$output" || echo "$output")" || return 1; }
}

# Its kernels take ten seconds each to compile; it keeps them.
prepare_taichi() {
  local output grid
  for grid in 64 128; do
    echo "bench: taichi compiles its kernels for a $grid^3 grid, once" >&2
    output=$("$folder/taichi/bin/python" benchmarks/peers/mpm3d_taichi.py --grid "$grid" --frames 0 \
      --cache "$folder/taichi-cache" 2>&1) || { absent taichi "$output" || return 1; }
  done
  echo "bench: taichi compiles the kernels of the ported program, once" >&2
  output=$("$folder/taichi/bin/python" benchmarks/peers/mpm88_taichi.py --frames 0 --cache "$folder/taichi-cache" 2>&1) ||
    { absent taichi "$output" || return 1; }
  echo "bench: taichi compiles the kernels of the sparse benchmark, once" >&2
  output=$("$folder/taichi/bin/python" benchmarks/peers/sparse_taichi.py --quick --threads 1 \
    --cache "$folder/taichi-cache" 2>&1) || { absent taichi "$output" || return 1; }
}

if install taichi taichi 1.7.4 && prepare_taichi; then echo 1.7.4 >"$folder/taichi.ready"; fi
if [ "${1:-}" = gpu ] && install warp warp-lang 1.19.0; then echo 1.19.0 >"$folder/warp.ready"; fi
exit 0
