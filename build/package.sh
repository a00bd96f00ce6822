# shellcheck shell=bash
# Sourced by ./vgpu: a tarball and a Debian package of the command, with a Java runtime of the modules that it uses.

# What the command and the libraries that it comes with use of the JDK.
RUNTIME_MODULES=java.base,java.logging,java.management,jdk.httpserver,jdk.management,jdk.net
RUNTIME_MODULES=$RUNTIME_MODULES,jdk.unsupported

# Builds target/package: for this machine's architecture, and in target/package/ARCHITECTURE for that of the JDK that
# VGPU_PACK_JDK names.
command_package() {
  local version jars arch other='' out=$ROOT/target/package
  arch=$(uname -m)
  [ -z "${VGPU_PACK_JDK-}" ] || other=$(architecture_of_other_jdk) || exit 69
  prepare_command
  cd "$ROOT" || exit 1
  require_package_tools
  IFS=: read -r -a jars <<<"$CLASSPATH_LINE"
  version=${jars[0]##*/vgpu-cli-}
  version=${version%.jar}
  SOURCE_DATE_EPOCH=$(output_timestamp) || die 1 "pom.xml has no project.build.outputTimestamp"
  export SOURCE_DATE_EPOCH
  umask 022
  rm -rf "$out"
  mkdir -p "$out/vgpu/bin" "$out/vgpu/lib"
  fill_installation "$out/vgpu" "${jars[@]}" || die 1 "the installation could not be put together"
  make_packages "$out" "$version" "$arch"
  if [ -n "$other" ]; then
    mkdir "$out/$other" && cp -a "$out/vgpu" "$out/$other/" && change_architecture "$out/$other/vgpu" "$other" ||
      die 1 "the installation for $other could not be put together"
    make_packages "$out/$other" "$version" "$other"
  fi
  [ -e vgpu-cuda/target/classes/META-INF/native/linux-aarch64 ] ||
    say "no aarch64-linux-gnu-gcc: the jars have no libraries for aarch64"
  say "a package contains a Java runtime. These are for: $arch $other"
  (cd "$out" && find . -maxdepth 2 -name '*.tar.gz' -o -maxdepth 2 -name '*.deb' | sort | xargs ls -s -h) |
    sed "s|\./|target/package/|"
}

# The architecture of VGPU_PACK_JDK, whose modules this machine's jlink can link if the feature version is the same.
architecture_of_other_jdk() {
  local jdk=$VGPU_PACK_JDK arch
  arch=$(sed -n 's/^OS_ARCH="\(.*\)"$/\1/p' "$jdk/release" 2>/dev/null)
  [ "$arch" = aarch64 ] && [ "$(uname -m)" != aarch64 ] && [ -d "$jdk/jmods" ] ||
    die 69 "VGPU_PACK_JDK=$jdk is no JDK for another architecture that vgpu supports (aarch64), with jmods"
  command -v aarch64-linux-gnu-gcc >/dev/null ||
    die 69 "a package for aarch64 needs aarch64-linux-gnu-gcc" \
      "(Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
  printf '%s\n' "$arch"
}

# make_packages <directory> <version> <architecture>
make_packages() {
  make_tarball "$@" || die 1 "the tarball could not be made"
  if command -v dpkg-deb >/dev/null 2>&1; then
    make_deb "$@" || die 1 "the Debian package could not be made"
  else
    say "no dpkg-deb: the Debian package was NOT made"
  fi
}

# change_architecture <installation> <architecture>: replaces what is not the same for all.
change_architecture() {
  rm -rf "$1/runtime"
  link_runtime "$1" --module-path "$VGPU_PACK_JDK/jmods" || return 1
  "$ROOT/build/gpu-check/programs.sh" "$2" "$1.programs" >/dev/null || return 1
  install -m 0755 "$1.programs/spin" "$1/examples/spin"
  rm -rf "$1.programs"
}

require_package_tools() {
  [ -d "$JDK/jmods" ] || die 69 "$JDK has no jmods folder: set JAVA_HOME to a JDK of 17 or newer that has"
}

# The time of every file in what is built, in seconds: project.build.outputTimestamp.
output_timestamp() {
  local text
  text=$(sed -n 's|.*<project.build.outputTimestamp>\(.*\)</project.build.outputTimestamp>.*|\1|p' "$ROOT/pom.xml")
  [ -n "$text" ] && date -u -d "$text" +%s
}

# fill_installation <directory> <jar...>
fill_installation() {
  local home=$1 run=$1.run
  shift
  cp "$@" "$home/lib/" && cp "$ROOT/build/package/vgpu" "$ROOT/build/package/vgpu-archive" "$home/bin/" &&
    cp LICENSE NOTICE CHANGELOG.md "$home/" &&
    link_runtime "$home" || return 1
  chmod -R go=u,go-w "$home/lib"
  add_examples "$home" || return 1
  # The classes of the commands that are to start soon.
  mkdir -m 0700 "$run" || return 1
  list_classes "$run" 1 ls && list_classes "$run" 2 --version &&
    list_classes "$run" 3 run --memory 1GiB -- true || return 1
  awk '!seen[$0]++' "$run"/*.list >"$home/lib/classes.list"
  "$home/bin/vgpu" man --directory "$home/man/man1" && mkdir "$home/completion" &&
    "$home/bin/vgpu" completion bash >"$home/completion/vgpu.bash" &&
    "$home/bin/vgpu" completion fish >"$home/completion/vgpu.fish" || return 1
  rm -rf "$run"
}

# link_runtime <installation> <option...>
link_runtime() {
  local home=$1
  shift
  "$JDK/bin/jlink" "$@" --add-modules "$RUNTIME_MODULES" --strip-java-debug-attributes --no-header-files \
    --no-man-pages --output "$home/runtime"
}

# What the page site/start/five-minutes.md runs: a CUDA program, and the Java program of README.md with its source.
add_examples() {
  local examples=$1/examples
  install -D -m 0755 samples/cuda-programs/target/programs/spin "$examples/spin" &&
    awk '/^```java$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >"$examples/Quickstart.java" &&
    "$JDK/bin/javac" --release 17 -cp "$1/lib/*" -d "$examples" "$examples/Quickstart.java"
}

# list_classes <directory> <number> <command...>, run in a run directory of its own over an emulated GPU.
list_classes() {
  local directory=$1 number=$2
  shift 2
  VGPU_RUN_DIR=$directory/run VGPU_EMULATOR=devices=1 VGPU_JAVA_OPTS="-XX:DumpLoadedClassList=$directory/$number.list" \
    "${directory%.run}/bin/vgpu" "$@" >/dev/null
}

# same_tar <directory> <entry>: the entry as a tar file on standard output, the same bytes for the same content.
same_tar() {
  tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$2"
}

# make_tarball <directory> <version> <architecture>
make_tarball() {
  local name=vgpu-$2-linux-$3
  mv "$1/vgpu" "$1/$name" && same_tar "$1" "$name" | gzip -n -9 >"$1/$name.tar.gz"
  mv "$1/$name" "$1/vgpu"
}

# make_deb <directory> <version> <architecture>
make_deb() {
  local root=$1/root files=$ROOT/build/package/deb version arch
  version=${2/-SNAPSHOT/\~snapshot}
  case $3 in x86_64) arch=amd64 ;; *) arch=arm64 ;; esac
  install -d "$root/DEBIAN" "$root/usr/bin" "$root/usr/lib/systemd/system" "$root/usr/lib/sysusers.d" \
    "$root/usr/lib/tmpfiles.d" "$root/usr/share/man" "$root/usr/share/bash-completion/completions" \
    "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d" \
    "$root/usr/share/doc/vgpu" || return 1
  cp -r "$1/vgpu" "$root/usr/lib/vgpu" && ln -s ../lib/vgpu/bin/vgpu "$root/usr/bin/vgpu" || return 1
  mv "$root/usr/lib/vgpu/man/man1" "$root/usr/share/man/"
  gzip -n -9 "$root"/usr/share/man/man1/*
  mv "$root/usr/lib/vgpu/completion/vgpu.fish" "$root/usr/share/fish/vendor_completions.d/vgpu.fish"
  {
    echo '#compdef vgpu'
    cat "$root/usr/lib/vgpu/completion/vgpu.bash"
    # zsh has read this file at the first completion, which is still to be answered.
    echo '_bash_complete -o default -F _complete_vgpu'
  } >"$root/usr/share/zsh/vendor-completions/_vgpu"
  mv "$root/usr/lib/vgpu/completion/vgpu.bash" "$root/usr/share/bash-completion/completions/vgpu"
  rmdir "$root/usr/lib/vgpu/man" "$root/usr/lib/vgpu/completion"
  {
    cat NOTICE
    printf '\nLicense: Apache-2.0, in /usr/share/common-licenses/Apache-2.0.\n'
    echo 'The licences of the Java runtime are in /usr/lib/vgpu/runtime/legal, those of the libraries in their jars.'
  } >"$root/usr/share/doc/vgpu/copyright"
  gzip -n -9 <CHANGELOG.md >"$root/usr/share/doc/vgpu/changelog.gz"
  rm -f "$root"/usr/lib/vgpu/LICENSE "$root"/usr/lib/vgpu/NOTICE "$root"/usr/lib/vgpu/CHANGELOG.md
  install -m 0644 "$files/vgpu.service" "$root/usr/lib/systemd/system/vgpu.service"
  install -m 0644 "$files/sysusers.conf" "$root/usr/lib/sysusers.d/vgpu.conf"
  install -m 0644 "$files/tmpfiles.conf" "$root/usr/lib/tmpfiles.d/vgpu.conf"
  install -m 0755 "$files/postinst" "$files/prerm" "$files/postrm" "$root/DEBIAN/"
  control "$version" "$arch" "$(newest_glibc "$1/vgpu" "$3")" "$(du -k -s --apparent-size "$root/usr" | cut -f 1)" \
    >"$root/DEBIAN/control"
  dpkg-deb --root-owner-group -Zxz --build "$root" "$1/vgpu_${version}_$arch.deb" >/dev/null && rm -rf "$root"
}

# newest_glibc <installation> <architecture>: the version that its files need, and the natives in its jars.
newest_glibc() {
  LC_ALL=C grep -r -h -a -o -E 'GLIBC_2\.[0-9]+' "$1/runtime" "$1/examples" \
    "$ROOT"/vgpu-*/target/classes/META-INF/native/"linux-$2" | sed 's/GLIBC_//' | sort -u -V | tail -n 1
}

# control <version> <architecture> <glibc> <size in KiB>
control() {
  cat <<EOF
Package: vgpu
Version: $1
Architecture: $2
Maintainer: ${VGPU_MAINTAINER:-vgpu <root@localhost>}
Installed-Size: $4
Depends: libc6 (>= $3), libgcc-s1, libstdc++6, zlib1g, passwd
Section: admin
Priority: optional
Description: virtual GPUs with a share of the time and a quota of the memory
 The vgpu command cuts a GPU into virtual GPUs, runs unmodified CUDA programs
 under them, and keeps each to its share. It brings its own Java runtime, and an
 emulated GPU for machines that have none.
EOF
}
