# shellcheck shell=bash
# Sourced by ./vgpu: the commands that work on the checkout, above all the gate that every change passes.

# shellcheck source=build/site.sh
. "$ROOT/build/site.sh"
# shellcheck source=build/prometheus.sh
. "$ROOT/build/prometheus.sh"
# shellcheck source=build/two-builds.sh
. "$ROOT/build/two-builds.sh"
# shellcheck source=build/kmod.sh
. "$ROOT/build/kmod.sh"

PUBLISHED="vgpu-bom,vgpu-api,vgpu-core,vgpu-fleet,vgpu-nvml,vgpu-cuda,vgpu-kmod,vgpu-emulator,\
vgpu-dashboard,vgpu-micrometer,vgpu-spring-boot-autoconfigure,vgpu-spring-boot-starter,vgpu-onnxruntime,vgpu-djl"
# The checks that the compile stage has already run.
CHECKED='-Dspotless.check.skip -Dcheckstyle.skip -Dforbiddenapis.skip -Denforcer.skip'
STAGES=9

# One Maven run of a command; ends with what went wrong.
maven_or_die() {
  start_log
  if ! maven "$@"; then
    say "$1 failed:"
    explain_failure
    exit 1
  fi
}

command_install() {
  require_machine
  lock_build
  maven_or_die 'installing the published modules' -Dvgpu.quick -pl $PUBLISHED -am install
  unlock_build
  say "installed vgpu-parent, ${PUBLISHED//,/, } into the local Maven repository"
}

command_format() {
  require_machine
  lock_build
  maven_or_die 'formatting' -q spotless:apply
  install_clang
  sh build/format-c.sh || die $? "the C sources were NOT formatted"
  unlock_build
}

command_clean() {
  require_machine
  lock_build
  rm -f "$STAMP"
  maven_or_die 'cleaning' -q clean
  unlock_build
}

command_api() {
  build_stale
  require_java
  "$ROOT/build/api-listing.sh" "$JDK" "$(api_jar)" >vgpu-api/api.txt.new || exit 1
  mv vgpu-api/api.txt.new vgpu-api/api.txt
  say "wrote vgpu-api/api.txt"
}

api_jar() {
  local jar
  for jar in vgpu-api/target/vgpu-api-*.jar; do printf '%s\n' "$jar"; done | head -n 1
}

# The newest JDK of at least 21, for the tests of what only a newer JDK has.
find_newer_jdk() {
  local name home version best=0
  NEWER_JDK=${VGPU_NEWER_JDK-}
  [ -z "$NEWER_JDK" ] || return 0
  NEWER_JDK=$(installed_jdk 21 last)
  [ -z "$NEWER_JDK" ] || best=$(java_version_in "$NEWER_JDK")
  for name in $(compgen -A variable JAVA_HOME_ || true) JDK; do
    home=${!name}
    if [ -x "$home/bin/javac" ] && version=$(java_version_in "$home") && [ "$version" -ge 21 ] &&
      [ "$version" -gt "$best" ]; then
      NEWER_JDK=$home best=$version
    fi
  done
}

# Follows LOG and prints a line for each test class as it ends.
stream_tests() {
  tail -n +1 -f "$LOG" 2>/dev/null | awk '
    /^\[[A-Z]+\] .*Tests run: .* -- in / || /^\[[A-Z]+\] .*Tests run: .* - in / {
      line = $0; sub(/.*Tests run: /, "", line)
      n = split(line, part, /, /)
      name = line; sub(/.* in /, "", name)
      time = line; sub(/.*Time elapsed: /, "", time); sub(/ s.*/, "", time)
      failed = 0; skipped = 0
      for (i = 2; i <= n; i++) {
        split(part[i], pair, /: /)
        if (pair[1] == "Failures" || pair[1] == "Errors") failed += pair[2]
        if (pair[1] == "Skipped") skipped += pair[2]
      }
      text = sprintf("  %-60s %4d passed", name, part[1] - failed - skipped)
      if (failed) text = text sprintf(", %d FAILED", failed)
      if (skipped) text = text sprintf(", %d SKIPPED", skipped)
      printf "%s%s, %s s\n", CLEAR, text, time
      fflush()
    }' CLEAR="$(is_terminal && printf '\r\033[K')" >&2
}

# stage <name> <function>: runs one stage; ends the gate at the first that fails.
stage() {
  local start=$SECONDS
  STAGE=$((STAGE + 1))
  STAGE_NAME=$1
  printf 'vgpu: [%d/%d] %s\n' "$STAGE" "$STAGES" "$1" >&2
  if ! "$2"; then
    clear_line
    finish_gate 1
  fi
  printf 'vgpu: [%d/%d] %s: ok, %d s\n' "$STAGE" "$STAGES" "$1" "$((SECONDS - start))" >&2
}

# One Maven run of a stage, appended to the gate's log.
stage_maven() {
  : >"$LOG"
  if maven "$@"; then
    cat "$LOG" >>"$GATE_LOG"
    return 0
  fi
  cat "$LOG" >>"$GATE_LOG"
  explain_failure
  return 1
}

# The same with a line for each test class.
stage_tests() {
  local streamer rc=0
  : >"$LOG"
  set -m
  stream_tests 9>&- &
  streamer=$!
  set +m
  STREAMER=$streamer
  stage_maven "$@" || rc=$?
  sleep 1
  kill -TERM -- "-$streamer" 2>/dev/null
  wait "$streamer" 2>/dev/null
  STREAMER=
  count_tests
  [ $rc -eq 0 ] && [ "$SKIPPED" -eq 0 ]
}

# The C sources are in the format of one release of clang-format, which these systems have as a package.
install_clang() {
  local package missing=
  # shellcheck source=build/clang.sh
  . "$ROOT/build/clang.sh"
  for package in "clang-format-$clang_release" "clang-tidy-$clang_release"; do
    command -v "$package" >/dev/null 2>&1 || missing="$missing $package"
  done
  case $(os_release UBUNTU_CODENAME VERSION_CODENAME) in
    # shellcheck disable=SC2086 # a list of words
    bookworm | jammy | noble) [ -z "$missing" ] || ! may_install || apt_install $missing ;;
  esac
}

check_c_format() {
  local rc=0
  install_clang
  : >"$LOG"
  sh build/format-c.sh --check >"$LOG" 2>&1 || rc=$?
  cat "$LOG" >>"$GATE_LOG"
  if [ $rc -eq 0 ]; then
    run_logged 'clang-tidy' cat_nothing sh build/tidy-c.sh || rc=$?
    cat "$LOG" >>"$GATE_LOG"
    [ $rc -ne 0 ] || return 0
    if [ $rc -ne "$EX_UNAVAILABLE" ]; then
      say "clang-tidy found:"
      grep 'error: ' "$LOG" | sed "s|$ROOT/|  |" >&2
      return 1
    fi
  fi
  if [ $rc -eq "$EX_UNAVAILABLE" ]; then
    cat "$LOG" >&2
    say "the C sources were NOT checked by clang-format and clang-tidy"
    return 0
  fi
  say "these files are not in the format; ./vgpu format puts them right:"
  sed 's/^/  /' "$LOG" >&2
  return 1
}

check_c_length() {
  local long
  long=$(find build samples vgpu-* -name target -prune -o -name '*.[ch]' \
    -exec awk 'FNR == 501 { print "  " FILENAME }' {} +)
  [ -n "$long" ] || return 0
  say "these files have more than 500 lines, the limit for Java and C:"
  printf '%s\n' "$long" >&2
  return 1
}

check_format() {
  local rc=0 files
  check_site || return 1
  check_c_length || return 1
  : >"$LOG"
  maven 'format' -q -T1C --fail-at-end spotless:check || rc=$?
  cat "$LOG" >>"$GATE_LOG"
  if [ $rc -eq 0 ]; then
    check_c_format
    return
  fi
  files=$(sed -n 's/^\(\[ERROR\]\)* *\(src\/.*\.java\)$/  \2/p' "$LOG" | sort -u)
  if [ -n "$files" ]; then
    say "these files are not in the format; ./vgpu format puts them right:"
    printf '%s\n' "$files" >&2
  else
    explain_failure
  fi
  return 1
}

compile_with_checks() {
  local inputs
  inputs=$(list_inputs)
  rm -f "$STAMP"
  stage_maven 'compile with checks' -T1C -DskipTests -Dspotless.check.skip clean package || return 1
  printf '%s\n' "$inputs" >"$STAMP"
}

# Two modules at a time: many tests wait. What tells by the clock is either in virtual time or bears a busy machine.
run_unit_tests() {
  # shellcheck disable=SC2086 # lists of words
  stage_tests 'unit and property tests' -T2 $CHECKED ${NEWER_JDK:+"-Dvgpu.newerJdk=$NEWER_JDK"} --fail-at-end package
}

# Most of their processor time is that of JVMs that start: these map the command's classes from ./vgpu's own archive.
run_system_tests() {
  IFS= read -r CLASSPATH_LINE <vgpu-cli/target/classpath.txt || return 1
  find_archive
  # shellcheck disable=SC2086 # lists of words
  stage_tests 'system tests' $CHECKED ${NEWER_JDK:+"-Dvgpu.newerJdk=$NEWER_JDK"} -Dvgpu.skipUnitTests \
    ${ARCHIVE_OPTION:+"-Dvgpu.archive=$ARCHIVE"} --fail-at-end verify
}

run_outside_project() {
  stage_maven 'installing the published modules' -DskipTests -Dvgpu.quick -pl $PUBLISHED -am install || return 1
  : >"$LOG"
  if ! run_logged 'a project outside the checkout' cat_nothing \
    env JAVA_HOME="$JDK" "$ROOT/integration/outside-project.sh"; then
    cat "$LOG" >>"$GATE_LOG"
    sed 's/^/  /' "$LOG" | tail -n 30 >&2
    return 1
  fi
  cat "$LOG" >>"$GATE_LOG"
}

cat_nothing() {
  cat >/dev/null
}

# The C tests of what was built for aarch64, under QEMU, where a cross compiler and QEMU are.
run_aarch64_tests() {
  local work rc=0
  if [ "$(uname -m)" != x86_64 ] || ! command -v aarch64-linux-gnu-gcc >/dev/null ||
    ! command -v qemu-aarch64 >/dev/null; then
    say "no aarch64-linux-gnu-gcc, or no qemu-aarch64" \
      "(Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user):" \
      "what is for aarch64 was NOT checked"
    return 0
  fi
  work=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-aarch64.XXXXXX") || return 1
  : >"$LOG"
  run_logged 'aarch64 under QEMU' cat_nothing sh build/aarch64/test.sh "$work" || rc=1
  cat "$LOG" >>"$GATE_LOG"
  rm -rf "$work"
  [ $rc -eq 0 ] || sed 's/^/  /' "$LOG" | tail -n 60 >&2
  return $rc
}

# ./vgpu kmod test --module-only with a shorter storm, where QEMU and Debian's packages are or can be had. A JVM in the
# virtual machine is left out: the pool's own limits of time end vgpu run there if this machine is busy. The virtual
# machine is ended 200 s after its start, however long its packages and the compiler took, and the gate says what is
# left out.
run_module_tests() {
  local rc=0 KMOD_MODULE_ONLY=1 KMOD_STORM=2 KMOD_CYCLES=3 KMOD_MOST=200
  check_kmod || rc=$?
  if [ $rc -eq "$EX_UNAVAILABLE" ]; then
    say "the kernel module was NOT tested in a virtual machine"
    return 0
  fi
  [ ! -r target/vgpu-kmod-results.log ] || cat target/vgpu-kmod-results.log >>"$GATE_LOG"
  return $rc
}

check_api_listing() {
  if ! "$ROOT/build/api-listing.sh" "$JDK" "$(api_jar)" >target/api.txt; then
    say "could not list the public API"
    return 1
  fi
  if [ ! -f vgpu-api/api.txt ] && [ ! -s target/api.txt ]; then
    return 0
  fi
  if ! diff -u vgpu-api/api.txt target/api.txt >target/api.diff 2>&1; then
    say "the public API is not what vgpu-api/api.txt lists. If that is meant, run ./vgpu api and commit the file:"
    head -n 60 target/api.diff | sed 's/^/  /' >&2
    return 1
  fi
}

# Sets PASSED, FAILED and SKIPPED from the totals that Surefire and Failsafe wrote to the log, one for each module and
# tier. Their reports would not do: a class with tests of two engines, JUnit's and jqwik's, keeps only the later's
# report.
count_tests() {
  # shellcheck disable=SC2046 # three numbers
  set -- $(awk '
    /^\[[A-Z]+\] Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: [0-9]+$/ {
      gsub(/[^0-9 ]/, "")
      total += $1; failed += $2 + $3; skipped += $4
    }
    END { printf "%d %d %d\n", total - failed - skipped, failed, skipped }' "$GATE_LOG")
  PASSED=$1 FAILED=$2 SKIPPED=$3
}

# Prints the skipped tests with their reasons, as far as the reports name them.
name_skipped() {
  find vgpu-*/target samples/*/target integration/*/target -path '*-reports/TEST-*.xml' -exec awk '
    function value(name,   at) {
      if (!match($0, " " name "=\"[^\"]*\"")) return ""
      at = RSTART + length(name) + 3
      return substr($0, at, RSTART + RLENGTH - at - 1)
    }
    /<testcase / { test = value("classname") "." value("name") }
    /<skipped/ { print "  skipped: " test, "(" value("message") ")" }' {} + 2>/dev/null
}

finish_gate() {
  count_tests
  if [ "$SKIPPED" -ne 0 ]; then
    name_skipped >&2
    say "a skipped test is a failure: choose tests by command, not by skipping"
  fi
  if [ -n "$NEWER_JDK" ]; then
    say "the checks on a newer JDK ran on $NEWER_JDK"
  else
    say "no JDK of 21 or newer is installed: the virtual-thread check on a newer JDK was NOT run"
  fi
  if [ -n "$PROMETHEUS" ]; then
    say "promtool and Prometheus of $PROMETHEUS checked the alerts and the queries of the Grafana dashboard"
  else
    say "no promtool and no Prometheus: they did NOT check the alerts and the queries of the Grafana dashboard"
  fi
  if [ "$1" -ne 0 ]; then
    say "FAILED at stage $STAGE of $STAGES, $STAGE_NAME (log: $GATE_LOG)"
  fi
  printf '%d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
  exit "$1"
}

end_gate() {
  [ -z "$STREAMER" ] || kill -TERM -- "-$STREAMER" 2>/dev/null
  rm -rf target/vgpu-build.lock.d "$VGPU_RUN_DIR"
}

command_test() {
  # Silence: above Surefire's own limit for a class of tests, vgpu.forkTimeout.
  # shellcheck disable=SC2034 # ANNOUNCED and SILENT_AT_MOST are read in maven.sh
  STAGE=0 STAGE_NAME='' PASSED=0 FAILED=0 SKIPPED=0 STREAMER='' ANNOUNCED=1 SILENT_AT_MOST=1000
  require_machine
  find_newer_jdk
  lock_build
  find_prometheus
  export VGPU_PROMETHEUS=$PROMETHEUS
  start_log
  GATE_LOG=$ROOT/target/vgpu-test.log
  : >"$GATE_LOG"
  # Pools that tests open meet in a run directory of this gate's own, not in the one that this machine's programs use.
  VGPU_RUN_DIR=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-gate.XXXXXX") || exit 1
  export VGPU_RUN_DIR
  # What random tests draw from: another number in each run.
  export VGPU_TEST_SEED="${VGPU_TEST_SEED:-$(($(od -An -N4 -tu4 /dev/urandom) >> 1))}"
  say "VGPU_TEST_SEED=$VGPU_TEST_SEED repeats what the random tests of this run draw" 2>&1 | tee -a "$GATE_LOG" >&2
  trap 'end_gate' EXIT
  stage 'format' check_format
  stage 'compile with checks' compile_with_checks
  stage 'listing of the public API' check_api_listing
  stage 'a second build, compared' check_reproducible
  stage 'aarch64 under QEMU' run_aarch64_tests
  stage 'unit and property tests' run_unit_tests
  stage 'system tests' run_system_tests
  stage 'an outside project on the packaged jars' run_outside_project
  stage 'the kernel module in a virtual machine' run_module_tests
  finish_gate 0
}
