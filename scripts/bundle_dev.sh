#!/usr/bin/env bash
# The portable bundle's own ./dev: shows that the bundle works on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

help_text() {
  cat <<'END'
usage: ./dev COMMAND

  test   run the bundled tests on the cpu and on the emulated GPU
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
  help | -h | --help) help_text ;;
  *) echo "dev: error: unknown command '$1'; try ./dev help" >&2; exit 2 ;;
esac
