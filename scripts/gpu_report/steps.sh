# Steps of a GPU report, their time limits and their lines in summary.md; sourced by gpu_report.sh.
#
# Every line is written when its step ends: a report that is cut off has all that went before.

failed=false
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
  echo "| $step | ${1//|//} | $((tenths / 10)).$((tenths % 10)) |" >>"$folder/summary.md"
  echo "gpu: $step: $1 ($((tenths / 10)).$((tenths % 10)) s)"
}
seconds_left() { echo $((seconds - ($(now_ms) - begin_ms) / 1000)); }

# share PARTS: so many of the whole's 460 parts, in seconds, at least 1.
share() {
  local limit=$(($1 * seconds / 460))
  [ "$limit" -ge 1 ] || limit=1
  echo "$limit"
}
# limited LIMIT LOG COMMAND...: for at most so many seconds, what is left of the whole at most. 124: it took longer; 125: no
# time is left.
limited() {
  local limit=$1 log=$2 left status=0 child
  shift 2
  left=$(seconds_left)
  [ "$limit" -le "$left" ] || limit=$left
  [ "$limit" -ge 1 ] || return 125
  timeout --kill-after=2 "$limit" "$@" >>"$log" 2>&1 </dev/null {errors_fd}>&- &
  child=$!
  { wait "$child"; } 2>/dev/null || status=$? # quiet: bash would tell of a crash itself
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
# last_line FILE: the last one that is not empty.
last_line() {
  local line last=
  [ ! -r "$1" ] || while IFS= read -r line; do [ -z "$line" ] || last=$line; done <"$1"
  echo "$last"
}

# fault_line FILE: the first that tells of a fault, else the last.
fault_line() {
  local line
  while IFS= read -r line; do
    case $line in *error:* | *'wrong result:'* | *': Failure') echo "$line" && return 0 ;; esac
  done <"$1"
  last_line "$1"
}

find_sanitizer() {
  local place
  type -P compute-sanitizer && return 0
  for place in "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer}/compute-sanitizer; do
    [ -x "$place" ] && echo "$place" && return 0
  done
  return 1
}

# examine NAME LIMIT COMMAND...: what failed is run once more with the checks of roles and indices and with its code written
# to failed/NAME/code (PTX and LLVM IR), then under compute-sanitizer. What they say goes to failures.txt.
examine() {
  local name=$1 limit=$2 place sanitizer text status=0 options=()
  shift 2
  place=$folder/failed/${name//[^A-Za-z0-9_.]/-}
  mkdir -p "$place"
  COPPICE_DEBUG=checks COPPICE_DUMP=$place/code limited "$limit" "$place/checks.txt" "$@" || status=$?
  case $status in
    0) text="passes with checks" ;;
    1 | 3) text="with checks: $(fault_line "$place/checks.txt")" ;;
    *) text="with checks: $(reason "$status")" ;;
  esac
  if sanitizer=$(find_sanitizer); then
    [ "$device" = cuda ] || options=(--require-cuda-init=no) # nothing there is CUDA's
    status=0
    limited "$limit" "$place/memcheck.txt" "$sanitizer" --tool memcheck --error-exitcode 86 --target-processes all \
      "${options[@]}" "$@" || status=$?
    case $status in
      0) text+="; memcheck finds nothing" ;;
      86) text+="; memcheck reports errors" ;;
      *) text+="; memcheck: $(reason "$status")" ;;
    esac
  fi
  echo "$name: $text; see ${place#"$folder/"}" >>"$folder/failures.txt"
  echo "gpu:   $name: $text"
}
