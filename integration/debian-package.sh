#!/usr/bin/env bash
# Tries target/package/vgpu_*.deb, or the package that is given, in a bare Debian: runs every command of
# site/start/five-minutes.md as root, as a user, and as a member of the group under root's seat, upgrades, removes and
# purges it, and sees that nothing is left. Run ./vgpu package before.
# Needs what debian-trial.sh says; a tar file for VGPU_TRIAL_BASE: mmdebstrap --variant=minbase bookworm base.tar
# Takes one to three minutes. Not part of ./vgpu test.
set -euo pipefail

# shellcheck source=integration/debian-trial.sh
. "$(dirname "$0")/debian-trial.sh"
enter "$@"

step "a bare Debian"
# shellcheck disable=SC2119 # it takes packages
make_root
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}

# as_user <name> <command...>: as in a session of the user, which has a directory of its own.
as_user() {
  # shellcheck disable=SC2016 # for the shell inside
  inside su "$1" -s /bin/sh -c 'export XDG_RUNTIME_DIR=$HOME/run; exec "$@"' -- sh "${@:2}"
}
# Alice is a member of the group, Carol is not.
as_alice() { as_user alice "$@"; }
as_carol() { as_user carol "$@"; }

# The sh blocks of the page, as scripts 1.sh, 2.sh, ... of /tmp/page.
page=$home/site/start/five-minutes.md
unpack_page() {
  install -d "$root/tmp/page"
  awk -v into="$root/tmp/page/" '
    /^```sh$/ { file = into (++n) ".sh"; next }
    /^```$/ { file = "" }
    file { print >file }' "$page"
  [ -s "$root/tmp/page/5.sh" ] || fail "$page has less than five blocks of commands"
}

# Ends as soon as nobody reads it.
press_keys() {
  while sleep 0.2; do
    if grep -qs 'vgpu top,' "$work/log"; then printf '\003'; else echo; fi
  done
}

# run_page <inside | as_alice | as_carol>: all of the page's blocks but the first, which installs the package. What
# stands behind a vgpu run is for another shell while it runs: on a terminal, where top ends by Ctrl-C.
run_page() {
  local block program=''
  for block in $(seq 2 "$(find "$root/tmp/page" -name '*.sh' | wc -l)"); do
    if grep -q '^vgpu run ' "$root/tmp/page/$block.sh"; then
      "$1" bash -e "/tmp/page/$block.sh" >"$work/program" 2>&1 &
      program=$!
      until "$1" vgpu ls | grep -q spin; do
        kill -0 $program 2>/dev/null || fail "block $block of $page failed: $(cat "$work/program")"
      done
      continue
    fi
    "$1" script -qec "exec bash -e /tmp/page/$block.sh" /dev/null < <(press_keys) >"$work/log" 2>&1 ||
      fail "block $block of $page failed: $(cat "$work/log")"
    if [ -n "$program" ]; then
      grep -q spin "$work/log" || fail "block $block of $page does not show the program: $(cat "$work/log")"
      wait $program || fail "the program of $page failed: $(cat "$work/program")"
      grep -q 'of the time' "$work/program" || fail "the program does not print its share: $(cat "$work/program")"
      program=''
    fi
  done
}

# What the system consists of: each file with its kind, mode, owner and size; without root's home, logs, what apt keeps,
# and the backups of dpkg and of passwd.
listing() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./root -o -path ./var/log \
    -o -path ./var/lib/apt -o -path ./var/cache/apt \) -prune -o \
    ! -path './var/lib/dpkg/*-old' ! -path './etc/*-' ! -path './var/cache/ldconfig/*' ! -path './etc/.pwd.lock' \
    \( -type d -printf '%p d %m %u:%g\n' -o -printf '%p %y %m %u:%g %s\n' \) | LC_ALL=C sort)
  sort "$root/etc/passwd" "$root/etc/group" "$root/etc/shadow" "$root/etc/gshadow" "$root/var/lib/dpkg/status"
}

listing >"$work/before"

step "install $version, as the page says"
unpack_page
cp "$package" "$root/tmp/page/"
inside sh -c 'cd /tmp/page && . ./1.sh' >"$work/log" 2>&1 || fail "the package cannot be installed: $(cat "$work/log")"
size=$(du -s -k "$root/usr/lib/vgpu" | cut -f 1)
step "installed: $((size / 1024)) MiB"
[ "$size" -le $((120 * 1024)) ] || fail "more than 120 MiB are installed"
[ "$(stat -c '%a %U' "$root/run/vgpu")" = '750 root' ] || fail "/run/vgpu has another mode or owner"
expect vgpu inside stat -c %G /run/vgpu
for file in man/man1/vgpu-run.1.gz bash-completion/completions/vgpu zsh/vendor-completions/_vgpu \
  fish/vendor_completions.d/vgpu.fish; do
  [ -s "$root/usr/share/$file" ] || fail "there is no /usr/share/$file"
done

step "as root, and as a user of the group"
expect "vgpu " inside vgpu --version
expect "No virtual GPU is held." inside env VGPU_JAVA_OPTS=-Xshare:on vgpu ls
inside useradd --create-home --groups vgpu alice
inside useradd --create-home carol
inside install -d -o alice -m 0700 /home/alice/run
inside install -d -o carol -m 0700 /home/carol/run
step "the rest of the page, as root and as a user"
run_page inside
run_page as_carol
expect "No virtual GPU is held." as_carol vgpu ls
expect "Emulated GPU" as_carol vgpu devices
expect "leases" as_carol vgpu ls --json
expect "-F _complete_vgpu vgpu" inside bash -c '. /usr/share/bash-completion/completions/vgpu; complete -p vgpu'
step "one seat for root and the group"
if as_alice vgpu ls >"$work/log" 2>&1; then fail "a member has a seat of its own beside root's"; fi
grep -q 'no process of root holds the seat' "$work/log" || fail "a member is not told why: $(cat "$work/log")"
rm -r "$root/run/vgpu/emulator"
inside install -d -m 0750 -g vgpu /run/vgpu/emulator
inside vgpu serve >"$work/serve" 2>&1 &
for _ in $(seq 600); do
  ! grep -q 'holding the seat' "$work/serve" || break
  sleep 0.1
done
grep -q 'holding the seat of /run/vgpu' "$work/serve" || fail "the seat is not held: $(cat "$work/serve")"
expect "No virtual GPU is held." inside vgpu ls
run_page as_alice
as_alice vgpu run --name hers --memory 1GiB -- /usr/lib/vgpu/examples/spin --seconds 15 >"$work/hers" 2>&1 &
hers=$!
until inside vgpu ls | grep -q hers; do
  kill -0 $hers 2>/dev/null || fail "a member's program failed: $(cat "$work/hers")"
done
expect hers as_alice vgpu ls
expect "No virtual GPU is held." as_carol vgpu ls
if as_carol env VGPU_RUN_DIR=/run/vgpu vgpu ls >"$work/log" 2>&1; then fail "a stranger uses root's seat"; fi
grep -q 'not open to a group that this process is in' "$work/log" ||
  fail "a stranger is not told why: $(cat "$work/log")"
wait $hers || fail "a member's program failed: $(cat "$work/hers")"

step "upgrade, while the seat is held"
make_next "$root/tmp/next.deb"
inside dpkg -i /tmp/next.deb >"$work/log" 2>&1 || fail "the package cannot be upgraded: $(cat "$work/log")"
expect "No virtual GPU is held." inside env VGPU_JAVA_OPTS=-Xshare:on vgpu ls
expect "No virtual GPU is held." as_alice vgpu ls
holder=$(sed -n 's/pid=\([0-9]*\) .*/\1/p' "$root/run/vgpu/seat.holder")
kill -TERM "$holder"
wait

step "remove and purge"
inside dpkg -r vgpu >"$work/log" 2>&1 || fail "the package cannot be removed: $(cat "$work/log")"
for path in usr/bin/vgpu usr/lib/vgpu usr/lib/systemd/system/vgpu.service; do
  [ ! -e "$root/$path" ] || fail "/$path is there after the removal: $(find "$root/$path" | head -n 5)"
done
inside userdel --remove alice 2>/dev/null
inside userdel --remove carol 2>/dev/null
inside dpkg -P vgpu >"$work/log" 2>&1 || fail "the package cannot be purged: $(cat "$work/log")"
! grep -q -i warning "$work/log" || fail "dpkg warns: $(cat "$work/log")"
listing >"$work/after"
diff "$work/before" "$work/after" >&2 || fail "the above is left, or is gone (>: left, <: gone)"
step "nothing is left"
