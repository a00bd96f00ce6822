import fs from 'node:fs'
import { defineConfig } from 'vitepress'

const [, version] = fs.readFileSync(new URL('../../pom.xml', import.meta.url), 'utf8').match(/<version>(.*?)<\/version>/)!

const page = (text: string, link: string) => ({ text, link })

// A chapter's entry in the bar at the top stays marked on all of its pages.
const chapter = (text: string, link: string, folder: string) => ({ text, link, activeMatch: `^/${folder}/` })

// The Javadoc is no page of VitePress: the browser opens it itself, so it has no place in the side bar's sequence.
const api = { text: 'API', link: '/api/index.html', target: '_self' }

// Words of code stay whole: a browser would break a line behind the first hyphen of "--wait". Long words may break,
// where their parts meet: behind a dot, a bracket or a line, and before a capital letter.
const parts = (text: string) => text.replace(/([a-z0-9)][.(]|[,/_=:](?=\w)|[a-z](?=[A-Z]))(?=.{4})/g, '$1<wbr>')
const word = (text: string) =>
  text.length <= 20 ? `<span class="whole">${text}</span>` : `<span class="long">${parts(text)}</span>`
const words = (text: string) => text.split(/(\s+)/).map((part) => (/\S/.test(part) ? word(part) : part)).join('')

// The same in the commands of a code block.
const commandWords = {
  name: 'command-words',
  span(this: { options: { lang: string } }, node: any) {
    const text = node.children[0]?.value
    if (this.options.lang !== 'sh' || !text) return
    node.children = text.split(/(\s+)/).filter(Boolean).map((value: string) => {
      const child = { type: 'text', value }
      return /\S/.test(value) && value.length <= 36
        ? { type: 'element', tagName: 'span', properties: { class: 'whole' }, children: [child] } : child
    })
  }
}

// The width of a cell by its text: "20 ms" stays on one line, and a sentence is no column of single words.
const cellClass = (text: string) => (text.length <= 12 ? 'short' : text.length > 40 ? 'wide' : '')

export default defineConfig({
  // A release's pages are in the folder of its tag, such as /v0.1.0/.
  base: process.env.VGPU_SITE_BASE ?? '/',
  title: 'vgpu',
  description: 'GPU sharing as a Java library',
  lang: 'en',
  srcDir: 'target/pages',
  outDir: 'target/dist',
  cacheDir: 'target/cache',
  cleanUrls: false,
  ignoreDeadLinks: [/^\/api\//],
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    codeTransformers: [commandWords],
    config(md) {
      md.renderer.rules.code_inline = (tokens, at) =>
        `<code v-pre>${words(md.utils.escapeHtml(tokens[at].content))}</code>`
      md.core.ruler.push('cells', ({ tokens }) => {
        tokens.forEach((token, at) => {
          const kind = token.type === 'td_open' && cellClass(tokens[at + 1].content)
          if (kind) token.attrJoin('class', kind)
        })
      })
    }
  },
  themeConfig: {
    version,
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      chapter('Start', '/start/five-minutes', 'start'),
      chapter('Guides', '/guides/inference-server', 'guides'),
      chapter('Coming from', '/coming-from/', 'coming-from'),
      chapter('How it works', '/how/', 'how'),
      chapter('Measured', '/measured/', 'measured'),
      chapter('Reference', '/reference/', 'reference'),
      api,
      page('Glossary', '/glossary')
    ],
    sidebar: [
      {
        text: 'Start',
        items: [
          page('What it is', '/'),
          page('Five minutes', '/start/five-minutes'),
          page('From a checkout', '/start/checkout'),
          page('Choose your way', '/start/choose')
        ]
      },
      {
        text: 'Guides',
        items: [
          page('Install a package', '/guides/install'),
          page('An inference server', '/guides/inference-server'),
          page('A batch job beside it', '/guides/batch-job'),
          page('An unmodified program', '/guides/program'),
          page('A container', '/guides/container'),
          page('Kubernetes', '/guides/kubernetes'),
          page('Memory', '/guides/memory'),
          page('MIG and MPS', '/guides/partitions'),
          page('Monitoring', '/guides/monitoring'),
          page('Tuning', '/guides/tuning'),
          page('Operate and upgrade', '/guides/operations'),
          page('Measure and troubleshoot', '/guides/troubleshooting')
        ]
      },
      {
        text: 'Coming from',
        items: [
          page('Overview', '/coming-from/'),
          page('gpushare', '/coming-from/gpushare'),
          page('gpu-manager, vCUDA', '/coming-from/gpu-manager'),
          page('qGPU', '/coming-from/qgpu'),
          page('HAMi', '/coming-from/hami'),
          page('Volcano', '/coming-from/volcano'),
          page('Time-slicing', '/coming-from/time-slicing'),
          page('MIG', '/coming-from/mig'),
          page('MPS', '/coming-from/mps'),
          page("Triton's rate limiter", '/coming-from/triton')
        ]
      },
      {
        text: 'How it works',
        items: [
          page('Overview', '/how/'),
          page('The seat', '/how/seat'),
          page('The scheduler', '/how/scheduler'),
          page('The hook', '/how/hook'),
          page('What is charged', '/how/hook-memory'),
          page('The memory ledger', '/how/memory-ledger'),
          page('Gating and measuring', '/how/hook-work'),
          page('The express lane', '/how/express-lane'),
          page('Sharing a lease', '/how/sharing-a-lease'),
          page('Inside a kernel', '/how/level2'),
          page('Suspending', '/how/suspending'),
          page('The NVML stand-in', '/how/hook-nvml'),
          page('Limits of the hook', '/how/hook-limits'),
          page("The hook's sources", '/how/hook-source'),
          page('The emulator', '/how/emulator'),
          page('The kernel module', '/how/kernel-module'),
          page('A cluster', '/how/fleet'),
          page('Security', '/how/security'),
          page('Assumptions about a driver', '/how/real-driver'),
          page('Known defects of others', '/how/peers-defects')
        ]
      },
      {
        text: 'Measured',
        items: [
          page('Results', '/measured/'),
          page('On a GPU', '/measured/gpu'),
          page('What the hook costs', '/measured/hook-cost'),
          page('Data and method', '/measured/results')
        ]
      },
      {
        text: 'Reference',
        items: [
          page('Overview', '/reference/'),
          page('Between the commands', '/reference/commands'),
          page('Every option', '/reference/cli'),
          page('Platforms', '/reference/platforms'),
          page('Settings', '/reference/settings'),
          page('Environment variables', '/reference/environment'),
          page('Files', '/reference/files'),
          page('Output and exit codes', '/reference/output'),
          page('Events and meters', '/reference/events'),
          page('Messages', '/reference/messages'),
          page('Spring Boot', '/reference/spring-boot'),
          page('ONNX Runtime', '/reference/onnxruntime'),
          page('The dashboard', '/reference/dashboard'),
          page('Deep Java Library', '/reference/djl'),
          page('Micrometer', '/reference/micrometer'),
          page('Kubernetes', '/reference/kubernetes'),
          page('Kubernetes: scheduler', '/reference/kubernetes-scheduler'),
          page('Kubernetes: names of others', '/reference/kubernetes-names'),
          page('Glossary', '/glossary')
        ]
      }
    ]
  }
})
