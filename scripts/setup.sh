#!/usr/bin/env bash
# Installs the Debian packages that Coppice needs and this machine lacks.
#
#     scripts/setup.sh [--print] [GROUP...]      groups: build test bench format tidy; default: build test bench
#
# Asks dpkg first, and changes nothing when nothing is missing. Otherwise it says what it installs and why, and needs
# root or sudo. --print only says what would be installed. Written for Debian 12; needs nothing but bash and apt.
set -euo pipefail

# group, package, why
packages() {
  cat <<'END'
build  g++                     compiles the host code
build  cmake                   configures the build
build  ninja-build             runs the build
build  ccache                  keeps compiled files, so that a second build is quick
build  mold                    links in a fraction of a second
build  clang-19                compiles kernel files to bitcode
build  llvm-19-dev             specializes kernels at run time
build  libzstd-dev             llvm-19-dev needs it and does not say so
build  zlib1g-dev              llvm-19-dev needs it and does not say so
build  libtbb-dev              threads of the cpu device
build  libboost-context-dev    fibers of the emulated GPU
build  libthrust-dev           sort, scan, reduce and select
build  libeigen3-dev           vectors and matrices
build  libfmt-dev              text formatting
build  libxxhash-dev           keys of the kernel cache
build  libtomlplusplus-dev     reads scene files
build  libcli11-dev            reads the command line
build  libpng-dev              writes pictures
build  libegl-dev              draws without a display
build  libgl-dev               OpenGL headers
build  libegl1                 draws without a display
build  libegl-mesa0            draws without a display
build  libgl1-mesa-dri         draws on the CPU when there is no GPU
build  libopenvdb-dev          writes .vdb volumes
build  libboost-iostreams-dev  libopenvdb-dev needs it and does not say so
build  libglfw3-dev            opens the viewer's window
build  libimgui-dev            panels in the viewer's window
build  libopenmpi-dev          remote references between processes
build  openmpi-bin             starts the ranks of such programs
build  xz-utils                packs the portable bundle
test   libgtest-dev            test framework
test   libgmock-dev            test framework
test   libclang-rt-19-dev      fuzzes the readers of functions
test   gdb                     steps through kernels
test   python3                 checks the style rules
test   xvfb                    a display without a screen, for tests of the window
test   xdotool                 moves the mouse and types in tests of the window
test   spin                    checks the model of remote references
bench  python3-venv            installs Taichi, which benchmarks stand beside
bench  valgrind                counts instructions
bench  libboost-dev            intrusive_ptr, which reference counts stand beside
format clang-format-14         formats the sources
tidy   clang-tidy-14           static checks
END
}

fail() {
  echo "setup: error: $1" >&2
  exit "${2:-1}"
}

usage() {
  echo "usage: scripts/setup.sh [--print] [build] [test] [bench] [format] [tidy]"
}

print_only=false
groups=()
for word in "$@"; do
  case $word in
    --print) print_only=true ;;
    -h | --help) usage && exit 0 ;;
    build | test | bench | format | tidy) groups+=("$word") ;;
    *) fail "unknown argument '$word'; $(usage)" 2 ;;
  esac
done
[ ${#groups[@]} -gt 0 ] || groups=(build test bench)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here, so nothing is installed; CMake says what is missing. scripts/setup.sh lists it." >&2
  exit 0
fi

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
while read -r group package why; do
  case " ${groups[*]} " in *" $group "*) ;; *) continue ;; esac
  is_installed "$package" && continue
  [ ${#missing[@]} -gt 0 ] || echo "setup: missing Debian packages:"
  missing+=("$package")
  printf '  %-24s %s\n' "$package" "$why"
done < <(packages)
[ ${#missing[@]} -gt 0 ] || exit 0

# Without the recommended packages: they would pull in desktop software.
install=(apt-get install -y --no-install-recommends "${missing[@]}")
if $print_only; then
  echo "setup: would run: ${install[*]}"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "neither root nor sudo; ask your administrator to run: ${install[*]}"
  as_root=(sudo)
fi
echo "setup: installing them with apt-get; this takes a few minutes the first time"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run_apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 && return 0
  tail -n 15 "$log" >&2
  fail "'$*' failed; its last lines are above"
}
run_apt apt-get update
run_apt "${install[@]}"
echo "setup: done"
