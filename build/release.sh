# shellcheck shell=bash
# Sourced by ./vgpu: what a release consists of, built twice and compared. Nothing is signed or uploaded.

COPY=org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy
# What the second build adds to the clock: no day and no month of it is one of the first build's.
OTHER_DAY=+40d
JAPICMP=com.github.siom79.japicmp:japicmp:0.26.1:jar:jar-with-dependencies

# command_release --dry-run
command_release() {
  [ "$*" = --dry-run ] ||
    die 2 "usage: ./vgpu release --dry-run: builds a release twice, compares and checks it; uploads nothing"
  require_machine
  git -C "$ROOT" rev-parse -q --verify HEAD >/dev/null 2>&1 ||
    die 69 "a release is built from a commit: this needs git and a clone"
  local out=$ROOT/target/release failed=0
  [ -z "$(git -C "$ROOT" status --porcelain)" ] || say "what is not committed is NOT part of it"
  rm -rf "$out"
  find_other_clock
  # Neither the place nor the time nor the time zone nor the locale may be in what is built.
  build_release "$out/first" UTC C.UTF-8 ''
  build_release "$out/second-of-two-builds" Asia/Kolkata C "$OTHER_CLOCK"
  if [ -n "$OTHER_CLOCK" ]; then
    say "the second build ended on $(build_day), by the clock that it was given"
  else
    say "no libfaketime (Debian's package): both builds ran on one day, so that a date in them is NOT found"
  fi
  compare_builds "$out/first" "$out/second-of-two-builds" || failed=1
  compare_api "$out" || failed=1
  check_release "$out/first" || failed=1
  collect_release "$out" || failed=1
  say "not signed: the owner of the release key signs each file of target/release/files (gpg --detach-sign --armor)"
  [ $failed -eq 0 ] || exit 1
}

# build_release <directory> <time zone> <locale> <clock>: the last commit, built there, by the clock of OTHER_CLOCK.
build_release() {
  mkdir -p "$1"
  # A jar holds the rights of some files of the sources, which git and tar give by the caller's settings.
  git -C "$ROOT" archive HEAD | tar -C "$1" -xf - && chmod -R u=rwX,go=rX "$1" || die 1 "cannot unpack the commit in $1"
  cd "$1" || exit 1
  set -- "$1" "TZ=$2" "LC_ALL=$3" ${4:+"LD_PRELOAD=$4" "FAKETIME=$OTHER_DAY" DONT_FAKE_MONOTONIC=1}
  (
    export "${@:2}" VGPU_ALL_ARCHITECTURES=1
    maven_or_die "building in $1" -Prelease -Dvgpu.quick -pl "$PUBLISHED" -am package
  ) || exit 1
  cd "$ROOT" || exit 1
}

# The day on which the last build ended, as Maven says in the log.
build_day() {
  sed -n 's/^\[INFO\] Finished at: \([-0-9]*\).*/\1/p' "$LOG"
}

# The version that a pom.xml states, its own or its parent's.
version_of() {
  sed -n 's|^ *<version>\(.*\)</version>|\1|p' "$1" | head -n 1
}

# Compares the public API with that of the last release, by japicmp. A version whose first number differs may break it,
# or, before 1.0, one whose second number does.
compare_api() {
  local last version module old new packages broken=''
  if ! last=$(git -C "$ROOT" describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null); then
    say "no tag v* before this commit: this is the first release, there is no API to compare it with"
    return 0
  fi
  last=${last#v}
  version=$(version_of "$1/first/pom.xml")
  maven_or_die 'fetching japicmp' "$COPY" -Dartifact="$JAPICMP" -DoutputDirectory="$1/japicmp" -Dmdep.stripVersion
  for module in ${PUBLISHED//,/ }; do
    new=$1/first/$module/target/$module-$version.jar old=$1/last/$module.jar
    [ -f "$new" ] || continue
    packages=$(public_packages "$new")
    [ -n "$packages" ] || continue
    start_log
    if ! maven "fetching $module $last" "$COPY" -Dartifact="dev.vgpu:$module:$last" -DoutputDirectory="$1/last" \
      -Dmdep.stripVersion; then
      say "$module $last cannot be fetched: its API is NOT compared (log: $LOG)"
      broken=1
      continue
    fi
    "$JDK/bin/java" -jar "$1"/japicmp/japicmp*.jar --old "$old" --new "$new" --include "$packages" \
      --include-exclusively --only-modified --ignore-missing-classes --error-on-binary-incompatibility \
      --error-on-source-incompatibility >"$1/$module.japicmp" 2>&1 && continue
    say "$module is not compatible with $last: $1/$module.japicmp"
    [ "$(promise "$version")" != "$(promise "$last")" ] || broken=1
  done
  [ -z "$broken" ] || return 1
  say "the public API was compared with that of $last: $version may follow it"
}

# The packages of a jar that others compile against, separated by semicolons: those that its module exports, or all.
public_packages() {
  "$JDK/bin/jar" --describe-module --file "$1" | awk '
    BEGIN { kind = "exports" }
    /^No module descriptor/ { kind = "contains" }
    $1 == kind && NF == 2 { printf "%s%s", separator, $2; separator = ";" }'
}

# The part of a version within which the API stays compatible.
promise() {
  case $1 in
    0.*) printf '%s\n' "$1" | cut -d . -f 1,2 ;;
    *) printf '%s\n' "${1%%.*}" ;;
  esac
}

# What Maven Central asks of each module: https://central.sonatype.org/publish/requirements/
check_release() {
  local module element name lacking='' missing=''
  for module in ${PUBLISHED//,/ }; do
    for element in name description; do
      grep -q "^  <$element>" "$1/$module/pom.xml" || missing="$missing\n  $module/pom.xml has no <$element>"
    done
    [ "$(version_of "$1/$module/pom.xml")" = "$(version_of "$1/pom.xml")" ] ||
      missing="$missing\n  $module/pom.xml has another version than pom.xml"
    grep -q '^  <packaging>pom<' "$1/$module/pom.xml" && continue
    for name in -sources -javadoc; do
      compgen -G "$1/$module/target/$module-*$name.jar" >/dev/null || missing="$missing\n  $module has no $name jar"
    done
    [ -s "$1/$module/target/bom.json" ] || missing="$missing\n  $module has no SBOM"
  done
  # vgpu-bom inherits from nobody, the others from pom.xml.
  for element in url licenses scm developers; do
    if ! grep -q "^  <$element>" "$1/pom.xml"; then
      lacking="$lacking <$element>"
    elif ! grep -q "^  <$element>" "$1/vgpu-bom/pom.xml"; then
      missing="$missing\n  vgpu-bom/pom.xml has no <$element>, which pom.xml has"
    fi
  done
  [ -z "$lacking" ] || missing="$missing\n  pom.xml and vgpu-bom/pom.xml have no$lacking"
  ! grep -q '^  <version>.*-SNAPSHOT</version>' "$1/pom.xml" ||
    missing="$missing\n  the version in pom.xml is a snapshot"
  [ -n "$missing" ] || return 0
  say "Maven Central would refuse it. To be set by the one who releases, or mended:"
  printf '%b\n' "${missing#\\n}" >&2
  return 1
}

# Puts the files together, with their checksums, as they are to be signed.
collect_release() {
  local file module version name
  mkdir -p "$1/files"
  while IFS= read -r file; do
    module=${file%%/*}
    version=$(version_of "$1/first/$module/pom.xml")
    [ -n "$version" ] || die 1 "$module/pom.xml has no version"
    name=${file##*/}
    case $name in
      pom.xml) name=$module-$version.pom ;;
      bom.*) name=$module-$version-cyclonedx.${name#bom.} ;;
    esac
    cp "$1/first/$file" "$1/files/$name" || return 1
  done < <(release_files "$1/first")
  cp "$1/first/pom.xml" "$1/files/vgpu-parent-$version.pom" || return 1
  (cd "$1/files" && LC_ALL=C sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .) &&
    say "target/release/files: $(find "$1/files" -type f | wc -l) files, $(du -s -h "$1/files" | cut -f 1)"
}
