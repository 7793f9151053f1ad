# The kernels' table of a GPU report, from what processes left of themselves by COPPICE_GPU_PROFILE, and the benchmark's rows, both
# beside what they should be (predicted.tsv, docs/nvptx.md); sourced by gpu_report.sh.

declare -A predicted_us=() predicted_row=() # by kernel, in tenths of a microsecond; by row of the benchmark
predicted_for=                              # the card that these are for, if any

# read_predictions CARD: of the two cards that are known. Others with such names have fewer multiprocessors or other memory.
read_predictions() {
  local what name unit units h100 h200 bound value
  case $1 in
    *PCIe* | *NVL* | *GH200*) ;;
    *H100*) predicted_for=H100 ;;
    *H200*) predicted_for=H200 ;;
  esac
  [ -n "$predicted_for" ] && [ -r "$here/gpu_report/predicted.tsv" ] || return 0
  while IFS=$'\t' read -r what name unit units h100 h200 bound; do
    value=$h100
    [ "$predicted_for" = H100 ] || value=$h200
    case $what in
      kernel) predicted_us[$name]=$((10#${value/./})) ;;
      row) predicted_row[$name]=$value ;;
    esac
  done <"$here/gpu_report/predicted.tsv"
}
# predicted_tenths FOLDER NAME: a launch of the benchmark's; of a recording, all of its launches. Nothing where that is not known.
predicted_tenths() {
  local names=$2 name sum=0
  [ "$1" = bench ] && [ -n "$predicted_for" ] || return 0
  if [[ $names =~ ^a\ recording\ of\ [0-9]+\ launch(es)?\ \((.*)\)$ ]]; then names=${BASH_REMATCH[2]}; fi
  while [ -n "$names" ]; do
    name=${names%%, *}
    [ -n "${predicted_us[$name]:-}" ] || return 0
    sum=$((sum + predicted_us[$name]))
    [ "$name" != "$names" ] || break
    names=${names#*, }
  done
  echo "$sum"
}
# hundredths A B: their ratio, with two decimals.
hundredths() {
  local ratio=$((($1 * 100 + $2 / 2) / $2)) decimals
  printf -v decimals %02d $((ratio % 100))
  echo "$((ratio / 100)).$decimals"
}

# write_kernels FOLDER...: one line per kernel and folder, most time first, as kernels.tsv has them; times by events.
write_kernels() {
  local of file name launches total least most registers stack shared blocks occupancy bytes tenths rate part predicted ratio rows=0
  for of; do
    for file in "$folder/profile/$of"/kernels*.tsv; do
      [ -r "$file" ] || continue
      while IFS=$'\t' read -r name launches total least most registers stack shared blocks occupancy bytes; do
        [ "$name" != kernel ] || continue
        [ $((rows++)) -gt 0 ] || kernels_head
        tenths=${total/./} rate=- part=-
        if [ "$bytes" -gt 0 ] && [ "$tenths" -gt 0 ]; then
          rate=$((bytes / tenths / 10)) # tenths of a GB/s, of bytes in tenths of a microsecond
          [ "$copy_tenths" -eq 0 ] || part=$((100 * rate / copy_tenths))
          rate=$((rate / 10)).$((rate % 10))
        fi
        tenths=$((tenths / launches)) predicted=$(predicted_tenths "$of" "$name") ratio=-
        if [ -n "$predicted" ]; then
          ratio=$(hundredths "$tenths" "$predicted")
          predicted=$((predicted / 10)).$((predicted % 10))
        fi
        echo "| $of | ${name//|//} | $launches | $((tenths / 10)).$((tenths % 10)) | $least to $most | $registers | $stack" \
          "| $shared | $blocks | $occupancy | $rate | $part | ${predicted:--} | $ratio |"
      done <"$file"
    done
  done
}
kernels_head() {
  printf '\n## Kernels\n\n%s\n%s\n%s\n\n' \
    "Times on the GPU by events. GB/s: the values of the node looped over, each read or written once; % of copy: of the" \
    "$((copy_tenths / 10)).$((copy_tenths % 10)) GB/s of the rung copy. Stack and registers are a thread's, shared bytes a thread block's." \
    "Predicted: a launch's mean in the benchmark on an ${predicted_for:-H100 or H200} by the cost model (docs/nvptx.md)."
  echo "| in | kernel | launches | mean us | us | registers | stack | shared | blocks/SM | occupancy % | GB/s | % of copy | predicted us | measured / predicted |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
}

# write_rows BENCH.JSON: the rows that are predicted.
write_rows() {
  local line name measured wanted a b rows=0 LC_ALL=C
  [ -n "$predicted_for" ] && [ -r "$1" ] || return 0
  while IFS= read -r line; do
    [[ $line =~ \"name\":\ \"([^\"]+)\",\ \"ours\":\ ([0-9.e+-]+), ]] || continue
    name=${BASH_REMATCH[1]} measured=${BASH_REMATCH[2]} wanted=${predicted_row[${BASH_REMATCH[1]}]:-}
    [ -n "$wanted" ] && [[ $line =~ \"unit\":\ \"([^\"]+)\" ]] || continue
    [ $((rows++)) -gt 0 ] || rows_head
    printf -v a %.6f "$measured"
    printf -v b %.6f "$wanted"
    echo "| $name | ${BASH_REMATCH[1]} | $measured | $wanted | $(hundredths $((10#${a/./})) $((10#${b/./}))) |"
  done <"$1"
}
rows_head() {
  printf '\n## Rows of the benchmark beside the cost model\n\n%s\n\n' "Predicted for an $predicted_for by docs/nvptx.md."
  echo "| row | unit | measured | predicted | measured / predicted |"
  echo "|---|---|---|---|---|"
}
