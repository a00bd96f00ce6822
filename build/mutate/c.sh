# shellcheck shell=bash
# Sourced by build/mutate.sh: mutation testing of C sources of the CUDA hook. Mutants are made and run in a temporary
# directory, which is removed at the end.

HOOK_SOURCES=$ROOT/vgpu-cuda/src/main/c
HOOK_TESTS=$ROOT/vgpu-cuda/src/test/c
hook=$HOOK_SOURCES
# shellcheck source=vgpu-cuda/src/main/c/hook.sh
. "$HOOK_SOURCES/hook.sh"
# A test that takes longer, in seconds, has noticed the mutant.
TEST_SECONDS=30

# Sets FILES, and the tests that may notice a mutant in them: those of the file alone (unit_NAME.c), HOOK_NAMES over the
# stub driver, MEMORY_NAMES over the emulated one. The quick ones come first.
c_part() {
  case $PART in
    ledger)
      FILES=memory/ledger.c
      HOOK_NAMES='memory fork tenants-memory garbage-grant quota-fill'
      MEMORY_NAMES='plain pools managed measured measured-crowd measured-owed measured-less'
      ;;
    gate)
      FILES=turn/gate.c
      HOOK_NAMES='gate revoked resting waits-asleep seat-killed seat-late seat-rests silent stops-uncharged held-up'
      MEMORY_NAMES=''
      ;;
  esac
  [ -z "$ONLY" ] || [ "${FILES##*/}" = "${ONLY%.c}.c" ] || die 2 "the part $PART has no file '$ONLY'; it has: $FILES"
}

# compile_hook_file SOURCE OBJECT LAYER
compile_hook_file() {
  # shellcheck disable=SC2086 # a list of words
  "${CC:-cc}" $hook_flags -w -iquote "$HOOK_SOURCES/$3" -c "$1" -o "$2"
}

# link_hook LIBRARY OBJECT...
link_hook() {
  # shellcheck disable=SC2086,SC2154 # a list of words
  "${CC:-cc}" -shared -o "$@" $hook_link -Wl,--version-script="$MADE/exports.map" -Wl,--no-as-needed -ldl -lpthread
}

# Compiles the hook as it is, and the test programs, into MADE.
prepare_c() {
  local source object name architecture pids=()
  architecture=$(uname -m)
  mkdir -p "$MADE/objects" "$MADE/run" "$MADE/whole"
  hook_exports >"$MADE/exports.map"
  for source in "$HOOK_SOURCES"/*/*.c; do
    object=${source#"$HOOK_SOURCES"/}
    cp "$source" "$MADE/${source##*/}"
    compile_hook_file "$MADE/${source##*/}" "$MADE/objects/${object//\//-}.o" "${object%/*}" &
    pids+=($!)
  done
  for source in "$HOOK_SOURCES"/*/*-"$architecture".S; do
    "${CC:-cc}" -I"$HOOK_SOURCES/../shm" -c "$source" -o "$MADE/objects/${source##*/}.o" || return 1
  done
  for name in $FILES; do
    name=$(unit_of "$name")
    # shellcheck disable=SC2086 # a list of words
    "${CC:-cc}" $hook_flags -w -std=gnu11 -c "$HOOK_TESTS/$name.c" -o "$MADE/run/$name.o" || return 1
  done
  # A test of no name: the scripts only build.
  for object in "${pids[@]}"; do wait "$object" || return 1; done
  link_hook "$MADE/whole/libcuda.so.1" "$MADE"/objects/*.o || return 1
  sh "$HOOK_TESTS/run.sh" plain "$MADE/run" "$MADE/whole/libcuda.so.1" no-test || return 1
  [ -z "$MEMORY_NAMES" ] || sh "$HOOK_TESTS/run_memory.sh" plain "$MADE/run" "$MADE/whole/libcuda.so.1" no-test
}

# Prints the name of the tests of a file alone.
unit_of() {
  local name=${1##*/}
  printf 'unit_%s\n' "${name%.c}"
}

# Leaves out what fails on this machine without a change, for example because it is busy.
check_tests() {
  local name kept=''
  for name in $HOOK_NAMES; do
    if passes_hook "$MADE/whole" "$name"; then kept="$kept $name"; else left_out "$name"; fi
  done
  HOOK_NAMES=$kept kept=''
  for name in $MEMORY_NAMES; do
    if passes_memory "$MADE/whole" "$name"; then kept="$kept $name"; else left_out "$name"; fi
  done
  MEMORY_NAMES=$kept
}

left_out() {
  cat "$MADE/whole/output"
  echo "the test $1 fails without a change, and is left out"
}

# run_c_test PLACE PROGRAM DRIVER NAME: one test with the hook in PLACE. The test and all that it starts are ended with
# this shell.
run_c_test() {
  TEST=''
  TEST_DIR=$1 LD_LIBRARY_PATH=$1 STUB_NVML=$MADE/run/libnvml_stub.so VGPU_TEST_SCALE=25 \
    VGPU_TEST_SEED=${VGPU_TEST_SEED:-$MUTATE_SEED} \
    timeout -k 1 $TEST_SECONDS "$MADE/run/$2" "$1/libcuda.so.1" "$3" "$4" >"$1/output" 2>&1 &
  TEST=$!
  wait $TEST
}

# Once may be the machine's load: a test must fail twice.
passes_hook() {
  run_c_test "$1" test_hook "$MADE/run/libcuda_stub.so" "$2" ||
    run_c_test "$1" test_hook "$MADE/run/libcuda_stub.so" "$2"
}

passes_memory() {
  run_c_test "$1" test_memory "$EMULATED" "$2" || run_c_test "$1" test_memory "$EMULATED" "$2"
}

# noticed_alone PLACE FILE OBJECT: whether the tests of the file alone notice the mutant.
noticed_alone() {
  BY=$(unit_of "$2")
  "${CC:-cc}" -pthread "$MADE/run/$BY.o" "$1/$3" -o "$1/unit" || return 1
  ! timeout -k 1 $TEST_SECONDS "$1/unit" >"$1/output" 2>&1
}

# noticed PLACE: sets BY to the first test that fails with the hook in PLACE.
noticed() {
  local name
  for name in $HOOK_NAMES; do
    BY=$name
    passes_hook "$1" "$name" || return 0
  done
  for name in $MEMORY_NAMES; do
    BY=$name
    passes_memory "$1" "$name" || return 0
  done
  return 1
}

# try_mutant PLACE FILE LINE COLUMN LENGTH OPERATOR TEXT: adds its result to MADE/results.
try_mutant() {
  local place=$1 file=$2 state object=$2
  object=${object//\//-}.o
  awk -v line="$3" -v column="$4" -v length_="$5" -v text="$7" -f "$ROOT/build/mutate/operators.awk" \
    "$HOOK_SOURCES/$file" >"$place/${file##*/}"
  BY=-
  if ! compile_hook_file "$place/${file##*/}" "$place/$object" "${file%/*}" 2>/dev/null; then
    state=invalid
  elif cmp -s "$place/$object" "$MADE/objects/$object"; then
    state=equivalent
  elif noticed_alone "$place" "$file" "$object"; then
    state=killed
  elif ! link_mutant "$place" "$object"; then
    state=invalid
  elif noticed "$place"; then
    state=killed
  else
    state=survived BY=-
  fi
  find "$place" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
  printf '%s:%s %s %s %s %s\n' "$file" "$3" "$state" "$6" "$4:$(cut_line "$file" "$3" "$4" "$5")->${7:-nothing}" "$BY" |
    tee -a "$MADE/results"
}

# What is replaced, without blanks.
cut_line() {
  awk -v line="$2" -v column="$3" -v count="$4" 'NR == line { print substr($0, column, count) }' "$HOOK_SOURCES/$1" |
    tr -d ' '
}

link_mutant() {
  local object objects=()
  for object in "$MADE"/objects/*.o; do
    if [ "${object##*/}" = "$2" ]; then objects+=("$1/$2"); else objects+=("$object"); fi
  done
  link_hook "$1/libcuda.so.1" "${objects[@]}"
}

# work_off NUMBER: every WORKERS-th mutant.
work_off() {
  local place=$MADE/worker$1 number=0 row fields
  trap '[ -z "${TEST-}" ] || kill "$TEST" 2>/dev/null; exit 143' TERM
  mkdir -p "$place"
  while IFS= read -r row <&3; do
    number=$((number + 1))
    [ $((number % WORKERS)) -eq "$1" ] || continue
    IFS=$'\t' read -r -a fields <<<"$row"
    try_mutant "$place" "${fields[0]}" "${fields[1]}" "${fields[2]}" "${fields[3]}" "${fields[4]}" "${fields[5]-}"
  done 3<"$MADE/mutants"
}

run_mutants() {
  local number pids=()
  trap 'kill "${pids[@]}" 2>/dev/null; wait; exit 143' TERM
  ulimit -c 0
  prepare_c || return 1
  for number in $FILES; do
    if noticed_alone "$MADE/whole" "$number" "../objects/${number//\//-}.o"; then
      cat "$MADE/whole/output"
      echo "$BY fails without a change"
      return 1
    fi
  done
  check_tests
  for ((number = 0; number < WORKERS; number++)); do
    work_off "$number" &
    pids+=($!)
  done
  wait
}

c_progress() {
  [ ! -r "$MADE/results" ] || printf '%d of %d\n' "$(wc -l <"$MADE/results")" "$(wc -l <"$MADE/mutants")"
}

mutate_c() {
  local file
  c_part
  mkdir -p "$MUTATE_WORK"
  # The tests wait more than they work.
  WORKERS=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) * 2))
  # Short: the tests' sockets are in it, and such a path has at most 107 bytes.
  MADE=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-mutate.XXXXXX") || exit 1
  trap 'rm -rf "$MADE"' EXIT
  EMULATED=$MADE/run/emulator/classes/META-INF/native/linux-$(uname -m)/libcuda.so.1
  for file in $FILES; do
    awk -f "$ROOT/build/mutate/operators.awk" "$HOOK_SOURCES/$file" | sed "s|^|$file\t|"
  done >"$MADE/mutants"
  : >"$MADE/results"
  if ! run_logged "mutating $PART" c_progress run_mutants; then
    say "the mutants of $PART could not be tried; the end of $LOG:"
    tail -n 8 "$LOG" | sed 's/^/  /' >&2
    exit 1
  fi
  grep -v ' invalid ' "$MADE/results" | sort -t: -k1,1 -k2,2n >"$MUTATE_WORK/$RESULT.all"
}
