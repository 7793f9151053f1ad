# The kernels' table of a GPU report, from what processes left of themselves by COPPICE_GPU_PROFILE; sourced by gpu_report.sh.

# write_kernels FOLDER...: one line per kernel and folder, most time first, as kernels.tsv has them; times by events.
write_kernels() {
  local of file name launches total least most registers stack shared blocks occupancy bytes tenths rate part rows=0
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
        tenths=$((tenths / launches))
        echo "| $of | ${name//|//} | $launches | $((tenths / 10)).$((tenths % 10)) | $least to $most | $registers | $stack" \
          "| $shared | $blocks | $occupancy | $rate | $part |"
      done <"$file"
    done
  done
}
kernels_head() {
  printf '\n## Kernels\n\n%s\n%s\n\n' \
    "Times on the GPU by events. GB/s: the values of the node looped over, each read or written once; % of copy: of the" \
    "$((copy_tenths / 10)).$((copy_tenths % 10)) GB/s of the rung copy. Stack and registers are a thread's, shared bytes a thread block's."
  echo "| in | kernel | launches | mean us | us | registers | stack | shared | blocks/SM | occupancy % | GB/s | % of copy |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
}
