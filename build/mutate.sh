# shellcheck shell=bash
# Sourced by ./vgpu: mutation testing. It changes a part's code in one place at a time, and runs the part's tests
# against each change. A change that no test notices shows what is not tested.

# shellcheck source=build/mutate/c.sh
. "$ROOT/build/mutate/c.sh"

MUTATE_WORK=$ROOT/target/mutate
MUTATE_PARTS='api, book, schedule, turn, reclaim, metering, mig, ledger, gate'
# Properties take so many tries, from one seed, so that a run repeats.
MUTATE_TRIES=20
MUTATE_SEED=20

mutate_help() {
  cat <<EOF2
Usage: ./vgpu mutate PART [--class NAME,...]

Changes the code of a part in one place at a time (a mutant), runs the tests, and counts the mutants that a test
notices (killed). Those that no test notices are listed in target/mutate/PART.txt. Nothing in the checkout is changed.

Parts: $MUTATE_PARTS.
  api                             vgpu-api: value types, requests and settings
  book, schedule, turn, reclaim, metering
                                  the packages of vgpu-core, with the tests of all its packages; schedule with
                                  those of vgpu-simulation
  mig                             the planner of MIG instances (vgpu-nvml)
  ledger, gate                    the CUDA hook's memory ledger and its gate, in C

      --class NAME,...  Only these classes of a Java part, or this file of a C part (ledger.c).
  -h, --help            Show this help.

Java mutants are made by PIT. Properties take at most $MUTATE_TRIES tries, from the seed in VGPU_TEST_SEED (default:
$MUTATE_SEED). Tests that start processes, or run long, are left out. Exit codes: 0 done, 1 failed, 2 wrong usage, 69
this machine lacks what it needs.
EOF2
}

# mutate_java MODULE CLASSES TESTS WITHOUT: PIT over the classes.
mutate_java() {
  local module=$1 classes=$2 tests=$3 without=$4 csv=$ROOT/$1/target/pit-reports/mutations.csv
  shift 4
  [ -z "$ONLY" ] || classes=$(classes_of "${classes%.\*}")
  rm -f "$csv"
  mkdir -p "$MUTATE_WORK"
  lock_build
  if ! VGPU_TEST_SEED=${VGPU_TEST_SEED:-$MUTATE_SEED} maven "mutating $PART" -Dvgpu.quick -Dmaven.test.skip=false \
    -pl "$module" -am "-DtargetClasses=$classes" "-DexcludedClasses=dev.vgpu.testing.*,*Test,*Properties" \
    "-DtargetTests=$tests*Test,$tests*Properties" "-DexcludedTestClasses=*IT,*.ArchitectureTest,$without" \
    "-DjvmArgs=-Dvgpu.mostTries=$MUTATE_TRIES,-Djqwik.database=,-Djunit.jupiter.execution.timeout.default=60s" \
    "$@" test-compile org.pitest:pitest-maven:mutationCoverage; then
    say "the mutants of $PART could not be tried:"
    explain_failure
    exit 1
  fi
  unlock_build
  [ -r "$csv" ] || die 1 "PIT found nothing to change in $classes (log: $LOG)"
  java_results "$csv" | sort -t: -k1,1 -k2,2n >"$MUTATE_WORK/$RESULT.all"
}

# classes_of PACKAGE: prints those that --class names, and what is nested in them.
classes_of() {
  local name list=''
  for name in ${ONLY//,/ }; do list="$list,$1.$name,$1.$name\$*"; done
  printf '%s\n' "${list#,}"
}

# Prints "FILE:LINE STATE OPERATOR METHOD" for each row of PIT's report.
java_results() {
  awk -F, '
    $6 == "NON_VIABLE" { next }
    {
      state = $6 == "SURVIVED" ? "survived" : $6 == "NO_COVERAGE" ? "uncovered" : $6 == "TIMED_OUT" ? "late" : "killed"
      operator = $3; sub(/.*\./, "", operator); sub(/Mutator$/, "", operator)
      print $1 ":" $5, state, operator, $4
    }' "$1"
}

# Writes the survivors to PART.txt, and prints the sum.
report_mutants() {
  local all=$MUTATE_WORK/$RESULT.all text=$MUTATE_WORK/$RESULT.txt sum
  sum=$(awk '
    { count[$2]++ }
    END {
      tried = NR - count["equivalent"]
      killed = count["killed"] + count["late"]
      printf "%d mutants, %d killed, %.1f %%", tried, killed, tried ? 100 * killed / tried : 0
      printf " (%d survived, %d that no test reaches", count["survived"], count["uncovered"]
      if (count["late"]) printf "; %d of the killed by the time limit", count["late"]
      if (count["equivalent"]) printf "; %d that compile to the same code left out", count["equivalent"]
      print ")"
    }' "$all")
  {
    printf '# %s: %s\n' "$RESULT" "$sum"
    printf '# file:line state operator method\n'
    grep -E ' (survived|uncovered) ' "$all"
  } >"$text"
  printf '%s: %s\n' "$RESULT" "$sum"
  say "the survivors: ${text#"$ROOT/"}"
}

mutate_part() {
  local slow='*.GateStressTest,*.VirtualThreadsTest,*.ProcessIdentityTest,*.MissionControlTest,*.HostileClientsTest'
  slow=$slow,'*.MuteSeatTest,*.GpuLocksTest,*.SeatWatchTest,*.SeatThreadTest,*.ListenersTest,*.WorkersTest'
  case $PART in
    api) mutate_java vgpu-api 'dev.vgpu.*' dev.vgpu. none ;;
    # The scheduler's tests run it in virtual time.
    schedule) mutate_java vgpu-simulation "dev.vgpu.core.$PART.*" dev.vgpu.core. "$slow" -DcrossModule=true ;;
    book | turn | reclaim | metering) mutate_java vgpu-core "dev.vgpu.core.$PART.*" dev.vgpu.core. "$slow" ;;
    mig) mutate_java vgpu-nvml 'dev.vgpu.nvml.mig.plan.*' dev.vgpu.nvml.mig.plan. none ;;
    ledger | gate) mutate_c ;;
  esac
}

command_mutate() {
  PART=${1-} ONLY=''
  case " $* " in
    *' -h '* | *' --help '* | '  ')
      mutate_help
      [ -n "$PART" ]
      exit $((2 * $?))
      ;;
  esac
  case $PART in
    *[!a-z]*) die 2 "there is no part '$PART'; the parts are: $MUTATE_PARTS" ;;
  esac
  case " ${MUTATE_PARTS//,/} " in
    *" $PART "*) ;;
    *) die 2 "there is no part '$PART'; the parts are: $MUTATE_PARTS" ;;
  esac
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      --class)
        case ${2-} in '' | *[!A-Za-z0-9_.,]*) die 2 "--class needs names of classes, or of a C file" ;; esac
        ONLY=$2
        shift
        ;;
      *) die 2 "./vgpu mutate does not know '$1'; see ./vgpu mutate --help" ;;
    esac
    shift
  done
  RESULT=$PART${ONLY:+-$ONLY}
  cd "$ROOT" || exit 1
  LOG=$ROOT/target/vgpu-mutate-$PART.log
  require_machine
  start_log
  mutate_part
  report_mutants
  exit 0
}
