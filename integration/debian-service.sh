#!/usr/bin/env bash
# Tries vgpu.service of target/package/vgpu_*.deb, or of the package that is given, under systemd, in a Debian that is
# booted in namespaces: installs the package, upgrades it while a program uses MPS, removes it, installs it again and
# purges it. Run ./vgpu package before.
# Needs what debian-trial.sh says, and cgroup v2. VGPU_TRIAL_BASE must contain systemd:
# mmdebstrap --variant=minbase --include=systemd bookworm base.tar
# Takes one to three minutes. Not part of ./vgpu test.
set -euo pipefail

# shellcheck source=integration/debian-trial.sh
. "$(dirname "$0")/debian-trial.sh"
enter "$@"

step "a Debian with systemd"
make_root systemd
[ -x "$root/lib/systemd/systemd" ] || fail "there is no systemd in the Debian of VGPU_TRIAL_BASE"
# Neither logins on this machine's terminals nor its devices are the trial's.
ln -s /dev/null "$root/etc/systemd/system/getty.target"
mkdir "$work/groups"
mount -t cgroup2 cgroup2 "$work/groups" || fail "there is no cgroup v2 here"
group=$work/groups/${work##*/}
mkdir "$group"
# Its processes end with the one that systemd is in their namespace. A group can be removed once they are gone.
shut_down() {
  echo $$ >"$work/groups/cgroup.procs"
  kill -KILL "$booted" 2>/dev/null || true
  wait "$booted" 2>/dev/null || true
  until find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.1; done
  umount "$work/groups"
  leave
}
# shellcheck disable=SC2016 # for the shell inside
boot='echo $$ >"$0/cgroup.procs" && exec unshare --cgroup sh -c "$1" "$2"'
# shellcheck disable=SC2016 # for the shell inside
mounts='cd "$0" && mount -t proc proc proc && mount -t tmpfs -o mode=0755 tmpfs dev &&
  for device in null zero full random urandom; do
    : >dev/$device && mount --bind /dev/$device dev/$device || exit 1
  done && mount -t sysfs -o ro sysfs sys &&
  mount -t cgroup2 cgroup2 sys/fs/cgroup && mount -t tmpfs -o mode=0755 tmpfs run &&
  exec chroot . /lib/systemd/systemd --unit=multi-user.target'
env -i PATH="$PATH" container=vgpu-trial unshare --mount --pid --ipc --uts --fork --kill-child \
  sh -c "$boot" "$group" "$mounts" "$root" >"$work/boot" 2>&1 &
booted=$!
trap shut_down EXIT

# inside <command...>: beside systemd. It has the process id 1 there.
inside() {
  local init
  init=$(cat "/proc/$booted/task/$booted/children")
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    VGPU_RUN_DIR=/run/vgpu nsenter --target "${init% }" --mount --pid --ipc --uts --root --wd "$@"
}

# until_it <seconds> <what> <command...>
until_it() {
  local tries=$(($1 * 5)) what=$2
  shift 2
  until "$@" >"$work/log" 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "$what: $(cat "$work/log")"
    sleep 0.2
  done
}
is_up() {
  cat "$work/boot" 2>/dev/null
  inside systemctl is-active multi-user.target
}
until_it 120 "systemd does not start" is_up

install_package() {
  inside dpkg -i "/tmp/$1" >"$work/log" 2>&1 || fail "$1 cannot be installed: $(cat "$work/log")"
}
main_pid() {
  inside systemctl show --property MainPID --value vgpu.service
}
holds_seat() {
  inside grep "pid=$(main_pid) " /run/vgpu/seat.holder
}
daemon_pid() {
  inside sh -c 'cat /run/vgpu/mps/*/pipe/nvidia-cuda-mps-control.pid'
}

step "install $version: the service is there, and not enabled"
cp "$package" "$root/tmp/vgpu.deb"
make_next "$root/tmp/next.deb"
install_package vgpu.deb
[ "$(inside systemctl is-enabled vgpu.service)" = disabled ] || fail "the service is enabled by itself"
inside systemctl enable --now vgpu.service >/dev/null 2>&1 || fail "the service cannot be enabled"
until_it 120 "the service does not hold the seat" holds_seat

step "a member of the group finds the service's seat"
inside useradd --groups vgpu alice
expect "No virtual GPU is held." inside su alice -s /bin/sh -c 'unset VGPU_RUN_DIR; vgpu ls'
inside userdel alice 2>/dev/null

step "upgrade, while a program is a client of the MPS daemon that the service started"
# shellcheck disable=SC2016 # for the shell inside
inside vgpu run --require compute:spatial --memory 1GiB --compute 30 -- \
  sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"; until [ -e /tmp/upgraded ]; do sleep 0.1; done' >"$work/program" 2>&1 &
program=$!
until_it 120 "there is no MPS daemon" daemon_pid
until_it 120 "the program does not run" grep /run/vgpu/mps "$work/program"
daemon=$(daemon_pid)
inside grep -q vgpu.service "/proc/$daemon/cgroup" || fail "the MPS daemon is not in the service's group"
before=$(main_pid)
install_package next.deb
[ "$(main_pid)" != "$before" ] || fail "the upgrade does not restart the service"
inside systemctl is-active vgpu.service >/dev/null || fail "the service does not run after the upgrade"
if [ "$(daemon_pid)" != "$daemon" ] || ! inside test -d "/proc/$daemon"; then
  fail "the upgrade ends the MPS daemon of running programs"
fi
[ "$(inside systemctl is-enabled vgpu.service)" = enabled ] || fail "the upgrade disables the service"
touch "$root/tmp/upgraded"
wait $program || fail "the program failed: $(cat "$work/program")"

step "remove, install again"
inside dpkg -r vgpu >"$work/log" 2>&1 || fail "the package cannot be removed: $(cat "$work/log")"
! inside systemctl is-active vgpu.service >/dev/null || fail "the service runs without its package"
install_package vgpu.deb
[ "$(inside systemctl is-enabled vgpu.service)" = enabled ] || fail "the removed package does not come back enabled"

step "purge"
inside dpkg -P vgpu >"$work/log" 2>&1 || fail "the package cannot be purged: $(cat "$work/log")"
left=$(find "$root/etc/systemd" "$root/usr/lib/systemd" -name '*vgpu*')
[ -z "$left" ] || fail "this is left: $left"
step "nothing is left"
