// Draws pictures/*.svg from the text beside each, pictures/*.txt. One line of the text is one thing:
//   size WIDTH HEIGHT
//   box NAME X Y WIDTH HEIGHT [STYLE...] : LINE | LINE    styles: online, offline, dashed, filled, bold, top
//   arrow FROM TO [STYLE...] : LABEL                      between boxes, or X,Y; styles: dashed, online, offline, plain
//   text X Y [start|middle|end] [STYLE...] : TEXT          styles: bold, small
//   line X,Y X,Y... [STYLE...]                            styles: dashed, online, offline, bold
//   scale X WIDTH TOP BOTTOM linear|log FROM TO : TICK TICK...     of the bars below it, with a line at each tick
//   bar Y VALUE [STYLE...] : LABEL | TEXT                 styles: online, offline; "#" in TEXT is the value
// A VALUE is a number, or FILE:NAME.NAME, a figure of results/FILE.json.
// An arrow is straight where boxes face one another. "@N" behind a box's name moves its end by N along the side.
import fs from 'node:fs'
import path from 'node:path'

const folder = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../pictures')
const colours = { online: '#3a86c8', offline: '#c8763a' }
const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
const colourOf = (styles) => colours[styles.find((style) => colours[style])] ?? 'currentColor'

function drawText(x, y, text, styles) {
  const anchor = styles.find((style) => ['start', 'end'].includes(style)) ?? 'middle'
  const weight = styles.includes('bold') ? ' font-weight="600"' : ''
  const size = styles.includes('small') ? ' font-size="12"' : ''
  return `<text x="${x}" y="${y}" text-anchor="${anchor}"${weight}${size}>${escape(text)}</text>`
}

function drawBox([, , x, y, width, height, ...styles], label) {
  const dash = styles.includes('dashed') ? ' stroke-dasharray="5 4"' : ''
  const fill = styles.includes('filled') ? ` fill="${colourOf(styles)}" fill-opacity="0.18"` : ' fill="none"'
  const rect = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6"${fill} ` +
    `stroke="${colourOf(styles)}" stroke-width="${colourOf(styles) === 'currentColor' ? 1.5 : 2}"${dash}/>`
  const lines = label ? label.split('|').map((line) => line.trim()) : []
  const middle = Number(x) + width / 2
  const first = styles.includes('top') ? Number(y) + 19 : Number(y) + height / 2 + 5 - (lines.length - 1) * 9
  return [rect, ...lines.map((line, at) =>
    drawText(middle, first + at * 18, line, at ? ['small'] : styles.includes('bold') ? ['bold'] : []))]
}

// The two ends of an arrow.
function ends(boxes, from, to) {
  const parse = (end) => {
    if (/^-?\d+,-?\d+$/.test(end)) {
      const [x, y] = end.split(',').map(Number)
      return { x, y, width: 0, height: 0, shift: 0 }
    }
    const [name, shift] = end.split('@')
    if (!boxes.has(name)) throw new Error(`no box ${name}`)
    return { ...boxes.get(name), shift: Number(shift ?? 0) }
  }
  const [a, b] = [parse(from), parse(to)]
  const overlap = (p, q, side, length) =>
    [Math.max(p[side], q[side]), Math.min(p[side] + p[length], q[side] + q[length])]
  const [left, right] = overlap(a, b, 'x', 'width')
  if (left <= right) {
    const x = (left + right) / 2 + a.shift + b.shift
    return a.y < b.y ? [x, a.y + a.height, x, b.y] : [x, a.y, x, b.y + b.height]
  }
  const [top, bottom] = overlap(a, b, 'y', 'height')
  if (top > bottom) throw new Error(`${from} and ${to} do not face one another`)
  const y = (top + bottom) / 2 + a.shift + b.shift
  return a.x < b.x ? [a.x + a.width, y, b.x, y] : [a.x, y, b.x + b.width, y]
}

function drawArrow(boxes, [, from, to, ...styles], label) {
  const [x1, y1, x2, y2] = ends(boxes, from, to)
  const colour = colourOf(styles)
  const dash = styles.includes('dashed') ? ' stroke-dasharray="5 4"' : ''
  const parts = [`<path d="M${x1} ${y1}L${x2} ${y2}" fill="none" stroke="${colour}" stroke-width="1.5"${dash}/>`]
  if (!styles.includes('plain')) {
    const [dx, dy] = [Math.sign(x2 - x1), Math.sign(y2 - y1)]
    const [bx, by] = [x2 - 9 * dx, y2 - 9 * dy]
    parts.push(`<path d="M${x2} ${y2}L${bx - 4 * dy} ${by - 4 * dx}L${bx + 4 * dy} ${by + 4 * dx}Z" fill="${colour}"/>`)
  }
  if (label) {
    const lines = label.split('|').map((line) => line.trim())
    lines.forEach((line, at) => parts.push(y1 === y2
      ? drawText((x1 + x2) / 2, y1 - 7 - 16 * (lines.length - 1 - at), line, ['small'])
      : drawText(x1 + 7, (y1 + y2) / 2 + 4 + 16 * at - 8 * (lines.length - 1), line, ['small', 'start'])))
  }
  return parts
}

function drawLine(words) {
  const points = words.filter((word) => /^-?\d+,-?\d+$/.test(word)).map((point) => point.replace(',', ' '))
  const dash = words.includes('dashed') ? ' stroke-dasharray="5 4"' : ''
  const width = words.includes('bold') ? 2.5 : 1.5
  return [`<path d="M${points.join('L')}" fill="none" stroke="${colourOf(words)}" stroke-width="${width}"${dash}/>`]
}

// A linear or logarithmic scale, as a function from a value to its place.
function scaleOf([, x, width, , , kind, from, to]) {
  const part = kind === 'log'
    ? (value) => Math.log(value / from) / Math.log(to / from)
    : (value) => (value - from) / (to - from)
  return (value) => Math.round(Number(x) + Number(width) * Math.min(1, Math.max(0, part(value))))
}

function drawScale(words, label, place) {
  const [top, bottom] = [Number(words[3]), Number(words[4])]
  return label.split(/\s+/).flatMap((tick) => [
    `<path d="M${place(parseFloat(tick))} ${top}V${bottom}" stroke="currentColor" stroke-opacity="0.25"/>`,
    drawText(place(parseFloat(tick)), bottom + 17, tick, ['small'])
  ])
}

// A number, or the figure of that name in a file of results.
function valueOf(word) {
  if (/^[\d.]+$/.test(word)) return Number(word)
  const [file, keys] = word.split(':')
  const results = JSON.parse(fs.readFileSync(path.join(folder, `../results/${file}.json`), 'utf8'))
  const value = keys.split('.').reduce((part, key) => part?.[key], results)
  if (typeof value !== 'number') throw new Error(`no figure ${word}`)
  return value
}

function drawBar([, y, word, ...styles], label, place, left) {
  const value = valueOf(word)
  const [name, text = '#'] = label.split('|').map((part) => part.trim())
  const shown = text.replace('#', word === String(value) ? word : value.toPrecision(3))
  const width = Math.max(2, place(value) - left)
  return [
    `<rect x="${left}" y="${y}" width="${width}" height="16" fill="${colourOf(styles)}" fill-opacity="0.75"/>`,
    drawText(left - 10, Number(y) + 13, name, ['end', 'small']),
    drawText(left + width + 8, Number(y) + 13, shown, ['start', 'small'])
  ]
}

// The SVG of a picture's text.
export function draw(text) {
  const boxes = new Map()
  const parts = []
  let size
  let place
  let left
  for (const line of text.split('\n').filter((one) => one.trim() && !one.startsWith('#'))) {
    const at = line.search(/\s:\s/)
    const words = (at < 0 ? line : line.slice(0, at)).trim().split(/\s+/)
    const label = at < 0 ? '' : line.slice(at + 2).trim()
    if (words[0] === 'size') size = words.slice(1)
    else if (words[0] === 'box') {
      const [x, y, width, height] = words.slice(2, 6).map(Number)
      boxes.set(words[1], { x, y, width, height })
      parts.push(...drawBox(words, label))
    } else if (words[0] === 'arrow') parts.push(...drawArrow(boxes, words, label))
    else if (words[0] === 'text') parts.push(drawText(words[1], words[2], label, words.slice(3)))
    else if (words[0] === 'line') parts.push(...drawLine(words))
    else if (words[0] === 'scale') {
      place = scaleOf(words)
      left = Number(words[1])
      parts.push(...drawScale(words, label, place))
    } else if (words[0] === 'bar') parts.push(...drawBar(words, label, place, left))
    else throw new Error(`no such thing: ${line}`)
  }
  const kind = place ? 'class="plot" ' : ''
  return `<svg xmlns="http://www.w3.org/2000/svg" ${kind}viewBox="0 0 ${size.join(' ')}" ` +
    'font-family="system-ui, sans-serif" font-size="14" fill="currentColor">\n' +
    '<style>@media (prefers-color-scheme: dark) { svg { color: #dfdfd6 } }</style>\n' + `${parts.join('\n')}\n</svg>\n`
}

// Each picture with the SVG that its text gives.
export function pictures() {
  return fs.readdirSync(folder).filter((name) => name.endsWith('.txt')).map((name) => {
    try {
      return { name, file: path.join(folder, name.replace(/txt$/, 'svg')),
        svg: draw(fs.readFileSync(path.join(folder, name), 'utf8')) }
    } catch (error) {
      throw new Error(`pictures/${name}: ${error.message}`)
    }
  })
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  pictures().forEach(({ file, svg }) => fs.writeFileSync(file, svg))
}
