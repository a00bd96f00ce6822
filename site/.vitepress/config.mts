import { defineConfig } from 'vitepress'

const page = (text: string, link: string) => ({ text, link })

export default defineConfig({
  title: 'vgpu',
  description: 'GPU sharing as a Java library',
  lang: 'en',
  srcDir: 'target/pages',
  outDir: 'target/dist',
  cacheDir: 'target/cache',
  cleanUrls: false,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      page('Start', '/start/five-minutes'),
      page('Guides', '/guides/inference-server'),
      page('Coming from', '/coming-from/'),
      page('How it works', '/how/'),
      page('Measured', '/measured/'),
      page('Reference', '/reference/cli'),
      page('Glossary', '/glossary')
    ],
    sidebar: [
      {
        text: 'Start',
        items: [
          page('What it is', '/'),
          page('Five minutes', '/start/five-minutes'),
          page('Choose your way', '/start/choose')
        ]
      },
      {
        text: 'Guides',
        items: [
          page('Install a package', '/guides/install'),
          page('An inference server', '/guides/inference-server'),
          page('A batch job beside it', '/guides/batch-job'),
          page('A container', '/guides/container'),
          page('Kubernetes', '/guides/kubernetes'),
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
          page('MIG', '/coming-from/mig'),
          page('MPS', '/coming-from/mps')
        ]
      },
      {
        text: 'How it works',
        items: [
          page('Overview', '/how/'),
          page('The hook', '/how/hook'),
          page('What is charged', '/how/hook-memory'),
          page('The memory ledger', '/how/memory-ledger'),
          page('Gating and measuring', '/how/hook-work'),
          page('The express lane', '/how/express-lane'),
          page('Sharing a lease', '/how/sharing-a-lease'),
          page('Inside a kernel', '/how/level2'),
          page('Suspending', '/how/suspending'),
          page('The emulator', '/how/emulator'),
          page('A cluster', '/how/fleet'),
          page('Security', '/how/security'),
          page('Not yet seen on a GPU', '/how/real-driver'),
          page('Known defects of others', '/how/peers-defects')
        ]
      },
      {
        text: 'Measured',
        items: [
          page('Results', '/measured/'),
          page('What the hook costs', '/measured/hook-cost'),
          page('Data and method', '/measured/results')
        ]
      },
      {
        text: 'Reference',
        items: [
          page('Between the commands', '/reference/commands'),
          page('Every option', '/reference/cli'),
          page('Spring Boot', '/reference/spring-boot'),
          page('ONNX Runtime', '/reference/onnxruntime'),
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
