# shellcheck shell=bash
# Sourced by the gate: promtool and Prometheus, which check the alerts and the queries of the Grafana dashboard.

# Sets PROMETHEUS to the directory of both programs, or to nothing. Debian's package is unpacked below target, not
# installed: its installation starts a service.
find_prometheus() {
  local own=$ROOT/target/prometheus
  PROMETHEUS=${VGPU_PROMETHEUS-}
  if [ -z "$PROMETHEUS" ] && command -v promtool >/dev/null 2>&1 && command -v prometheus >/dev/null 2>&1; then
    PROMETHEUS=$(dirname "$(command -v prometheus)")
  fi
  [ -z "$PROMETHEUS" ] || return 0
  if [ ! -x "$own/usr/bin/prometheus" ] && [ "$(system_family)" = debian ] && [ -z "${VGPU_NO_INSTALL-}" ]; then
    unpack_prometheus "$own"
  fi
  if "$own/usr/bin/promtool" --version >/dev/null 2>&1; then PROMETHEUS=$own/usr/bin; fi
}

# unpack_prometheus DIRECTORY: what this machine's apt-get has, if it has it.
unpack_prometheus() {
  # shellcheck disable=SC2034 # read in maven.sh
  local LOG=$ROOT/target/vgpu-install.log
  local fetch='apt-get -q -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o APT::Sandbox::User=root'
  rm -rf "$1"
  mkdir -p "$1" || return 1
  start_log
  if [ "$(id -u)" -eq 0 ] && ! apt-cache show prometheus >/dev/null 2>&1; then
    # shellcheck disable=SC2086 # a list of words
    run_logged 'updating the package lists' apt_progress $fetch update
  fi
  # shellcheck disable=SC2086,SC2016 # a list of words; the other shell expands
  run_logged 'fetching prometheus' apt_progress sh -c \
    'cd "$1" && shift && "$@" download prometheus && dpkg-deb -x prometheus_*.deb . && rm -f prometheus_*.deb' \
    sh "$1" $fetch
}
