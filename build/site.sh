# shellcheck shell=bash
# Sourced by ./vgpu and the gate: the documentation site, and the checks of its sources.

# Builds the site into site/target/dist.
command_site() {
  command -v npm >/dev/null 2>&1 || die 69 "the site needs Node 20 or newer with npm"
  prepare_command
  cd "$ROOT/site" || exit 1
  if ! cmp -s package-lock.json node_modules/.vgpu-lock; then
    npm ci --no-audit --no-fund || die 1 "npm ci failed"
    cp package-lock.json node_modules/.vgpu-lock
  fi
  VGPU_SITE_JAVA=$JDK/bin/java VGPU_SITE_CLASSPATH=$CLASSPATH_LINE npm run --silent build || die 1 "the site was not built"
  say "built site/target/dist"
}

# Dead links, missing regions and literal Java in the site's sources; needs Node alone, and is left out without it.
check_site() {
  if ! command -v node >/dev/null 2>&1; then
    say "no Node: the site's sources were NOT checked"
    return 0
  fi
  node "$ROOT/site/tools/gather.mjs" --check >/dev/null
}
