# shellcheck shell=bash
# Sourced by ./vgpu and the gate: the documentation site, and the checks of its sources.

# Builds the site into site/target/dist. Looks at its pages where a browser is (site/tools/browser.mjs).
command_site() {
  command -v npm >/dev/null 2>&1 || die 69 "the site needs Node 20 or newer with npm"
  prepare_command vgpu-bench
  cd "$ROOT/site" || exit 1
  if ! cmp -s package-lock.json node_modules/.vgpu-lock; then
    npm ci --no-audit --no-fund || die 1 "npm ci failed"
    cp package-lock.json node_modules/.vgpu-lock
  fi
  VGPU_SITE_JAVA=$JDK/bin/java VGPU_SITE_CLASSPATH=$CLASSPATH_LINE npm run --silent build ||
    die 1 "the site was not built"
  cd "$ROOT" || exit 1
  write_javadoc || die 1 "the API's pages were not built (log: $ROOT/target/javadoc.log)"
  npm --prefix site run --silent check || die 1 "site/target/dist is built, but the checks of its pages failed"
  say "built site/target/dist"
}

# The Javadoc of the packages that integrators compile against, in site/target/dist/api. Other modules export none.
write_javadoc() {
  local path repository version folder files=()
  for folder in vgpu-api/src/main/java/dev/vgpu{,/backend,/request,/spi,/watch} \
    vgpu-{dashboard,micrometer,onnxruntime,djl}/src/main/java/dev/vgpu/*/ \
    vgpu-spring-boot-autoconfigure/src/main/java/dev/vgpu/spring; do
    files+=("${folder%/}"/*.java)
  done
  # Between them, the samples and the benchmarks use every library that these packages do.
  # The null annotations are on no class path: they are beside the others in Maven's local repository.
  path=$(cat {vgpu-bench,samples/java-libraries,samples/spring-service}/target/classpath.txt | tr '\n' ':')
  version=$(sed -n 's/.*<version.jspecify>\(.*\)<.*/\1/p' pom.xml)
  repository=${path%%/org/slf4j/*}
  path+=${repository##*:}/org/jspecify/jspecify/$version/jspecify-$version.jar
  rm -rf site/target/dist/api
  "$JDK/bin/javadoc" -quiet -Xdoclint:none -notimestamp -encoding UTF-8 -windowtitle vgpu -doctitle 'The API of vgpu' \
    -header '<div style="margin-top: 14px"><a href="{@docRoot}/../index.html">vgpu</a></div>' \
    -d site/target/dist/api -classpath "$path" "${files[@]}" >target/javadoc.log 2>&1 || return 1
  # Its fonts are not in every JDK. The site has no fonts of its own either.
  rm -rf site/target/dist/api/resources/fonts
  sed -i '/@import.*fonts/d' site/target/dist/api/stylesheet.css
}

# Dead links, missing regions and literal Java in the site's sources; needs Node alone, and is left out without it.
check_site() {
  if ! command -v node >/dev/null 2>&1; then
    say "no Node: the site's sources were NOT checked"
    return 0
  fi
  node "$ROOT/site/tools/gather.mjs" --check >/dev/null
}
