#!/usr/bin/env bash
# The portable bundle's own ./dev: shows that the bundle works on this machine.
set -euo pipefail
# Needs bash alone: where there is nothing else, `./dev gpu` can still say that there is no driver.
case ${BASH_SOURCE[0]} in */*) cd "${BASH_SOURCE[0]%/*}" ;; esac

help_text() {
  cat <<'END'
usage: ./dev COMMAND

  test   run the bundled tests on the cpu and on the emulated GPU
  gpu [--device simt] [FOLDER]
         a ladder of first questions, tests, compute-sanitizer (where it is installed) and benchmarks on the NVIDIA GPU, in at
         most 8 minutes; one report folder. --only-ladder: the first minute of it. --device simt: a rehearsal without a GPU
  help   this text

bin/coppice is the program: bin/coppice run snow_3d, bin/coppice info, bin/coppice help.
END
}

command_test() {
  local program failed=()
  for program in bin/*_tests; do
    echo "dev: $program"
    "$program" --gtest_brief=1 || failed+=("$program")
  done
  [ ${#failed[@]} -eq 0 ] || { echo "dev: error: failed: ${failed[*]}" >&2; exit 1; }
}

case ${1:-help} in
  test) command_test ;;
  gpu) exec "$BASH" share/coppice/gpu_report.sh --bin bin "${@:2}" ;;
  help | -h | --help) help_text ;;
  *) echo "dev: error: unknown command '$1'; try ./dev help" >&2; exit 2 ;;
esac
