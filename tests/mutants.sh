#!/usr/bin/env bash
# tests/mutants.sh [K/N]   mutants of core's decision rooms, or every Nth of them from the Kth on, and what catches them
# First core's own tests judge each (.cargo/mutants.toml); what survives them is given to the scenarios, the races and the hunt's first
# seeds. Missed mutants are in $CARGO_TARGET_DIR/mutants/mutants.out/missed.txt, to be looked at one by one. Hours for all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
shard="${1:-0/1}"
out="${CARGO_TARGET_DIR:-$PWD/target}/mutants"
cargo mutants --version >/dev/null 2>&1 || cargo install --locked --quiet --debug cargo-mutants@27.1.0
mkdir -p "$out"
# Each mutant is built in a copy of the tree with a target directory of its own.
unset CARGO_TARGET_DIR
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
mutants() { cargo mutants -p nodefold-core --shard "$shard" --sharding round-robin --no-shuffle -o "$out" "$@"; }
files=()
for room in allocate volumes actuate publish observe; do files+=(-f "core/src/$room/**"); done
# cargo mutants ends with 2 where mutants were missed, with 3 where some ran into the time limit, which catches them too.
mutants || [ $? = 2 ] || [ $? = 3 ]
mutants --iterate --no-config "${files[@]}" --test-package nodefold-harness --test-package nodefold \
  --minimum-test-timeout 300 -- --test swarm --test races || [ $? = 2 ] || [ $? = 3 ]
echo "missed by all: $(wc -l <"$out/mutants.out/missed.txt")"
