// Opens every built page in a real browser, in both themes and at three sizes, and fails at what a reader would trip
// over. Serves target/dist itself: a request to any other host is an error. Without a browser it says so, and passes.
import fs from 'node:fs'
import path from 'node:path'
import zlib from 'node:zlib'
import { chromium } from 'playwright-core'

const dist = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../target/dist')
const home = 'http://site.invalid'
const base = process.env.VGPU_SITE_BASE ?? '/'
const sizes = [{ width: 390, height: 844 }, { width: 1920, height: 1080 }, { width: 1366, height: 768 }]
const firstPageKiB = 150
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml',
  '.png': 'image/png' }
const problems = []

// The browser's file, or nothing.
function browserFile() {
  const named = process.env.VGPU_BROWSER
  if (named) {
    if (fs.existsSync(named)) return named
    console.error(`VGPU_BROWSER=${named}: no such file; name the file of a Chromium or Chrome`)
    process.exit(1)
  }
  const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
  return (process.env.PATH ?? '').split(':').flatMap((folder) => names.map((name) => path.join(folder, name)))
    .find((file) => fs.existsSync(file))
}

// The file of a URL's path in the site, or nothing.
function fileOf(place) {
  if (!place.startsWith(base)) return undefined
  const file = path.join(dist, decodeURIComponent(place.slice(base.length)), place.endsWith('/') ? 'index.html' : '')
  return fs.existsSync(file) && fs.statSync(file).isFile() ? file : undefined
}

// Runs in the page: the structure that screen readers and search go by. Answers problems, ids and links.
function structure() {
  const found = []
  const shown = (element) => element.checkVisibility()
  const named = (element) =>
    element.textContent.trim() || element.getAttribute('aria-label') || element.getAttribute('title')
  const say = (what, element) => found.push(`${what}: ${element.outerHTML.replace(/\s+/g, ' ').slice(0, 120)}`)
  const headings = [...document.querySelectorAll('main :is(h1, h2, h3, h4, h5, h6)')].filter(shown)
  if (headings.filter((heading) => heading.tagName === 'H1').length !== 1) found.push('not exactly one first heading')
  headings.forEach((heading, at) => {
    const step = Number(heading.tagName[1]) - (at ? Number(headings[at - 1].tagName[1]) : 0)
    if (step > 1) say('a level of headings is left out', heading)
  })
  if (!document.documentElement.lang) found.push('no language')
  if (!document.title.trim()) found.push('no title')
  document.querySelectorAll('img').forEach((image) => image.alt.trim() || say('no alternative text', image))
  document.querySelectorAll('.vp-doc svg').forEach((svg) => {
    if (svg.getAttribute('role') !== 'img' || !svg.getAttribute('aria-label')) say('no alternative text', svg)
  })
  document.querySelectorAll('a[href], button').forEach((element) => {
    if (shown(element) && !named(element)) say('no name', element)
  })
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id)
  ids.filter((id, at) => ids.indexOf(id) !== at).forEach((id) => found.push(`two elements of the id ${id}`))
  const links = [...document.querySelectorAll('a[href]')].map((link) => link.href)
  return { found, ids, links }
}

// Runs in the page: texts of too little contrast, by the formula of WCAG 2 and its level AA.
function contrast() {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const colours = new Map()
  const rgba = (text) => {
    if (!colours.has(text)) {
      canvas.clearRect(0, 0, 1, 1)
      canvas.fillStyle = text
      canvas.fillRect(0, 0, 1, 1)
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
      colours.set(text, [r, g, b, a / 255])
    }
    return colours.get(text)
  }
  const over = ([r, g, b, a], under) => [r, g, b].map((value, i) => value * a + under[i] * (1 - a))
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const white = [255, 255, 255]
  const parents = (element) => (element ? [element, ...parents(element.parentElement)] : [])
  // What is painted behind a text: its ancestors, or for a picture's text the shapes below its middle.
  const layers = (element) => {
    if (!(element instanceof SVGElement)) return parents(element).map((e) => getComputedStyle(e).backgroundColor)
    element.scrollIntoView({ block: 'center', inline: 'center' })
    const box = element.getBoundingClientRect()
    return document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).filter((e) => e !== element)
      .map((e) => {
        const style = getComputedStyle(e)
        if (!(e instanceof SVGElement)) return style.backgroundColor
        if (['svg', 'line'].includes(e.tagName) || style.fill === 'none') return 'transparent'
        const [r, g, b, a] = rgba(style.fill)
        return `rgba(${r}, ${g}, ${b}, ${a * style.fillOpacity})`
      })
  }
  const behindOf = (element) => layers(element).reverse().reduce((under, colour) => over(rgba(colour), under), white)
  // Neighbours have one background; a code block has thousands.
  const seen = new Map()
  const found = new Map()
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim()
    const element = walker.currentNode.parentElement
    if (!text || element.closest('script, style, noscript')) continue
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue
    const style = getComputedStyle(element)
    const [r, g, b, a] = rgba(element instanceof SVGElement ? style.fill : style.color)
    const opacity = parents(element).reduce((product, e) => product * getComputedStyle(e).opacity, 1)
    const key = element instanceof SVGElement ? element : element.parentElement
    const own = rgba(style.backgroundColor)
    if (!seen.has(key)) seen.set(key, behindOf(key))
    const behind = element instanceof SVGElement ? seen.get(key) : over(own, seen.get(key))
    const ink = over([r, g, b, a * opacity], behind)
    const [low, high] = [light(ink), light(behind)].sort((x, y) => x - y)
    const ratio = (high + 0.05) / (low + 0.05)
    const size = parseFloat(style.fontSize)
    const needed = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5
    if (ratio < needed) found.set(`${ink.map(Math.round)} on ${behind.map(Math.round)}: ${ratio.toFixed(2)}`, text)
  }
  return [...found].map(([what, text]) => `contrast of ${what}, ${text.slice(0, 40)}`)
}

// Runs in the page: what sticks out of the window, so that the whole page would scroll sideways.
function overflow() {
  const { scrollWidth, clientWidth } = document.documentElement
  return scrollWidth > clientWidth ? [`${scrollWidth} pixels wide in a window of ${clientWidth}`] : []
}

const executablePath = browserFile()
if (!executablePath) {
  console.error('no browser: the pages were NOT looked at; install chromium, or name one in VGPU_BROWSER')
  process.exit(0)
}

const pages = fs.readdirSync(dist, { recursive: true })
  .filter((name) => name.endsWith('.html') && !name.startsWith('api/') && name !== '404.html').sort()
const browser = await chromium.launch({ executablePath })
const context = await browser.newContext({ reducedMotion: 'reduce' })
let page = ''
let bytes = 0
const say = (what) => problems.push(`${page}: ${what}`)
await context.route('**/*', (route) => {
  const url = new URL(route.request().url())
  const file = url.origin === home ? fileOf(url.pathname) : undefined
  if (!file) {
    say(url.origin === home ? `no file ${url.pathname}` : `fetches ${url.href}`)
    return route.fulfill({ status: 404, body: '' })
  }
  const body = fs.readFileSync(file)
  bytes += zlib.gzipSync(body).length
  return route.fulfill({ body, contentType: types[path.extname(file)] ?? 'application/octet-stream' })
})
const tab = await context.newPage()
tab.on('console', (message) => ['error', 'warning'].includes(message.type()) && say(`console: ${message.text()}`))
tab.on('pageerror', (error) => say(`script: ${error.message}`))

const ids = new Map()
const links = []
let firstPage = 0
for (page of pages) {
  bytes = 0
  await tab.goto(`${home}${base}${page}`, { waitUntil: 'load' })
  if (page === 'index.html') firstPage = Math.ceil(bytes / 1024)
  // The page's script has run when its switch of themes is there.
  await tab.waitForSelector('.VPSwitchAppearance', { state: 'attached' })
  const seen = await tab.evaluate(structure)
  seen.found.forEach(say)
  ids.set(`${base}${page}`, new Set(seen.ids))
  seen.links.forEach((link) => links.push([page, new URL(link)]))
  for (const size of sizes) {
    await tab.setViewportSize(size)
    for (const what of await tab.evaluate(overflow)) say(`at ${size.width} x ${size.height}: ${what}`)
  }
  for (const colorScheme of ['dark', 'light']) {
    await tab.emulateMedia({ colorScheme })
    await tab.waitForFunction((dark) => document.documentElement.classList.contains('dark') === dark,
      colorScheme === 'dark')
    for (const what of await tab.evaluate(contrast)) say(`${colorScheme}: ${what}`)
  }
}
// The Javadoc tool makes its own pages; they may neither fail nor fetch.
for (page of ['api/index.html', 'api/dev/vgpu/GpuPool.html']) {
  await tab.goto(`${home}${base}${page}`, { waitUntil: 'load' })
}
await browser.close()

for (const [source, url] of links) {
  // Other versions are not in this build.
  if (url.origin !== home || /^\/v\d/.test(url.pathname.slice(base.length - 1))) continue
  if (base !== '/' && url.pathname === '/versions.html') continue
  page = source
  const place = url.pathname.replace(/\/$/, '/index.html')
  const hash = decodeURIComponent(url.hash.slice(1))
  if (!fileOf(place)) say(`dead link ${url.pathname}`)
  else if (hash && ids.has(place) && !ids.get(place).has(hash)) say(`dead link ${url.pathname}${url.hash}`)
}
page = 'index.html'
if (firstPage > firstPageKiB) say(`${firstPage} KiB gzipped; at most ${firstPageKiB}`)
new Set(problems).forEach((problem) => console.error(problem))
console.log(`${pages.length} pages looked at in a browser; the first is ${firstPage} KiB gzipped`)
process.exit(problems.length ? 1 : 0)
