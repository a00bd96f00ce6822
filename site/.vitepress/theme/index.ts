// The default theme without its web font: nothing is fetched at view time.
import DefaultTheme from 'vitepress/theme-without-fonts'
import './style.css'

export default DefaultTheme
