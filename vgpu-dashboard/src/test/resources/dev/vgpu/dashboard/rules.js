// Accessibility rules that a script can check. The value is a list of violations.
(() => {
  const wrong = [];
  const shown = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const words = (element) => (element.getAttribute('aria-label') || element.textContent || '').trim();
  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const light = ({ r, g, b }) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.a > 0) {
        return colour;
      }
    }
    return { r: 255, g: 255, b: 255, a: 1 };
  };
  const contrast = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const seen = new Set();
  const say = (text) => {
    if (!seen.has(text)) {
      seen.add(text);
      wrong.push(text);
    }
  };
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (own && shown(element) && !['SCRIPT', 'NOSCRIPT', 'OPTION'].includes(element.tagName)) {
      const ratio = contrast(parse(getComputedStyle(element).color), behind(element));
      if (ratio < 4.5) {
        say('contrast ' + ratio.toFixed(2) + ' of ' + element.tagName + '.' + element.className);
      }
    }
  }
  for (const bar of document.querySelectorAll('.bar i, .bar b')) {
    if (shown(bar)) {
      const back = behind(bar.parentElement);
      const ratio = contrast(parse(getComputedStyle(bar).backgroundColor), back);
      if (ratio < 3) {
        say('contrast ' + ratio.toFixed(2) + ' of a bar: ' + bar.parentElement.className + ' ' + bar.className);
      }
    }
  }
  for (const bar of document.querySelectorAll('.bar[role=img]')) {
    if (/(holds|used) not measured/.test(bar.getAttribute('aria-label')) !== bar.classList.contains('unknown')) {
      say('a bar of what is not measured looks like 0: ' + bar.getAttribute('aria-label'));
    }
  }
  for (const control of document.querySelectorAll('a, button, select, input')) {
    const label = control.labels && control.labels.length ? control.labels[0].textContent.trim() : '';
    if (!words(control) && !label) {
      say('no name: ' + control.outerHTML.slice(0, 80));
    }
    if (control.tagName !== 'A' && !label && control.tagName !== 'BUTTON' && !control.getAttribute('aria-label')) {
      say('no label: ' + control.outerHTML.slice(0, 80));
    }
  }
  for (const picture of document.querySelectorAll('[role=img], canvas')) {
    if (!picture.getAttribute('aria-label') && picture.getAttribute('aria-hidden') !== 'true') {
      say('no words for a picture: ' + picture.className);
    }
  }
  const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => Number(heading.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) {
    say('not one h1 but ' + levels.filter((level) => level === 1).length);
  }
  levels.forEach((level, i) => i && level > levels[i - 1] + 1 && say('a level of headings is left out'));
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => say('an id is there twice: ' + id));
  for (const name of ['aria-labelledby', 'for']) {
    for (const element of document.querySelectorAll('[' + name + ']')) {
      if (!document.getElementById(element.getAttribute(name))) {
        say(name + ' names nothing: ' + element.getAttribute(name));
      }
    }
  }
  for (const table of document.querySelectorAll('table')) {
    const name = table.getAttribute('aria-label') || table.getAttribute('aria-labelledby');
    if (!table.querySelector('th[scope=col]') || !name) {
      say('a table without headings or name: ' + table.className);
    }
  }
  for (const name of ['main', 'header', 'nav']) {
    if (!document.querySelector(name)) {
      say('no ' + name);
    }
  }
  if (!document.documentElement.lang || !document.title) {
    say('no language or title');
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    say('wider than the screen: ' + document.documentElement.scrollWidth + ' > ' + innerWidth);
  }
  if (document.querySelector('main b script, main th b')) {
    say('markup in a name became markup');
  }
  return wrong;
})()
