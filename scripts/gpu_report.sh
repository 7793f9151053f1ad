#!/usr/bin/env bash
# Everything that can be shown on a machine with a GPU, in one folder: tests, compute-sanitizer, benchmarks.
#
#     gpu_report.sh --bin FOLDER [--device NAME] [--seconds N] [REPORT FOLDER]
#
# `./dev gpu` runs it, in the repository and in the portable bundle. It needs bash, `timeout` and `mkdir`, no more. Every step
# has a time limit, a share of the whole (--seconds, 460 unless given); one that fails or hangs does not stop the next.
# Exit code 1 when something failed, and when there is no such device: then it says why and writes nothing. With --device
# simt it is a rehearsal on the emulated GPU: the same steps, few tests, tiny benchmarks.
set -uo pipefail

# What compute-sanitizer watches: activation, shortage, lists, collection, tiles. It makes a kernel some 50 times slower.
sanitized='Sparse/Conformance.C01_*:Sparse/Conformance.C05_*:Sparse/Conformance.C09_*:Sparse/Conformance.C10_*:Sparse/Conformance.C15_*:Sparse/Conformance.C20_*:Devices/Tiles.*Box*'

# Tests that run on the device although it is not in their names (tests/sparse/test_devices.h, cpu_or_test_device()).
unnamed='BulkActivation.*:EigenValues.*:Leaves/*:Lists.*:MemoryTest.*:Operations.*:PointerBelowBitmasked.*:RandomNumbers.*'
unnamed+=':ReadBack.*:TopologyToolsTest.*:TreeTest.*:Trees/TopologyTools.*'

fail() {
  echo "gpu: error: $1" >&2
  exit "${2:-1}"
}
usage() { fail "$1; usage: [--device NAME] [--seconds N] [REPORT FOLDER]" 2; }

bin= device=cuda seconds=460 folder=
while [ $# -gt 0 ]; do
  case $1 in
    --bin | --device | --seconds)
      [ $# -ge 2 ] || usage "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -*) usage "unknown option '$1'" ;;
    *) [ -z "$folder" ] && folder=$1 || usage "one report folder, not '$folder' and '$1'" ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage "--seconds needs a number, not '$seconds'"
[ -x "$bin/coppice" ] || usage "--bin: no program 'coppice' in '$bin'"
is_rehearsal=false
[ "$device" = cuda ] || is_rehearsal=true

# The device answers, or there is nothing to report.
# No `timeout` is missed where there is no driver, either.
ask=("$bin/coppice" info --device "$device")
! type -P timeout >/dev/null || ask=(timeout --kill-after=2 60 "${ask[@]}")
card=$("${ask[@]}" 2>&1) || {
  status=$?
  [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || fail "device $device: no answer within 60 s"
  echo "$card" >&2
  exit 1
}
for tool in timeout mkdir; do type -P "$tool" >/dev/null || fail "no program '$tool' on PATH"; done
card=${card#"$device: "}

printf -v date '%(%Y-%m-%d)T' -1
if [ -z "$folder" ]; then
  name=${card%%,*}
  $is_rehearsal && name=$device
  name=gpu-report-$date-${name//[^A-Za-z0-9]/-}
  folder=$name
  for ((i = 2; ; ++i)); do
    [ -e "$folder" ] || break
    folder=$name-$i
  done
fi
[ ! -e "$folder" ] || fail "$folder is already there; name another folder for the report"
mkdir -p "$folder/tests" "$folder/sanitizer" || exit 1

# ---- steps: each leaves a line of the table
table=() failed=false child=
trap '[ -z "$child" ] || kill -TERM "$child"; write_summary; fail "interrupted; $folder/summary.md has the steps before" 130' INT TERM

now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
begin_ms=$(now_ms)
step_begin_ms=$begin_ms step=

begin_step() {
  step=$1
  step_begin_ms=$(now_ms)
}
# end_step RESULT: passed..., FAILED... or not run...
end_step() {
  local tenths=$((($(now_ms) - step_begin_ms) / 100))
  case $1 in FAILED*) failed=true ;; esac
  table+=("| $step | $1 | $((tenths / 10)).$((tenths % 10)) |")
  echo "gpu: $step: $1 ($((tenths / 10)).$((tenths % 10)) s)"
}
seconds_left() { echo $((seconds - ($(now_ms) - begin_ms) / 1000)); }

# limited LIMIT LOG COMMAND...: for at most so many of the whole's 460 parts. 124: it took longer; 125: no time is left.
limited() {
  local limit=$(($1 * seconds / 460)) log=$2 left status=0
  shift 2
  left=$(seconds_left)
  [ "$limit" -ge 1 ] || limit=1
  [ "$limit" -le "$left" ] || limit=$left
  [ "$limit" -ge 1 ] || return 125
  timeout --kill-after=2 "$limit" "$@" >>"$log" 2>&1 &
  child=$!
  { wait "$child"; } 2>/dev/null || status=$? # quiet: bash would tell of a crash itself
  child=
  return "$status"
}
reason() {
  case $1 in
    124) echo "took too long" ;;
    125) echo "no time was left" ;;
    137) echo "killed: it took too long and did not stop, or memory was short" ;;
    129 | 13? | 14? | 15?) echo "ended by signal $(($1 - 128))" ;;
    *) echo "exit code $1" ;;
  esac
}

# ---- machine.txt
commit_text() {
  local commit
  if [ -r "$bin/../share/doc/coppice/commit" ]; then
    echo "$(<"$bin/../share/doc/coppice/commit")"
  elif commit=$(git -C "$bin" rev-parse HEAD 2>/dev/null); then
    [ -z "$(git -C "$bin" status --porcelain --untracked-files=no 2>/dev/null)" ] || commit+=" with changes"
    echo "$commit"
  else
    echo unknown
  fi
}
write_machine() {
  begin_step machine
  local commit
  commit=$(commit_text)
  printf -v started '%(%Y-%m-%d %H:%M:%S %Z)T' -1
  {
    echo "date            $started"
    echo "commit          $commit"
    echo "device          $device: $card"
  } >"$folder/machine.txt"
  limited 10 "$folder/machine.txt" "$bin/coppice" info
  local status=$?
  if type -P nvidia-smi >/dev/null; then
    echo >>"$folder/machine.txt"
    limited 10 "$folder/machine.txt" nvidia-smi \
      --query-gpu=name,driver_version,compute_cap,memory.total,clocks.max.sm,clocks.max.mem,ecc.mode.current,mig.mode.current --format=csv
    limited 10 "$folder/machine.txt" nvidia-smi
  else
    echo "nvidia-smi      not found" >>"$folder/machine.txt"
  fi
  if [ "$status" -eq 0 ]; then end_step "passed"; else end_step "FAILED: coppice info: $(reason "$status")"; fi
}

# ---- tests
# names_of PROGRAM FILTER: one full name a line.
names_of() {
  local suite= line
  timeout 30 "$bin/$1" --gtest_list_tests --gtest_filter="$2" 2>/dev/null | while IFS= read -r line; do
    line=${line%%  #*}
    case $line in
      '  '*) echo "$suite${line#  }" ;;
      *.) suite=$line ;;
    esac
  done
}
# outcomes_in LOG: "OK NAME" and so on, of every test that came to its end.
outcomes_in() {
  local line
  while IFS= read -r line; do
    if [[ $line =~ ^\[\ +(OK|FAILED|SKIPPED)\ +\]\ ([^ ,]+).*\([0-9]+\ ms\)$ ]]; then
      echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
    fi
  done <"$1"
}
# run_tests PROGRAM LIMIT FILTER: all in one process; then each test that failed, or was not reached, in one of its own.
# One that fails only behind others on a GPU fails by their fault.
run_tests() {
  local program=$1 limit=$2 filter=$3 log=$folder/tests/$1.txt status=0
  [ -x "$bin/$program" ] || return 0
  begin_step "tests: $program"
  local -A outcome=()
  local names name word passed=0 skipped=0 alone=0 bad=()
  mapfile -t names < <(names_of "$program" "$filter")
  if [ ${#names[@]} -eq 0 ]; then
    end_step "FAILED: it has no test '$filter'"
    return 0
  fi
  limited "$limit" "$log" "$bin/$program" --gtest_filter="$filter" --gtest_output="xml:$folder/tests/$program.xml" || status=$?
  [ -e "$log" ] || : >"$log"
  while read -r word name; do outcome[$name]=$word; done < <(outcomes_in "$log")
  for name in "${names[@]}"; do
    case ${outcome[$name]:-} in
      OK) passed=$((passed + 1)) ;;
      SKIPPED) skipped=$((skipped + 1)) ;;
      *) bad+=("$name") ;;
    esac
  done
  local still=()
  for name in "${bad[@]}"; do
    echo "---- alone: $name" >>"$log"
    # A third of the step's time again for all of them, 20 s for one.
    if [ $(($(now_ms) - step_begin_ms)) -gt $((limit * seconds * 4000 / 3 / 460)) ]; then
      still+=("$name (${outcome[$name]:-not reached}, no time was left to run it alone)")
    elif limited 20 "$log" "$bin/$program" --gtest_filter="$name"; then
      alone=$((alone + 1))
      still+=("$name (${outcome[$name]:-not reached} behind others, passed alone)")
      outcome[$name]='passed alone'
    else
      still+=("$name ($(reason $?) alone)")
    fi
  done
  for name in "${names[@]}"; do echo "$program $name ${outcome[$name]:-not reached}"; done >>"$folder/tests.txt"
  local text="$passed of ${#names[@]}"
  [ "$skipped" -eq 0 ] || text+=", $skipped skipped"
  if [ ${#bad[@]} -eq 0 ] && [ "$status" -eq 0 ]; then
    if [ "$passed" -eq 0 ]; then text="not run: all $skipped skipped"; else text="passed: $text"; fi
    end_step "$text"
    return 0
  fi
  [ "$status" -le 1 ] || text+=", $(reason "$status")"
  [ "$alone" -eq 0 ] || text+=", $alone passed alone only"
  end_step "FAILED: $text; see tests/$program.txt"
  for name in "${still[@]}"; do echo "gpu:   $name"; done
  printf '%s\n' "${still[@]}" >>"$folder/failures.txt"
}

# ---- a scene, from its file to the numbers of its frames
run_scene() {
  begin_step scene
  local scene=snow_3d options=(--frames 4) status=0
  $is_rehearsal && scene=water_2d options=(--frames 1 --set grid.resolution=12 --set time.fps=1000)
  limited 30 "$folder/scene.txt" "$bin/coppice" run "$scene" --device "$device" -o "$folder/scene" "${options[@]}" \
    --set output.png=false --set output.particles=false --set output.vdb=false || status=$?
  if [ "$status" -eq 0 ]; then
    end_step "passed: $scene ${options[0]} ${options[1]}"
  else
    end_step "FAILED: $(reason "$status"); see scene.txt"
  fi
}

# ---- compute-sanitizer
find_sanitizer() {
  local place
  type -P compute-sanitizer && return 0
  for place in "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer}/compute-sanitizer; do
    [ -x "$place" ] && echo "$place" && return 0
  done
  return 1
}
run_sanitizers() {
  local tool program options=() filter=
  for program in ${sanitized//:/ }; do filter+=${filter:+:}$program/$device; done
  $is_rehearsal && options=(--require-cuda-init=no) # nothing there is CUDA's
  for tool in memcheck racecheck synccheck; do
    begin_step "sanitizer: $tool"
    if ! program=$(find_sanitizer); then
      end_step "not run: no compute-sanitizer on PATH or in CUDA_HOME"
    elif limited 40 "$folder/sanitizer/$tool.txt" "$program" --tool "$tool" --error-exitcode 86 --target-processes all \
      "${options[@]}" "$bin/sparse_conformance_tests" --gtest_filter="$filter"; then
      end_step "passed"
    else
      local status=$?
      [ "$status" -ne 86 ] || { end_step "FAILED: it reports errors; see sanitizer/$tool.txt" && continue; }
      end_step "FAILED: $(reason "$status"); see sanitizer/$tool.txt"
    fi
  done
}

# ---- benchmarks
run_benchmarks() {
  begin_step benchmarks
  local options=() status=0 rows=0 line
  if [ ! -x "$bin/coppice-bench" ]; then
    end_step "not run: built without benchmarks"
    return 0
  fi
  $is_rehearsal && options=(--tiny)
  # The table goes to bench.txt; rows go to bench.log one by one as well: what was measured before a hang is not lost.
  limited 110 "$folder/bench.log" "$BASH" -c 'exec "$@" >"$0"' "$folder/bench.txt" \
    "$bin/coppice-bench" gpu --device "$device" --json "$folder/bench.json" "${options[@]}" || status=$?
  if [ -e "$folder/bench.json" ]; then
    while IFS= read -r line; do [[ $line != *'"name":'* ]] || rows=$((rows + 1)); done <"$folder/bench.json"
  fi
  if [ "$status" -eq 0 ] && [ "$rows" -gt 0 ]; then
    end_step "passed: $rows rows"
  else
    end_step "FAILED: $(reason "$status"), $rows rows; see bench.log"
  fi
}

write_summary() {
  {
    if $is_rehearsal; then
      echo "# Rehearsal of a GPU report on $device"
      echo
      echo "Nothing here ran on a GPU, and the numbers mean nothing: few tests, tiny sizes."
    else
      echo "# GPU report"
    fi
    echo
    echo "$card; $date. More in machine.txt."
    echo
    echo "| step | result | seconds |"
    echo "|---|---|---|"
    printf '%s\n' "${table[@]}"
    if [ -s "$folder/failures.txt" ]; then
      printf '\n## Tests that failed\n\n'
      while IFS= read -r line; do echo "- $line"; done <"$folder/failures.txt"
    fi
    if [ -s "$folder/bench.txt" ]; then
      printf '\n## Benchmarks\n\n```\n%s\n```\n' "$(<"$folder/bench.txt")"
    fi
  } >"$folder/summary.md"
}

export COPPICE_TEST_DEVICES=$device
write_machine
on_device="*/$device:*_$device"
if $is_rehearsal; then
  run_tests gpu_unit_tests 15 '*Simt*'
  run_tests sparse_unit_tests 20 "Devices/Teams.*/$device:ReadBack.*"
  run_tests sparse_conformance_tests 60 "Sparse/Conformance.C0?_*/$device"
  run_tests sparse_stress_tests 40 "Sparse/TopologyRaces.Activating*/$device"
else
  run_tests gpu_unit_tests 40 '*'
  run_tests sparse_unit_tests 40 "$on_device:$unnamed"
  run_tests sparse_conformance_tests 60 "$on_device"
  run_tests apps_physics_tests 30 'MpmSolver.GivesOnAGpu*'
  run_tests sparse_stress_tests 40 "$on_device"
fi
run_scene
run_benchmarks
run_sanitizers
if ! $is_rehearsal; then # most of them need the assembler, not the GPU: they take what time is left
  run_tests gpu_gpu_tests 30 '*'
  run_tests sparse_gpu_tests 60 '*'
  run_tests apps_gpu_tests 30 '*'
fi
write_summary
if $failed; then fail "something failed; $folder/summary.md says what"; fi
echo "gpu: all passed; $folder/summary.md has the table"
