// Elements and words. Text from other processes is only ever inserted as text, never as markup.
export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children);
  return element;
}

export function text(element, value) {
  if (element.textContent !== value) {
    element.textContent = value;
  }
}

export function attribute(element, name, value) {
  if (element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

// Where the focus goes when its row has gone: the row that is there now, or the heading of the section.
function focusNear(parent, index) {
  const near = parent.children[Math.min(index, parent.children.length - 1)];
  const heading = parent.closest('section, main').querySelector('h1, h2');
  heading.setAttribute('tabindex', '-1');
  ((near && near.querySelector('a')) || heading).focus({ preventScroll: true });
}

// Keeps one child for each item, in order. The focus stays where it is, or near it.
export function keyed(parent, items, keyOf, create, update) {
  const known = (parent.vgpuParts ||= new Map());
  const wanted = new Set(items.map(keyOf));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  let lostAt = -1;
  for (const [key, part] of known) {
    if (!wanted.has(key)) {
      if (part.element.contains(focused)) {
        lostAt = [...parent.children].indexOf(part.element);
      }
      part.element.remove();
      known.delete(key);
    }
  }
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let part = known.get(key);
    if (!part) {
      part = create(item);
      known.set(key, part);
    }
    if (part.element === place) {
      place = place.nextElementSibling;
    } else {
      parent.insertBefore(part.element, place);
    }
    update(part, item);
  }
  if (lostAt >= 0) {
    focusNear(parent, lostAt);
  } else if (focused && focused !== document.activeElement) {
    focused.focus({ preventScroll: true }); // Its row was moved.
  }
}

// Rows that a small screen shows as blocks keep their roles, and name what the hidden headings name.
export function row(labels, ...cells) {
  cells.forEach((cell, i) => {
    cell.setAttribute('role', cell.tagName === 'TH' ? 'rowheader' : 'cell');
    if (labels[i]) {
      cell.setAttribute('data-label', labels[i]);
    }
  });
  return el('tr', { role: 'row' }, ...cells);
}

export function headRow(...names) {
  const heads = names.map((name) => (typeof name === 'string' ? el('th', { scope: 'col' }, name) : name));
  heads.forEach((head) => head.setAttribute('role', 'columnheader'));
  return el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads));
}

export const NOT_MEASURED = 'not measured';

export function percent(value) {
  return value === null || value === undefined ? NOT_MEASURED : value.toFixed(1) + '\u00a0%';
}

const NO_BREAK = '\u00a0'; // A number and its unit stay in one line.
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function size(bytes) {
  if (bytes === null || bytes === undefined) {
    return NOT_MEASURED;
  }
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit++;
  }
  return (Number.isInteger(amount) || amount >= 100 ? amount.toFixed(0) : amount.toFixed(1)) + NO_BREAK + UNITS[unit];
}

export function sizeOf(used, quota) {
  const whole = size(quota);
  if (used === null || used === undefined) {
    return NOT_MEASURED + ' of ' + whole;
  }
  const part = used === 0 ? '0' : size(used);
  const unit = whole.slice(whole.indexOf(NO_BREAK));
  return (part.endsWith(unit) ? part.slice(0, -unit.length) : part) + ' of ' + whole;
}

export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) {
    return seconds + ' s';
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? minutes + ' min ' + (seconds % 60) + ' s'
    : Math.floor(minutes / 60) + ' h ' + (minutes % 60) + ' min';
}

const TIME = new Intl.DateTimeFormat(undefined,
  { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });

export function time(ms) {
  return TIME.format(new Date(ms));
}

const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

// With its date unless it is of the same day as now.
export function when(ms, now) {
  const day = DAY.format(new Date(ms));
  return day === DAY.format(new Date(now)) ? time(ms) : day + ', ' + time(ms);
}

export function tenantLink(id) {
  return el('a', { href: '#/tenant/' + encodeURIComponent(id), title: id }, id);
}

// The smallest round number not below any value.
export function scale(values) {
  const most = Math.max(1, ...values.filter((value) => value !== null));
  return [5, 10, 20, 25, 40, 50, 75, 100].find((step) => step >= most) || 100;
}

export function plural(count, one, many) {
  return count + ' ' + (count === 1 ? one : many || one + 's');
}
