#!/usr/bin/env bash
# Everything that can be shown on a machine with a GPU, in one folder: tests, compute-sanitizer, benchmarks.
#
#     gpu_report.sh --bin FOLDER [--device NAME] [--seconds N] [--rung-seconds N] [--jobs N] [--only-ladder] [REPORT FOLDER]
#
# `./dev gpu` runs it, in the repository and in the portable bundle. It needs bash, `timeout` and `mkdir`, no more. First it
# climbs a ladder, then come the tests, a scene, benchmarks and compute-sanitizer. Every step has a time limit, a share of the
# whole (--seconds, 460 unless given), and a rung 10 s; one that fails or hangs does not stop the next, and each writes its
# line when it ends. Exit code 1 when something failed, and when there is no such device: then it says why and writes nothing.
# With --device simt it is a rehearsal on the emulated GPU: the same steps, few tests, tiny benchmarks. With --device fake the
# ladder alone is climbed on the recording driver of the tests.
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
usage() { fail "$1; usage: [--device NAME] [--seconds N] [--rung-seconds N] [--jobs N] [--only-ladder] [REPORT FOLDER]" 2; }

bin= device=cuda seconds=460 rung_seconds=10 jobs= only_ladder=false folder=
while [ $# -gt 0 ]; do
  case $1 in
    --bin | --device | --seconds | --rung-seconds | --jobs)
      [ $# -ge 2 ] || usage "$1 needs a value"
      word=${1#--}
      printf -v "${word//-/_}" %s "$2"
      shift
      ;;
    --only-ladder) only_ladder=true ;;
    -*) usage "unknown option '$1'" ;;
    *) [ -z "$folder" ] && folder=$1 || usage "one report folder, not '$folder' and '$1'" ;;
  esac
  shift
done
cores=0
while IFS= read -r line; do [[ $line != processor* ]] || cores=$((cores + 1)); done </proc/cpuinfo
[ -n "$jobs" ] || jobs=$((cores > 8 ? 8 : cores > 0 ? cores : 1)) # each has a context on the GPU
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage "--seconds needs a number, not '$seconds'"
[[ $rung_seconds =~ ^[1-9][0-9]*$ ]] || usage "--rung-seconds needs a number, not '$rung_seconds'"
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage "--jobs needs a number, not '$jobs'"
[ -x "$bin/coppice" ] || usage "--bin: no program 'coppice' in '$bin'"
is_rehearsal=false
[ "$device" = cuda ] || is_rehearsal=true
ask=("$bin/coppice" info --device "$device")
if [ "$device" = fake ]; then # the program does not know it
  only_ladder=true
  ask=("$bin/coppice-gpu-ladder" driver fake)
fi

# The device answers, or there is nothing to report.
# No `timeout` is missed where there is no driver, either.
! type -P timeout >/dev/null || ask=(timeout --kill-after=2 60 "${ask[@]}")
card=$("${ask[@]}" 2>&1) || {
  status=$?
  [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || fail "device $device: no answer within 60 s"
  echo "$card" >&2
  exit 1
}
for tool in timeout mkdir; do type -P "$tool" >/dev/null || fail "no program '$tool' on PATH"; done
card=${card#"$device: "}
card=${card#"driver: "}

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
mkdir -p "$folder" || exit 1

here=.
case ${BASH_SOURCE[0]} in */*) here=${BASH_SOURCE[0]%/*} ;; esac
for part in steps ladder tests kernels; do
  # shellcheck source=/dev/null
  . "$here/gpu_report/$part.sh"
done
exec {errors_fd}>&2 # while a child is waited for, bash's own words go nowhere
interrupt() {
  end_children
  printf '\n**Interrupted in the step %s.**\n' "${step:-machine}" >>"$folder/summary.md"
  write_end
  fail "interrupted; $folder/summary.md has the steps before" 130 2>&"$errors_fd"
}
# The shell's own list has a child from its fork on; a variable would have it a moment later. `timeout` makes a process group,
# which is told as well: while it starts its command, a signal ends `timeout` alone.
end_children() {
  local child
  for child in $(jobs -pr); do
    kill -TERM "$child" 2>/dev/null
    kill -TERM -- "-$child" 2>/dev/null
  done
}
trap interrupt INT TERM

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
  limited "$(share 10)" "$folder/machine.txt" "$bin/coppice" info
  local status=$?
  # The benchmarks compare with them where they are installed (docs/benchmarks.md).
  if type -P python3 >/dev/null; then
    limited "$(share 10)" "$folder/machine.txt" python3 -c '
import importlib.metadata as metadata
for name in ("taichi", "warp-lang"):
    try:
        print(f"{name:<15} {metadata.version(name)}")
    except metadata.PackageNotFoundError:
        print(f"{name:<15} not installed")'
  else
    echo "python3         not found: neither Taichi nor Warp" >>"$folder/machine.txt"
  fi
  if type -P nvidia-smi >/dev/null; then
    echo >>"$folder/machine.txt"
    limited "$(share 10)" "$folder/machine.txt" nvidia-smi \
      --query-gpu=name,driver_version,compute_cap,memory.total,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem,pstate,power.limit,ecc.mode.current,mig.mode.current --format=csv
    limited "$(share 10)" "$folder/machine.txt" nvidia-smi
  else
    echo "nvidia-smi      not found" >>"$folder/machine.txt"
  fi
  if [ "$status" -eq 0 ]; then end_step "passed"; else end_step "FAILED: coppice info: $(reason "$status")"; fi
}

# ---- a scene, from its file to the numbers of its frames
run_scene() {
  begin_step scene
  local scene=snow_3d options=(--frames 4) status=0
  $is_rehearsal && scene=water_2d options=(--frames 1 --set grid.resolution=12 --set time.fps=1000)
  COPPICE_GPU_PROFILE=$folder/profile/scene limited "$(share 30)" "$folder/scene.txt" "$bin/coppice" run "$scene" --device "$device" -o "$folder/scene" "${options[@]}" \
    --set output.png=false --set output.particles=false --set output.vdb=false || status=$?
  if [ "$status" -eq 0 ]; then
    end_step "passed: $scene ${options[0]} ${options[1]}"
  else
    end_step "FAILED: $(reason "$status"); see scene.txt"
  fi
}

# ---- compute-sanitizer
run_sanitizers() {
  local tool program options=() filter=
  for program in ${sanitized//:/ }; do filter+=${filter:+:}$program/$device; done
  $is_rehearsal && options=(--require-cuda-init=no) # nothing there is CUDA's
  mkdir -p "$folder/sanitizer"
  for tool in memcheck racecheck synccheck; do
    begin_step "sanitizer: $tool"
    if ! program=$(find_sanitizer); then
      end_step "not run: no compute-sanitizer on PATH or in CUDA_HOME"
    elif limited "$(share 20)" "$folder/sanitizer/$tool.txt" "$program" --tool "$tool" --error-exitcode 86 --target-processes all \
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
  limited "$(share 120)" "$folder/bench.log" "$BASH" -c 'exec "$@" >"$0"' "$folder/bench.txt" \
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

# Once more with two events around each launch, for the kernels' table; the rows are those above.
run_profiled_benchmarks() {
  [ -x "$bin/coppice-bench" ] || return 0
  begin_step "benchmarks, profiled"
  local status=0
  mkdir -p "$folder/profile/bench"
  COPPICE_GPU_PROFILE=$folder/profile/bench limited "$(share 90)" "$folder/profile/bench/bench.txt" \
    "$bin/coppice-bench" gpu --device "$device" || status=$?
  if [ "$status" -eq 0 ]; then end_step "passed"; else end_step "not run to its end: $(reason "$status")"; fi
}

# ---- summary.md: its head first, then a line with each step (steps.sh), what was found at the end
write_head() {
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
  } >"$folder/summary.md"
}
write_end() {
  local line
  {
    if [ -s "$folder/failures.txt" ]; then
      printf '\n## What failed, run once more\n\n'
      while IFS= read -r line; do echo "- $line"; done <"$folder/failures.txt"
    fi
    if [ -s "$folder/bench.txt" ]; then
      printf '\n## Benchmarks\n\n```\n%s\n```\n' "$(<"$folder/bench.txt")"
    fi
    write_rows "$folder/bench.json"
    write_kernels bench scene "${!rung_outcome[@]}"
  } >>"$folder/summary.md"
  if [ -d "$folder/driver-cache" ] && type -P rm >/dev/null; then rm -r "$folder/driver-cache"; fi
}

export COPPICE_TEST_DEVICES=$device
# The driver keeps machine code in a folder of this report alone: its assembler, and so its log, comes first for each kernel.
if [ "$device" = cuda ]; then
  case $folder in /*) CUDA_CACHE_PATH=$folder/driver-cache ;; *) CUDA_CACHE_PATH=$PWD/$folder/driver-cache ;; esac
  export CUDA_CACHE_PATH
fi
$is_rehearsal || read_predictions "$card"
write_head
write_machine
climb_ladder
on_device="*/$device:*_$device"
if ! $only_ladder && $is_rehearsal; then
  run_tests gpu_unit_tests 30 '*Simt*'
  run_tests sparse_unit_tests 30 "Devices/Teams.*/$device:ReadBack.*"
  run_tests sparse_conformance_tests 60 "Sparse/Conformance.C0?_*/$device"
  run_tests sparse_stress_tests 40 "Sparse/TopologyRaces.Activating*/$device"
elif ! $only_ladder; then
  run_tests sparse_unit_tests 80 "$on_device:$unnamed"
  run_tests sparse_conformance_tests 70 "$on_device"
  run_tests apps_physics_tests 10 'MpmSolver.GivesOnAGpu*'
  run_tests sparse_stress_tests 90 "$on_device"
  run_tests gpu_unit_tests 25 '*'
fi
if ! $only_ladder; then
  run_scene
  run_benchmarks
  run_sanitizers
fi
if ! $only_ladder && ! $is_rehearsal; then # most tests here need the assembler, not the GPU: they take what time is left
  run_profiled_benchmarks
  run_tests gpu_gpu_tests 30 '*'
  run_tests sparse_gpu_tests 60 '*'
  run_tests apps_gpu_tests 30 '*'
fi
write_end
if $failed; then fail "something failed; $folder/summary.md says what"; fi
echo "gpu: all passed; $folder/summary.md has the table"
