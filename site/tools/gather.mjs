// Makes target/pages, the pages that VitePress builds, from the one source of each: this folder, the modules' docs and
// READMEs, and the command's own help. Fails at a dead link, and at a literal Java fence. A fence behind
// "<!-- code: FILE#REGION -->" has to be that region of a source, without a region the file. With Java, commands of
// vgpu in a page need options that their help has. Two marks compare the tables behind them, up to the next mark, with
// sources. "<!-- every: REGEX in PATH... -->": the code words of the first column are all that the expression finds in
// these files or folders, and no others. "<!-- said in PATH... -->": the texts of the first column are said there.
// With --check it writes nothing, and needs neither packages nor Java.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { pictures } from './draw.mjs'

const site = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '..')
const root = path.dirname(site)
const out = path.join(site, 'target/pages')
const check = process.argv.includes('--check')
const problems = []

const read = (file) => fs.readFileSync(path.join(root, file), 'utf8')
const markdownIn = (folder) =>
  fs.readdirSync(path.join(root, folder)).filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`)

// The source of each page, by its place in the site.
const pages = new Map([
  ['site/results/README.md', 'measured/results.md'],
  ['vgpu-cli/README.md', 'reference/commands.md'],
  ['vgpu-emulator/README.md', 'how/emulator.md'],
  ['vgpu-fleet/README.md', 'how/fleet.md'],
  ['vgpu-dashboard/README.md', 'reference/dashboard.md'],
  ['vgpu-micrometer/README.md', 'reference/micrometer.md'],
  ['vgpu-onnxruntime/README.md', 'reference/onnxruntime.md'],
  ['vgpu-djl/README.md', 'reference/djl.md'],
  ['vgpu-spring-boot-starter/README.md', 'reference/spring-boot.md'],
  ['vgpu-k8s-adapter/README.md', 'reference/kubernetes.md'],
  ['vgpu-k8s-adapter/docs/names.md', 'reference/kubernetes-names.md'],
  ['vgpu-kmod/docs/kernel-module.md', 'how/kernel-module.md'],
  ['vgpu-k8s-adapter/docs/scheduler.md', 'reference/kubernetes-scheduler.md'],
  ['SECURITY.md', 'how/security.md'],
  ...markdownIn('vgpu-cuda/docs').map((file) => [file, `how/${path.basename(file)}`]),
  ...['', '/start', '/guides', '/coming-from', '/how', '/measured', '/reference']
    .flatMap((folder) => markdownIn(`site${folder}`)).map((file) => [file, file.slice(5)])
])

function rewriteLink(source, text, target) {
  if (/^(https?:|#|\/)/.test(target)) return `[${text}](${target})`
  const [file, hash] = target.split('#')
  const aim = path.posix.normalize(path.posix.join(path.posix.dirname(source), file)).replace(/\/$/, '')
  if (!fs.existsSync(path.join(root, aim))) {
    problems.push(`${source}: dead link ${target}`)
    return text
  }
  const place = pages.get(aim) ?? pages.get(`${aim}/README.md`)
  if (place) {
    // A file's name says nothing to the reader of a site: the page's title does.
    const shown = text === path.posix.basename(aim) ? titleOf(pages.has(aim) ? aim : `${aim}/README.md`) : text
    return `[${shown}](/${place}${hash ? `#${hash}` : ''})`
  }
  // A source is not on the site: its folder says where to look in a checkout.
  const [, project] = aim.match(/^(.+?)(?:\/src\/.*|\/README\.md)$/) ?? []
  if (text.includes(path.posix.basename(project ?? aim)) || text.includes(path.posix.basename(aim))) return text
  return project ? `\`${text.replace(/`/g, '')}\` in \`${project}\`` : `${text} (\`${aim}\`)`
}

const titleOf = (source) => read(source).match(/^# (.*)$/m)[1]

function inlinePicture(source, alt, target) {
  const file = path.posix.join(path.posix.dirname(source), target)
  if (!fs.existsSync(path.join(root, file))) {
    problems.push(`${source}: no picture ${target}`)
    return ''
  }
  const label = alt.replace(/\s+/g, ' ').trim()
  const svg = read(file).replace(/<\?xml[^>]*>\s*|<style>[^<]*<\/style>\s*|<!--[\s\S]*?-->\s*/g, '')
    .replace(/\n\s*\n/g, '\n').replace('<svg', `<svg role="img" aria-label="${label}"`).trim()
  return `<div class="picture" tabindex="0">\n${svg}\n</div>`
}

// The pictures of pages that are no drawings, by their place beside the page.
const photos = new Map()

function photoLink(source, alt, target) {
  const file = path.posix.join(path.posix.dirname(source), target)
  if (!fs.existsSync(path.join(root, file))) problems.push(`${source}: no picture ${target}`)
  const name = path.posix.basename(file)
  photos.set(path.posix.join(path.posix.dirname(pages.get(source)), name), file)
  return `![${alt.replace(/\s+/g, ' ').trim()}](./${name})`
}

// The lines of a region, without the indentation that they have in common.
function regionOf(file, region) {
  if (!fs.existsSync(path.join(root, file))) return undefined
  const lines = read(file).split('\n')
  const at = (word) => lines.findIndex((line) => line.trim() === `// ${word} ${region}`)
  const [from, to] = [at('#region'), at('#endregion')]
  if (from < 0 || to < from) return undefined
  const body = lines.slice(from + 1, to).join('\n').trimEnd().split('\n')
  const indent = Math.min(...body.filter((line) => line.trim()).map((line) => line.match(/^ */)[0].length))
  return body.map((line) => line.slice(indent)).join('\n')
}

// What a fence behind "<!-- code: ... -->" repeats: a region of a source, a whole file, or README.md's block.
function repeatedBy(file, region, language) {
  if (!fs.existsSync(path.join(root, file))) return undefined
  if (file === 'README.md') return readmeBlock(language).trimEnd()
  return region ? regionOf(file, region) : read(file).trimEnd()
}

function checkFence(source, before, language, body) {
  const [, file, region] = before?.match(/^<!-- code: ([^#\s]+)(?:#(\w+))? -->$/) ?? []
  if (!file) {
    if (language === 'java') problems.push(`${source}: a literal Java fence; repeat a sample's region`)
  } else if (repeatedBy(file, region, language) !== body) {
    problems.push(`${source}: the fence is not ${region ? `region ${region} of ` : ''}${file}`)
  }
}

function pageOf(source) {
  let fence = -1
  const text = read(source).replace('<!-- backends of README.md -->\n', backendTable)
  return text.split('\n').map((line, at, lines) => {
    if (/^\s*```/.test(line)) {
      if (fence < 0) fence = at
      else {
        const body = lines.slice(fence + 1, at).join('\n')
        checkFence(source, lines[fence - 1], lines[fence].trim().slice(3), body)
        fence = -1
      }
    }
    return line
  }).join('\n').split(/(```[\s\S]*?```|`[^`\n]*`)/).map((part, i) => i % 2 ? part : part
    .replace(/^<<<.*$/gm, (line) => problems.push(`${source}: readers of the repository do not see what ${line} includes`))
    .replace(/!\[([^\]]*)\]\(([^)\s]+\.svg)\)/g, (_, alt, target) => inlinePicture(source, alt, target))
    .replace(/!\[([^\]]*)\]\(([^)\s]+\.png)\)/g, (_, alt, target) => photoLink(source, alt, target))
  ).join('').replace(/(?<!!)\[((?:`[^`]*`|[^\]`])+)\]\(([^)\s]+)\)/g,
    (_, text, target) => rewriteLink(source, text, target))
}

const languages = /\.(java|c|h|def|mts|sh)$/

// The text of sources, with Java's and C's strings in one piece.
function textIn(places) {
  return places.flatMap((place) => {
    const whole = path.join(root, place)
    if (!fs.existsSync(whole)) return problems.push(`no such source: ${place}`) && []
    if (fs.statSync(whole).isFile()) return [read(place)]
    return fs.readdirSync(whole, { recursive: true }).filter((name) => languages.test(name))
      .map((name) => read(path.join(place, name)))
  }).join('\n').replace(/"\s*\+?\s*"/g, '').replace(/\\"/g, '"')
}

function checkMarks(source) {
  const marked = /^<!-- ((?:every:|said in) .*?) -->$([\s\S]*?)(?=^<!-- |(?![\s\S]))/gm
  for (const [, mark, table] of read(source).matchAll(marked)) {
    const rows = table.replace(/^\| .*\n(?=\|--)/gm, '').split('\n').filter((line) => line.startsWith('| '))
    const cells = rows.map((line) => line.split(' | ')[0])
    const shown = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]))
    const [, regex, places] = mark.match(/^every: (.*) in (\S.*)$/) ?? [, , mark.slice('said in '.length)]
    const text = textIn(places.split(' '))
    if (!shown.length) problems.push(`${source}: no table behind "${mark}"`)
    if (regex) {
      const there = new Set([...text.matchAll(new RegExp(regex, 'g'))].map((match) => match[1]))
      there.forEach((name) => shown.includes(name) || problems.push(`${source}: ${name} of ${places} is missing`))
      shown.forEach((name) => there.has(name) || problems.push(`${source}: ${name} is not in ${places}`))
    } else {
      for (const said of shown) {
        const isSaid = said.split('…').every((part) => text.includes(part.trim()))
        if (!isSaid) problems.push(`${source}: nothing says: ${said}`)
      }
    }
  }
}

// README's table of the backends, which a test writes.
function backendTable() {
  const [, table] = read('README.md').match(/^<!-- backends: .*-->\n([\s\S]*?)^<!-- end of backends -->/m) ?? []
  if (!table) problems.push('README.md: no table of the backends')
  return table ?? ''
}

// README's first block of a language: ./vgpu test compiles and runs it in a project of its own.
function readmeBlock(language) {
  const block = read('README.md').match(new RegExp('```' + language + '\\n([\\s\\S]*?)```'))
  if (!block) problems.push(`README.md: no ${language} block`)
  return block?.[1] ?? ''
}

function help(...words) {
  const java = process.env.VGPU_SITE_JAVA
  // A short run: the same choices for a quick start as ./vgpu makes.
  const options = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', process.env.VGPU_SITE_CLASSPATH]
  const run = spawnSync(java, [...options, 'dev.vgpu.cli.VgpuCommand', ...words, '--help'],
    { encoding: 'utf8', env: { ...process.env, VGPU_HOME: root, COLUMNS: '80', NO_COLOR: '1' } })
  if (run.status !== 0) problems.push(`vgpu ${words.join(' ')} --help: ${run.error ?? run.stderr}`)
  return (run.stdout ?? '').trimEnd()
}

function commandsIn(text) {
  const lines = (text.split(/^Commands:.*$/m)[1] ?? '').split('\n')
  return lines.map((line) => line.match(/^  ([a-z][a-z-]*)\s/)?.[1]).filter(Boolean)
}

// Commands of the checkout's script, as its help lists them, and one whose further options go elsewhere.
const ofCheckout = [...read('vgpu').matchAll(/^  ([a-z][a-z0-9-]*) {2,}[a-z]/gm)].map((match) => match[1])
const unchecked = new Set([...ofCheckout, 'bench'])

function checkCommand(source, line, helps) {
  const words = line.replace(/\s[#|].*$/, '').trim().split(/\s+/).slice(1)
  if (unchecked.has(words[0])) return
  const command = []
  while (helps.has([...command, words[0]].join(' '))) command.push(words.shift())
  const known = helps.get(command.join(' '))
  if (!command.length && !words[0]?.startsWith('-')) problems.push(`${source}: no such command: ${line}`)
  const end = words.indexOf('--')
  const own = end < 0 ? words : words.slice(0, end)
  for (const option of own.filter((word) => /^-/.test(word)).map((word) => word.split('=')[0])) {
    if (!known.split(/[^\w-]+/).includes(option)) problems.push(`${source}: ${option} is no option: ${line}`)
  }
}

function checkCommands(helps) {
  for (const source of pages.keys()) {
    for (const [, line] of read(source).matchAll(/`((?:\.\/)?vgpu [^`\n]+)`/g)) {
      if (helps.has(line.split(/\s+/)[1])) checkCommand(source, line, helps)
    }
    for (const [, text] of read(source).matchAll(/^ *```(?:sh)?\n([\s\S]*?)^ *```$/gm)) {
      const lines = text.replace(/\\\n/g, ' ').split('\n')
      lines.filter((line) => /^ *(\.\/)?vgpu\s/.test(line)).forEach((line) => checkCommand(source, line, helps))
    }
  }
}

function cliPage() {
  if (!process.env.VGPU_SITE_JAVA) {
    problems.push('the reference of the command needs Java: run ./vgpu site')
    return ''
  }
  const helps = new Map()
  const section = (words, level) => {
    const text = help(...words)
    helps.set(words.join(' '), text)
    const title = ['vgpu', ...words].join(' ')
    const more = commandsIn(text).filter((name) => name !== 'help')
    return `${'#'.repeat(level)} ${title}\n\n\`\`\`text\n${text}\n\`\`\`\n\n` +
      more.map((name) => section([...words, name], words.length + 2)).join('')
  }
  const all = section([], 2)
  checkCommands(helps)
  return `# Every option\n\nThe text of \`vgpu COMMAND --help\`, for every command.\n\n${all}`
}

// The versions of the documentation: this one, and that of each tag, in the folder of the tag's name.
function versionsPage() {
  const [, version] = read('pom.xml').match(/<version>(.*?)<\/version>/)
  const run = spawnSync('git', ['tag', '--list', 'v[0-9]*', '--sort=-v:refname'], { cwd: root, encoding: 'utf8' })
  const tags = (run.stdout ?? '').split('\n').filter(Boolean)
  const rows = tags.map((tag) => `| <a href="/${tag}/index.html" target="_self">${tag}</a> | a release |\n`).join('')
  return '# Versions\n\nEach release has its own documentation.\n\n' +
    `| version | |\n|---|---|\n| ${version} | these pages${tags.length ? '' : '; there is no release yet'} |\n${rows}`
}

for (const { name, file, svg } of pictures()) {
  if (fs.existsSync(file) && fs.readFileSync(file, 'utf8') === svg) continue
  problems.push(`site/pictures/${name}: its SVG is another; run npm run draw in site/`)
}
const written = new Map()
const sideBar = read('site/.vitepress/config.mts')
for (const [source, place] of pages) {
  written.set(place, pageOf(source))
  checkMarks(source)
  const entry = `'/${place.replace(/(index)?\.md$/, '')}'`
  if (!sideBar.includes(entry)) problems.push(`${source}: no entry in the side bar`)
}
if (!check) {
  written.set('reference/cli.md', cliPage())
  written.set('versions.md', versionsPage())
}
if (problems.length) {
  problems.forEach((problem) => console.error(problem))
  process.exit(1)
}
if (!check) {
  fs.rmSync(out, { recursive: true, force: true })
  for (const [place, text] of written) {
    fs.mkdirSync(path.dirname(path.join(out, place)), { recursive: true })
    fs.writeFileSync(path.join(out, place), text)
  }
  for (const [place, file] of photos) fs.copyFileSync(path.join(root, file), path.join(out, place))
}
console.log(`${pages.size} pages`)
