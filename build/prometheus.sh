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
    unpack_package "$own" prometheus
  fi
  if "$own/usr/bin/promtool" --version >/dev/null 2>&1; then PROMETHEUS=$own/usr/bin; fi
}
