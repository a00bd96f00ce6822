# shellcheck shell=bash
# Sourced by the gate and by ./vgpu release: compares what two builds of the published modules gave, byte by byte.

# Prints the built files of the published modules below a directory.
release_files() {
  local module
  for module in ${PUBLISHED//,/ }; do
    (cd "$1" && find "$module" -maxdepth 2 \
      \( -path "$module/pom.xml" -o -path "$module/target/*.jar" -o -path "$module/target/bom.*" \))
  done | LC_ALL=C sort
}

# compare_builds <directory> <directory>: compares jars, with the natives in them, SBOMs and POMs byte by byte.
compare_builds() {
  local file differ=0 count=0
  if [ "$(release_files "$1")" != "$(release_files "$2")" ]; then
    say "the two builds consist of different files:"
    diff <(release_files "$1") <(release_files "$2") |
      sed -n 's/^< /  only the first has /p; s/^> /  only the second has /p' >&2
    return 1
  fi
  while IFS= read -r file; do
    count=$((count + 1))
    cmp -s "$1/$file" "$2/$file" && continue
    differ=1
    say "the two builds differ in $file:"
    name_difference "$1/$file" "$2/$file" | head -n 10 >&2
  done < <(release_files "$1")
  [ $differ -eq 0 ] && say "two builds gave the same bytes: $count files"
}

# Prints in which entries two jars differ, or where two other files do.
name_difference() {
  local lines=
  case $1 in
    *.jar) lines=$(LC_ALL=C join -t '	' -a 1 -a 2 -e - -o 0,1.2,2.2 <(entries "$1" | LC_ALL=C sort) \
      <(entries "$2" | LC_ALL=C sort) | awk -F '\t' '$2 != $3 { print "  entry " $1 ": " $2 ", " $3 }') ;;
  esac
  # The rights, the order or the compression of entries, then.
  [ -n "$lines" ] ||
    lines=$(LC_ALL=C diff <(rights "$1") <(rights "$2") | sed -n 's/^</  first: /p; s/^>/  second:/p')
  [ -n "$lines" ] || lines="  $(cmp "$1" "$2" 2>&1)"
  printf '%s\n' "$lines"
}

# Prints each entry of a jar, a tab, its checksum and its time.
entries() {
  unzip -v "$1" 2>/dev/null | awk '$7 ~ /^[0-9a-f]+$/ && NF >= 8 {
    name = $0; sub(/^.* [0-9a-f]+  /, "", name); print name "\t" $7 " " $5 " " $6 }' | grep . ||
    python3 -c 'import sys, zipfile
for e in zipfile.ZipFile(sys.argv[1]).infolist(): print("%s\t%08x %s" % (e.filename, e.CRC, e.date_time))' "$1" \
      2>/dev/null ||
    "$JDK/bin/jar" tvf "$1" | awk '{ name = $0; sub(/^.*[0-9][0-9][0-9][0-9] /, "", name); print name "\t" $1 }'
}

# Prints what zipinfo says of each entry of a jar; nothing where there is no zipinfo.
rights() {
  zipinfo "$1" 2>/dev/null | grep '^[-dl]'
}

# copy_sources <directory>: the sources of the build, put there in reverse order, so that directories list them in
# another one where they list what came first first.
copy_sources() {
  (
    umask 077
    mkdir -p "$1" || exit 1
    find pom.xml LICENSE NOTICE .mvn build vgpu-* samples site integration -name target -prune -o \
      -name node_modules -prune -o -type f -print 2>/dev/null | LC_ALL=C sort -r | tar -cf - -T - |
      tar -C "$1" -xpf -
  )
}

# Builds the published modules once more, in another place, time zone, locale and umask, with another order of files,
# and compares them with those of this checkout.
check_reproducible() {
  local again=$VGPU_RUN_DIR/the-second/of-two-builds rc=0
  copy_sources "$again" || return 1
  : >"$LOG"
  (
    umask 077
    cd "$again" && TZ=Asia/Kolkata LC_ALL=C LANG=C maven 'building once more' -T1C -Dvgpu.quick -DskipTests \
      -pl "$PUBLISHED" -am package
  ) || rc=$?
  cat "$LOG" >>"$GATE_LOG"
  if [ $rc -eq 0 ]; then compare_builds "$ROOT" "$again" || rc=1; else explain_failure; fi
  rm -rf "${VGPU_RUN_DIR:?}/the-second"
  return $rc
}

# Sets OTHER_CLOCK to the library that gives a program another clock (Debian's libfaketime), or to nothing.
find_other_clock() {
  local own=$ROOT/target/faketime library
  OTHER_CLOCK=
  if ! compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null && [ ! -d "$own/usr" ] &&
    [ "$(system_family)" = debian ] && [ -z "${VGPU_NO_INSTALL-}" ]; then
    unpack_package "$own" libfaketime
  fi
  for library in /usr/lib/*/faketime/libfaketimeMT.so.1 "$own"/usr/lib/*/faketime/libfaketimeMT.so.1; do
    if [ -r "$library" ] && [ "$(LD_PRELOAD=$library FAKETIME=$OTHER_DAY date +%m 2>/dev/null)" != "$(date +%m)" ]; then
      OTHER_CLOCK=$library
      return 0
    fi
  done
}
