#!/usr/bin/env bash
# Does what a reader of README.md does: makes a project outside the checkout from README's first xml and first java
# block alone, and compiles and runs it on the installed artifacts (./vgpu install). Then does the same with the
# project in integration/outside, which uses all libraries for applications.
# Usage: outside-project.sh [README]
set -euo pipefail
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readme=${1:-$root/README.md}

fail() {
  printf 'outside-project: %s\n' "$@" >&2
  exit 1
}

# The first fenced block of a language.
block() {
  awk -v fence="\`\`\`$1" '
    !inside && !done && $1 == fence { inside = 1; next }
    inside && /^```/ { inside = 0; done = 1 }
    inside { print }' "$readme"
}

# The version of a plugin as the root pom pins it.
plugin_version() {
  awk -v id="<artifactId>$1</artifactId>" '
    index($0, id) { found = 1 }
    found && /<version>/ { gsub(/.*<version>|<\/version>.*/, ""); print; exit }' "$root/pom.xml"
}

# A property of the root pom.
pom_property() {
  sed -n "s:.*<$1>\\(.*\\)</$1>.*:\\1:p" "$root/pom.xml" | head -n 1
}

# Compiles the project in the current directory. What it is, for the message, then options for Maven.
compile() {
  local what=$1
  shift
  # shellcheck disable=SC2086 # a list of words
  mvn -B -q ${VGPU_MAVEN_ARGS-} "$@" compile dependency:build-classpath -Dmdep.outputFile=classpath.txt \
    -Dmdep.includeScope=runtime >maven.log 2>&1 || {
    grep '^\[ERROR\]' maven.log | head -n 20 >&2 || cat maven.log >&2
    fail "$what does not compile in a project of its own"
  }
}

# Runs a class of the project in the current directory. Each further argument must be in its output.
run() {
  local class=$1 limit='' status=0 expected
  shift
  if command -v timeout >/dev/null 2>&1; then limit='timeout 60'; fi
  # ONNX Runtime 1.29 crashes at a command line above 4,000 characters while its telemetry is on.
  # shellcheck disable=SC2086 # a command and its argument
  ORT_DISABLE_TELEMETRY=1 DJL_CACHE_DIR=$PWD/djl $limit "$java_program" -cp "target/classes:$(cat classpath.txt)" \
    "$class" >output.txt 2>error.txt || status=$?
  cat output.txt
  if [ $status -ne 0 ]; then
    cat error.txt >&2
    [ $status -ne 124 ] || fail "$class did not end within 60 seconds"
    fail "$class ended with status $status"
  fi
  for expected; do
    grep -q "$expected" output.txt || {
      cat error.txt >&2
      fail "the output of $class has no line with '$expected'"
    }
  done
}

xml=$(block xml)
java=$(block java)
[ -n "$xml" ] || fail "$readme has no \`\`\`xml block with the dependency"
[ -n "$java" ] || fail "$readme has no \`\`\`java block with a complete class"
class=$(printf '%s\n' "$java" | sed -n 's/^public \(final \)*class \([A-Za-z0-9_]*\).*/\2/p' | head -n 1)
[ -n "$class" ] || fail "the java block of $readme declares no public class"
package=$(printf '%s\n' "$java" | sed -n 's/^package \([A-Za-z0-9_.]*\);.*/\1/p' | head -n 1)
case $xml in *'<dependencies>'*) ;; *) xml="<dependencies>$xml</dependencies>" ;; esac

project=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-outside.XXXXXX")
trap 'rm -rf "$project"' EXIT
case $project in "$root"/*) fail "the temporary directory $project is inside the checkout" ;; esac
sources=$project/src/main/java${package:+/${package//./\/}}
mkdir -p "$sources"
printf '%s\n' "$java" >"$sources/$class.java"
java_program=${JAVA_HOME:+$JAVA_HOME/bin/}java
cat >"$project/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>outside</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
$xml
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-compiler-plugin</artifactId>
        <version>$(plugin_version maven-compiler-plugin)</version>
        <configuration>
          <showWarnings>true</showWarnings>
          <compilerArgs>
            <arg>-Xlint:all</arg>
            <arg>-Werror</arg>
          </compilerArgs>
        </configuration>
      </plugin>
      <plugin>
        <artifactId>maven-resources-plugin</artifactId>
        <version>$(plugin_version maven-resources-plugin)</version>
      </plugin>
      <plugin>
        <artifactId>maven-dependency-plugin</artifactId>
        <version>$(plugin_version maven-dependency-plugin)</version>
      </plugin>
    </plugins>
  </build>
</project>
EOF

cd "$project"
compile 'what README.md shows'
run "${package:+$package.}$class" 'hello from'
printf 'outside-project: README.md compiles and runs on the installed artifacts\n'

cp -R "$root/integration/outside" "$project/libraries"
cd "$project/libraries"
rm -rf target
compile 'integration/outside' \
  "-Dversion.vgpu=$(sed -n 's:^  <version>\(.*\)</version>:\1:p' "$root/pom.xml" | head -n 1)" \
  "-Dversion.spring-boot-3=$(pom_property version.spring-boot-3)" \
  "-Dversion.onnxruntime=$(pom_property version.onnxruntime)" \
  "-Dversion.djl=$(pom_property version.djl)" \
  "-Dversion.tribuo=$(pom_property version.tribuo)" \
  "-Dversion.compiler-plugin=$(plugin_version maven-compiler-plugin)" \
  "-Dversion.resources-plugin=$(plugin_version maven-resources-plugin)" \
  "-Dversion.dependency-plugin=$(plugin_version maven-dependency-plugin)"
run com.example.outside.OutsideService '^ort=6.0$' '^djl=15.0$' '^dashboard=200$' '^ort quota=6.7108864E7 calls=2$' \
  '^djl quota=6.7108864E7 calls=2$'
printf '%s\n' \
  'outside-project: a service runs the starter, the dashboard, and the modules for Micrometer, ONNX Runtime and DJL'
