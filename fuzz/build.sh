#!/bin/bash -eu
# Builds all targets as OSS-Fuzz wants them: programs, seed corpora, dictionaries and options in $OUT. Its base-builder-rust image
# sets SRC, OUT, SANITIZER and RUSTFLAGS; elsewhere OUT alone will do:  OUT=/tmp/out fuzz/build.sh
cd "$(dirname "$0")"
: "${OUT:?where the programs go}"
mkdir -p "$OUT"

target_dir="${CARGO_TARGET_DIR:-$PWD/../target}/fuzz"
cargo +nightly fuzz build --fuzz-dir . --sanitizer "${SANITIZER:-none}" --target-dir "$target_dir"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')

for program in fuzz_targets/*.rs; do
  target=$(basename "$program" .rs)
  cp "$target_dir/$host/release/$target" "$OUT/"
  (cd "corpus/$target" && python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" ./*)
  # As fuzz/run.sh runs them.
  printf '[libfuzzer]\nlen_control = 0\nmax_len = 4096\ntimeout = 30\n' >"$OUT/$target.options"
  case "$target" in
    manifest | importers | patch | request)
      cp words.dict "$OUT/$target.dict"
      ;;
  esac
done
