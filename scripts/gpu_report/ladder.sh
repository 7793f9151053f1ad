# The ladder of a GPU report (tests/apps/ladder): each rung a process of its own; sourced by gpu_report.sh.

declare -A rung_outcome=()
copy_tenths=0 # GB/s that the device copies, times 10

climb_rung() {
  local rung=$1 need log=$folder/ladder/$1.txt status=0 words
  shift
  begin_step "ladder: $rung"
  for need; do
    [ "${rung_outcome[$need]:-}" = passed ] && continue
    rung_outcome[$rung]="not run"
    end_step "not run: needs $need"
    return 0
  done
  COPPICE_GPU_PROFILE=$folder/profile/$rung limited "$rung_seconds" "$log" "$bin/coppice-gpu-ladder" "$rung" "$device" || status=$?
  words=$(last_line "$log")
  words=${words#"$rung: "}
  case $status in
    0) rung_outcome[$rung]=passed && end_step "passed: $words" ;;
    77) rung_outcome[$rung]="not run" && end_step "${words:-not run}" ;;
    125) rung_outcome[$rung]="not run" && end_step "not run: no time was left" ;;
    124 | 137) rung_outcome[$rung]=hangs && end_step "FAILED: hangs: no answer within $rung_seconds s" ;;
    1 | 3) rung_outcome[$rung]=failed && end_step "FAILED: $words" ;;
    *) rung_outcome[$rung]=failed && end_step "FAILED: $(reason "$status"); see ladder/$rung.txt" ;;
  esac
  case ${rung_outcome[$rung]} in
    failed) examine "ladder-$rung" "$rung_seconds" "$bin/coppice-gpu-ladder" "$rung" "$device" ;;
    hangs) examine "ladder-$rung" $(((rung_seconds + 1) / 2)) "$bin/coppice-gpu-ladder" "$rung" "$device" ;;
  esac
  if [ "$rung" = copy ] && [[ $words =~ ^([0-9]+)\.([0-9])\ GB/s ]]; then
    copy_tenths=${BASH_REMATCH[1]}${BASH_REMATCH[2]}
  fi
}

climb_ladder() {
  local rung needs rungs status=0
  if [ ! -x "$bin/coppice-gpu-ladder" ]; then
    begin_step ladder
    end_step "not run: built without tests"
    return 0
  fi
  mkdir -p "$folder/ladder"
  begin_step "ladder: compile"
  limited "$(share 60)" "$folder/ladder/compile.txt" "$bin/coppice-gpu-ladder" compile "$device" || status=$?
  if [ "$status" -eq 0 ]; then
    end_step "passed: the kernels of all rungs"
  else
    end_step "FAILED: $(reason "$status"): $(last_line "$folder/ladder/compile.txt")"
  fi
  mapfile -t rungs < <("$bin/coppice-gpu-ladder" --list)
  for rung in "${rungs[@]}"; do
    read -r rung needs <<<"$rung"
    # shellcheck disable=SC2086 # names without blanks
    climb_rung "$rung" $needs
  done
}
