# The tests of a GPU report: one process for each, several at a time; sourced by gpu_report.sh.
#
# A GPU's error ends the work of its process: a test in a process of its own fails by its own fault only.

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

# Of the program under way: the test in each slot, and the slots that are free. Whoever ends says so through
# a pipe: bash's `wait -n` misses those that have ended already.
declare -A running_test=() began_ms=()
free_slots=() passed=0 skipped=0 bad=() slow=()
exec {done_fd}<> <(:)

# run_in_slot SLOT LIMIT COMMAND...: in a process of its own.
run_in_slot() {
  local slot=$1 limit=$2 child status=0
  shift 2
  trap end_children TERM
  timeout --kill-after=2 "$limit" "$@" >"$folder/running/$slot.txt" 2>&1 </dev/null {errors_fd}>&- {done_fd}>&- &
  child=$!
  wait "$child" || status=$?
  echo "$slot $status" >&"$done_fd"
}

# note_outcome NAME STATUS LOG TENTHS: so many tenths of a second it took.
note_outcome() {
  local name=$1 status=$2 log=$3 tenths=$4 text word
  text=$(<"$log")
  word=$(reason "$status")
  case $status in
    0) if [[ $text =~ \[\ +SKIPPED\ +\] ]]; then word=SKIPPED; else word=OK; fi ;;
    1) word=FAILED ;;
  esac
  case $word in
    OK) passed=$((passed + 1)) ;;
    SKIPPED) skipped=$((skipped + 1)) ;;
    "took too long") slow+=("$name") && echo "gpu:   $name: $word" ;;
    *)
      bad+=("$name")
      printf -- '---- %s: %s\n%s\n' "$name" "$word" "$text" >>"$folder/tests/$program.txt"
      echo "gpu:   $name: $word"
      ;;
  esac
  echo "$program $name $word $((tenths / 10)).$((tenths % 10)) s" >>"$folder/tests.txt"
}

wait_for_one() {
  local slot status
  read -r slot status <&"$done_fd"
  note_outcome "${running_test[$slot]}" "$status" "$folder/running/$slot.txt" $((($(now_ms) - began_ms[$slot]) / 100))
  free_slots+=("$slot")
  unset "running_test[$slot]"
}

# run_tests PROGRAM LIMIT FILTER. A test may take 20 of the 460 parts; those that fail are examined (steps.sh), as far as
# a third of the step's time allows.
run_tests() {
  local program=$1 limit filter=$3 names name slot left one unreached=0 text
  [ -x "$bin/$program" ] || return 0
  begin_step "tests: $program"
  mkdir -p "$folder/tests" "$folder/running"
  passed=0 skipped=0 bad=() slow=() free_slots=()
  for ((slot = 1; slot <= jobs; ++slot)); do free_slots+=("$slot"); done
  limit=$(share "$2")
  mapfile -t names < <(names_of "$program" "$filter")
  if [ ${#names[@]} -eq 0 ]; then
    end_step "FAILED: it has no test '$filter'"
    return 0
  fi
  for name in "${names[@]}"; do
    [ ${#running_test[@]} -lt "$jobs" ] || wait_for_one
    one=$(share 20) left=$((limit - ($(now_ms) - step_begin_ms) / 1000))
    [ "$left" -le "$(seconds_left)" ] || left=$(seconds_left)
    if [ "$left" -lt 1 ]; then
      unreached=$((unreached + 1))
      echo "$program $name not reached" >>"$folder/tests.txt"
      continue
    fi
    [ "$one" -le "$left" ] || one=$left
    slot=${free_slots[-1]}
    unset 'free_slots[-1]'
    run_in_slot "$slot" "$one" "$bin/$program" --gtest_filter="$name" 2>/dev/null & # quiet: bash would tell of crashes
    running_test[$slot]=$name began_ms[$slot]=$(now_ms)
  done
  while [ ${#running_test[@]} -gt 0 ]; do wait_for_one; done
  # Processes that share a GPU get it by turns, some milliseconds each: a test of many launches may be slow for that alone.
  for name in "${slow[@]}"; do
    local begin status=0
    begin=$(now_ms)
    limited "$(share 20)" "$folder/running/alone.txt" "$bin/$program" --gtest_filter="$name" || status=$?
    if [ "$status" -eq 0 ]; then passed=$((passed + 1)); else bad+=("$name"); fi
    echo "$program $name alone: $([ "$status" -eq 0 ] && echo OK || reason "$status") $((($(now_ms) - begin) / 1000)) s" >>"$folder/tests.txt"
  done
  text="$passed of ${#names[@]}"
  [ "$skipped" -eq 0 ] || text+=", $skipped skipped"
  [ "$unreached" -eq 0 ] || text+=", $unreached not reached in time"
  if [ ${#bad[@]} -gt 0 ] || [ "$unreached" -gt 0 ]; then
    end_step "FAILED: $text; see tests.txt and tests/$program.txt"
  elif [ "$passed" -eq 0 ]; then
    end_step "not run: all $skipped skipped"
  else
    end_step "passed: $text"
  fi
  for name in "${bad[@]}"; do
    if [ $((($(now_ms) - step_begin_ms) / 1000)) -gt $((limit * 4 / 3)) ]; then
      echo "$name: no time was left to examine it" >>"$folder/failures.txt"
    else
      examine "$name" "$(share 10)" "$bin/$program" --gtest_filter="$name"
    fi
  done
}
