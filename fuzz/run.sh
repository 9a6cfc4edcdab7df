#!/usr/bin/env bash
# fuzz/run.sh                        each target for its fixed number of runs, from its kept corpus, the same each time (./test)
# fuzz/run.sh --seconds S [TARGET..] each target, or these, for so long; what is new goes to $CARGO_TARGET_DIR/fuzz-corpus
# fuzz/run.sh --cmin [TARGET..]      the kept corpora made anew from themselves and from what is new, as small as they get
# A find ends it: the input is under $CARGO_TARGET_DIR/fuzz-artifacts. Needs a nightly toolchain and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"

# What a target may cost in ./test; each is some five to ten seconds.
declare -A runs=(
  [lifecycle]=200 [events]=1500 [dynamic_request]=800 [manifest]=10000
  [journal]=5000 [replay_equivalence]=500 [importers]=2000 [patch]=8000 [request]=4000
)
declare -A longest=([importers]=65536 [manifest]=8192 [request]=8192)

mode=runs seconds=0
case "${1:-}" in
  --seconds) mode=seconds seconds=$2; shift 2 ;;
  --cmin) mode=cmin; shift ;;
  -*) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac
targets=("$@")
[ $# -gt 0 ] || targets=(lifecycle events dynamic_request manifest journal replay_equivalence importers patch request)

target_dir="${CARGO_TARGET_DIR:-$PWD/../target}"
# No address sanitizer: nodefold forbids unsafe code here, and runs several times as fast without (harness sheet §5).
cargo +nightly fuzz build --fuzz-dir . --sanitizer none --target-dir "$target_dir/fuzz"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')

for target in "${targets[@]}"; do
  program="$target_dir/fuzz/$host/release/$target"
  # Long inputs from the start, a fixed seed, no reload of a corpus that others write to; a hang or a gigabyte is a find.
  flags=(-len_control=0 "-max_len=${longest[$target]:-4096}" -seed=1 -reload=0 -timeout=30 -rss_limit_mb=1024)
  flags+=("-artifact_prefix=$target_dir/fuzz-artifacts/$target-" -print_final_stats=1)
  case "$target" in manifest | importers | patch | request) flags+=(-dict=words.dict) ;; esac
  found="$target_dir/fuzz-corpus/$target"
  mkdir -p "$target_dir/fuzz-artifacts" "$found" "corpus/$target"
  log="$target_dir/fuzz-artifacts/$target.log"
  case "$mode" in
    runs)
      # New inputs are for nobody: the next run is to be the same.
      scratch=$(mktemp -d)
      "$program" "${flags[@]}" "-runs=${runs[$target]}" "$scratch" "corpus/$target" >"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
      rm -r "$scratch"
      ;;
    seconds)
      "$program" "${flags[@]}" "-max_total_time=$seconds" "$found" "corpus/$target" >"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
      ;;
    cmin)
      scratch=$(mktemp -d)
      "$program" "${flags[@]}" -merge=1 "$scratch" "corpus/$target" "$found" >"$log" 2>&1
      rm -r "corpus/$target"
      mv "$scratch" "corpus/$target"
      chmod 755 "corpus/$target"
      du -sb "corpus/$target"
      continue
      ;;
  esac
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  a_second=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  echo "$target: $executed executions, $a_second a second, nothing found"
done
