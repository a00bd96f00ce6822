// The default theme without its web font: nothing is fetched at view time. The side bar names the version, and leads
// to the list of versions, which is at the root also for the pages of an older release.
import { h } from 'vue'
import { useData } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import './style.css'

const Version = () =>
  h('a', { class: 'version', href: '/versions.html', target: '_self' }, `Version ${useData().theme.value.version}`)

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'sidebar-nav-before': () => h(Version) })
}
