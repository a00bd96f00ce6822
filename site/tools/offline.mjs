// Fails if a built page would fetch anything from another place at view time.
import fs from 'node:fs'
import path from 'node:path'

const dist = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../target/dist')
const foreign = /<(?:script|img|iframe|source)[^>]+src="(?:https?:)?\/\/|<link[^>]+href="(?:https?:)?\/\/|url\(["']?(?:https?:)?\/\//
const files = fs.readdirSync(dist, { recursive: true }).filter((name) => /\.(html|css)$/.test(name))
const bad = files.filter((name) => foreign.test(fs.readFileSync(path.join(dist, name), 'utf8')))
bad.forEach((name) => console.error(`${name} fetches from another place`))
process.exit(bad.length ? 1 : 0)
