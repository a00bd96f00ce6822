# shellcheck shell=bash
# Sourced by ./vgpu: finds the JDK, Maven and a C compiler; says what is missing, or installs it.

MIN_JDK=17
MIN_MAVEN=3.8
EX_UNAVAILABLE=69

# Prints the feature version (17, 21, ...) of the JDK or JRE in a directory; fails where there is none.
java_version_in() {
  local line version=
  if [ -r "$1/release" ]; then
    while IFS= read -r line; do
      case $line in JAVA_VERSION=*) version=${line#JAVA_VERSION=} ;; esac
    done <"$1/release"
    version=${version//\"/}
  fi
  if [ -z "$version" ] && [ -x "$1/bin/java" ]; then
    version=$("$1/bin/java" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p')
  fi
  version=${version#1.}
  version=${version%%[.+-]*}
  case $version in '' | *[!0-9]*) return 1 ;; esac
  printf '%s\n' "$version"
}

# Prints the directory of the JDK that a command in PATH belongs to.
home_of_command() {
  local file link
  file=$(command -v "$1") || return 1
  while [ -L "$file" ]; do
    link=$(readlink "$file")
    case $link in
      /*) file=$link ;;
      *) file=${file%/*}/$link ;;
    esac
  done
  (cd -P "${file%/*}/.." 2>/dev/null && pwd)
}

# Prints "version directory" of each JDK (with a compiler) in the usual places, oldest first.
installed_jdks() {
  local home version
  for home in /usr/lib/jvm/* /opt/java/* /opt/jdk* /Library/Java/JavaVirtualMachines/*/Contents/Home \
    "${HOME:-/nonexistent}"/.sdkman/candidates/java/* "${HOME:-/nonexistent}"/.jdks/*; do
    if [ -x "$home/bin/javac" ] && [ ! -L "$home" ] && version=$(java_version_in "$home"); then
      printf '%s %s\n' "$version" "$home"
    fi
  done | sort -n
}

# Prints the directory of the oldest installed JDK of at least this version, the newest with "last".
installed_jdk() {
  installed_jdks | awk -v min="$1" '$1 >= min { sub(/^[0-9]+ /, ""); print }' | if [ "${2-}" = last ]; then
    tail -n 1
  else
    head -n 1
  fi
}

# Sets JDK to the directory of the JDK to use, or to nothing and JDK_FOUND to what is there instead.
# A JAVA_HOME that cannot be used is an error, not something to silently work around.
find_jdk() {
  local version home other
  JDK='' JDK_FOUND=none
  if [ -n "${JAVA_HOME-}" ]; then
    other=$(installed_jdk $MIN_JDK)
    other=${other:+ Installed here: $other.}
    if [ ! -x "$JAVA_HOME/bin/java" ]; then
      die $EX_UNAVAILABLE "JAVA_HOME is $JAVA_HOME, and there is no bin/java in it." \
        "Point JAVA_HOME at a JDK, $MIN_JDK or newer, or unset it.$other"
    fi
    version=$(java_version_in "$JAVA_HOME") || version=0
    if [ "$version" -lt $MIN_JDK ]; then
      die $EX_UNAVAILABLE "JAVA_HOME is $JAVA_HOME, a Java $version; vgpu needs $MIN_JDK or newer." \
        "Point JAVA_HOME at a newer JDK, or unset it.$other"
    fi
    if [ ! -x "$JAVA_HOME/bin/javac" ]; then
      die $EX_UNAVAILABLE "JAVA_HOME is $JAVA_HOME, which has no compiler (a JRE, not a JDK)." \
        "Point JAVA_HOME at a JDK, $MIN_JDK or newer, or unset it.$other"
    fi
    JDK=$JAVA_HOME
    return 0
  fi
  if home=$(home_of_command javac) && version=$(java_version_in "$home"); then
    if [ "$version" -ge $MIN_JDK ]; then
      JDK=$home
      return 0
    fi
    JDK_FOUND="$version in $home"
  elif home=$(home_of_command java) && version=$(java_version_in "$home"); then
    JDK_FOUND="a JRE $version without a compiler in $home"
  fi
  JDK=$(installed_jdk $MIN_JDK)
}

# Sets MAVEN_FOUND; succeeds if it is new enough.
find_maven() {
  local version major minor
  MAVEN_FOUND=none
  command -v mvn >/dev/null 2>&1 || return 1
  version=$(JAVA_HOME=$JDK mvn -B -v 2>/dev/null | sed -n 's/.*Apache Maven \([0-9][0-9.]*\).*/\1/p')
  MAVEN_FOUND="${version:-one that does not start} in $(command -v mvn)"
  major=${version%%.*}
  minor=${version#*.}
  minor=${minor%%.*}
  [ -n "$version" ] && { [ "$major" -gt "${MIN_MAVEN%.*}" ] ||
    { [ "$major" -eq "${MIN_MAVEN%.*}" ] && [ "$minor" -ge "${MIN_MAVEN#*.}" ]; }; }
}

find_compiler() {
  command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1
}

# Sets MISSING to the parts that this machine lacks, of: jdk maven cc.
find_missing() {
  MISSING=
  find_jdk
  [ -n "$JDK" ] || MISSING="$MISSING jdk"
  if [ -z "$JDK" ]; then
    # Without Java, Maven cannot tell its version.
    MAVEN_FOUND=none
    command -v mvn >/dev/null 2>&1 || MISSING="$MISSING maven"
  else
    find_maven || MISSING="$MISSING maven"
  fi
  find_compiler || MISSING="$MISSING cc"
}

# Prints the first of these variables that /etc/os-release sets.
os_release() {
  [ -r /etc/os-release ] || return 0
  (
    unset "$@"
    # shellcheck disable=SC1091 # not there on every system
    . /etc/os-release
    for name in "$@"; do
      if [ -n "${!name-}" ]; then
        printf '%s' "${!name}"
        break
      fi
    done
  )
}

# Prints the family of the system: debian, fedora, alpine, arch, suse, macos or other.
system_family() {
  if [ "$(uname -s)" = Darwin ]; then
    echo macos
    return
  fi
  case " $(os_release ID) $(os_release ID_LIKE) " in
    *' debian '* | *' ubuntu '*) echo debian ;;
    *' fedora '* | *' rhel '* | *' centos '*) echo fedora ;;
    *' alpine '*) echo alpine ;;
    *' arch '*) echo arch ;;
    *suse*) echo suse ;;
    *) echo other ;;
  esac
}

# Prints the packages of a system family that bring the missing parts.
packages_for() {
  local part jdk maven=maven cc
  case $1 in
    debian)
      # The default JDK of these releases is 11; later ones need not have a 17 at all.
      case $(os_release UBUNTU_CODENAME VERSION_CODENAME) in
        bullseye | focal | jammy) jdk=openjdk-17-jdk-headless ;;
        *) jdk=default-jdk-headless ;;
      esac
      cc='gcc libc6-dev'
      ;;
    fedora) jdk=java-21-openjdk-devel cc='gcc glibc-devel' ;;
    alpine) jdk=openjdk17-jdk cc='gcc musl-dev' ;;
    arch) jdk=jdk21-openjdk cc=gcc ;;
    suse) jdk=java-21-openjdk-devel cc='gcc glibc-devel' ;;
    macos) jdk=openjdk@21 cc= ;;
    *) return ;;
  esac
  for part in $MISSING; do
    case $part in
      jdk) printf '%s ' "$jdk" ;;
      maven) printf '%s ' "$maven" ;;
      cc) printf '%s ' "$cc" ;;
    esac
  done
}

describe_missing() {
  local part
  say "vgpu is built on the machine that it runs on, and this one lacks:"
  for part in $MISSING; do
    case $part in
      jdk) say "  a JDK, $MIN_JDK or newer     (found: $JDK_FOUND)" ;;
      maven) say "  Maven, $MIN_MAVEN or newer    (found: $MAVEN_FOUND)" ;;
      cc) say "  a C compiler          (found: none)" ;;
    esac
  done
}

# Says how to install what is missing, and ends.
refuse() {
  local family packages sudo='sudo '
  family=$(system_family)
  packages=$(packages_for "$family")
  packages=${packages% }
  [ "$(id -u)" -eq 0 ] && sudo=
  describe_missing
  say "Install it with:"
  case $family in
    debian) say "  ${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends $packages" ;;
    fedora) say "  ${sudo}dnf install -y $packages" ;;
    alpine)
      say "  ${sudo}apk add $packages"
      say "The demo's model runs on ONNX Runtime, which needs glibc: on Alpine, ./vgpu demo will not run."
      ;;
    arch) say "  ${sudo}pacman -S --needed $packages" ;;
    suse) say "  ${sudo}zypper install -y $packages" ;;
    macos)
      [ -z "$packages" ] || say "  brew install $packages"
      case $MISSING in *cc*) say "  xcode-select --install" ;; esac
      ;;
    *) say "  your system's packages, or the projects' own downloads" ;;
  esac
  case "$MISSING $MAVEN_FOUND" in
    *maven*[0-9]*)
      say "If the packaged Maven is still older than $MIN_MAVEN, use the project's own download, first in PATH."
      ;;
  esac
  say "Then run ./vgpu again."
  exit $EX_UNAVAILABLE
}

# Succeeds where installing packages is a matter of course: Debian or Ubuntu, as root.
may_install() {
  [ "$(system_family)" = debian ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 &&
    [ -z "${VGPU_NO_INSTALL-}" ]
}

# Installs packages with apt-get, or says why it could not.
apt_install() {
  local LOG=$ROOT/target/vgpu-install.log
  start_log
  if ! run_logged 'updating the package lists' apt_progress apt-get -qq update; then
    say "apt-get update failed:"
    apt_failure
    return 1
  fi
  if ! run_logged "installing $*" apt_progress env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"; then
    say "apt-get install failed:"
    apt_failure
    return 1
  fi
  say "installed $* (log: $LOG)"
  hash -r
}

# Prints what apt-get and dpkg say of their failure. Of a package's script, that is the line before dpkg's first error.
apt_failure() {
  local lines
  lines=$(awk '
    /^dpkg: error/ && !had++ && last != "" { print last }
    /^(E: |dpkg: error)/ { print }
    { last = $0 }' "$LOG" | head -n 12)
  printf '%s\n' "${lines:-$(tail -n 8 "$LOG")}" | sed 's/^/  /' >&2
  say "the whole log: $LOG"
}

# Installs what is missing where that is a matter of course.
install_missing() {
  may_install || refuse
  describe_missing
  # shellcheck disable=SC2046 # a list of words
  apt_install $(packages_for debian) || refuse
  find_missing
  [ -z "$MISSING" ] || refuse
}

# The part of apt-get's log that the progress line shows.
apt_progress() {
  sed -n -e 's/^\(Get:[0-9]*\) [^ ]* [^ ]* [^ ]* \([^ ]*\).*/downloading \2/p' \
    -e 's/^Unpacking \([^ ]*\).*/unpacking \1/p' -e 's/^Setting up \([^ ]*\).*/setting up \1/p' | tail -n 1
}

# unpack_package <directory> <package>: Debian's package, unpacked there and not installed, if apt-get here has it.
unpack_package() {
  # shellcheck disable=SC2034 # read in maven.sh
  local LOG=$ROOT/target/vgpu-install.log
  local fetch='apt-get -q -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o APT::Sandbox::User=root'
  rm -rf "$1"
  mkdir -p "$1" || return 1
  start_log
  if [ "$(id -u)" -eq 0 ] && ! apt-cache show "$2" >/dev/null 2>&1; then
    # shellcheck disable=SC2086 # a list of words
    run_logged 'updating the package lists' apt_progress $fetch update
  fi
  # shellcheck disable=SC2086,SC2016 # a list of words; the other shell expands
  run_logged "fetching $2" apt_progress sh -c \
    'cd "$1" && name=$2 && shift 2 && "$@" download "$name" && dpkg-deb -x "$name"_*.deb . && rm -f "$name"_*.deb' \
    sh "$1" "$2" $fetch
}

# Ends on a Linux without /proc, as in a bare chroot: Debian's JDK cannot be installed there, and vgpu finds no process.
require_proc() {
  [ "$(uname -s)" != Linux ] || [ -r "${1-/proc}/self/stat" ] ||
    die $EX_UNAVAILABLE "/proc is not mounted; Java and vgpu need it. As root: mount -t proc proc /proc"
}

# Leaves JDK set and everything there that a build needs, or ends.
require_machine() {
  require_proc
  find_missing
  [ -z "$MISSING" ] || install_missing
}
