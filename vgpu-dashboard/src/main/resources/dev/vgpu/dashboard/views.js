// The pages. Each has elements, created once, and update(state), called after every look at the pool.
import { chart, spark } from './charts.js';
import {
  attribute, duration, el, headRow, keyed, NOT_MEASURED, percent, plural, row, scale, size, sizeOf, tenantLink, text,
  time, when,
} from './parts.js';

const LONG_WAIT_MS = 1000;
const RECLAIM = ['ReclaimAsked', 'Suspended', 'Resumed', 'EndedByReclaim', 'HeldBack'];

function shortId(id) {
  return id.length > 14 ? id.slice(0, 12) + '…' : id;
}

function gpuName(state, id) {
  const index = state.gpus.findIndex((gpu) => gpu.id === id);
  return index < 0 ? id : 'GPU ' + index;
}

function tenantsOf(state, gpu) {
  return state.tenants.filter((tenant) => tenant.gpus.includes(gpu.id));
}

function seriesOf(state, tenant) {
  return state.history.get(tenant.id) || { held: [], entitled: [] };
}

// ---- bars

function bar(kind) {
  const held = el('i');
  const mark = el('b');
  const element = el('div', { class: 'bar ' + kind, role: 'img' }, held, mark);
  return {
    element,
    update(tenant, max) {
      held.style.width = tenant.held === null ? '0' : Math.min(100, (100 * tenant.held) / max) + '%';
      mark.style.left = Math.min(100, (100 * tenant.entitled) / max) + '%';
      element.classList.toggle('unknown', tenant.held === null);
      attribute(element, 'aria-label', 'holds ' + percent(tenant.held) + ', entitled to ' + percent(tenant.entitled));
    },
  };
}

// A bar of memory: used, then granted but unused, then free.
function memoryBar() {
  const granted = el('i', { class: 'granted' });
  const used = el('i');
  const element = el('div', { class: 'bar memory', role: 'img' }, granted, used);
  return {
    element,
    update(usedBytes, grantedBytes, whole, words) {
      granted.style.width = Math.min(100, (100 * grantedBytes) / whole) + '%';
      used.style.width = Math.min(100, (100 * (usedBytes || 0)) / whole) + '%';
      element.classList.toggle('unknown', usedBytes === null);
      attribute(element, 'aria-label', words);
    },
  };
}

function waitWord(tenant) {
  if (!tenant.wait) {
    return 'no';
  }
  return tenant.waited_ms >= LONG_WAIT_MS ? duration(tenant.waited_ms) : tenant.suspended ? 'suspended' : 'in turns';
}

// ---- overview

function shareRow(state, tenant) {
  const name = el('span', { class: 'who' }, tenantLink(tenant.id));
  const kind = el('span', { class: 'sub class ' + tenant.class }, tenant.class + ', ' + tenant.policy);
  const share = bar(tenant.class);
  const words = el('span', { class: 'small num' });
  const canvas = el('canvas', { class: 'spark', 'aria-hidden': 'true' });
  const memory = el('span', { class: 'small' });
  const reserved = el('span', { class: 'sub reserved' });
  const wait = el('span', { class: 'small' });
  const element = row([], el('th', { scope: 'row' }, name, kind), el('td', {}, words, share.element),
    el('td', { class: 'c-line' }, canvas), el('td', {}, memory, reserved), el('td', { class: 'c-wait' }, wait));
  return {
    element,
    update(now, max, current) {
      share.update(now, max);
      text(words, (now.held === null ? NOT_MEASURED : now.held.toFixed(1)) + ' of ' + now.entitled.toFixed(1) + ' %');
      spark(canvas, seriesOf(current, now), current.kept, max, now.class);
      text(memory, sizeOf(now.used, now.quota));
      text(reserved, now.suspended ? 'off the GPU' : now.reserved ? 'reserved ' + size(now.reserved) : '');
      text(wait, waitWord(now));
      attribute(wait, 'class', now.wait && now.waited_ms >= LONG_WAIT_MS ? 'small warn' : 'small');
    },
  };
}

function told(value, unit) {
  return value === null || value === undefined ? 'not reported' : value + ' ' + unit;
}

function deviceWords(gpu) {
  const reading = gpu.reading;
  if (!reading) {
    return 'The driver tells nothing of this device.';
  }
  const power = reading.power === null ? 'power not reported' : reading.power.toFixed(0) + ' W'
    + (reading.power_limit === null ? '' : ' of ' + reading.power_limit.toFixed(0) + ' W');
  return 'Device: busy ' + told(reading.busy, '%') + ', ' + told(reading.temperature, '°C') + ', ' + power;
}

function memoryWords(gpu, tenants) {
  const granted = tenants.reduce((sum, tenant) => sum + tenant.quota / tenant.gpus.length, 0);
  const suspended = tenants.reduce((sum, tenant) => sum + tenant.memory_suspended / tenant.gpus.length, 0);
  const used = tenants.reduce((sum, tenant) =>
    sum + Math.max(0, (tenant.used || 0) - tenant.memory_suspended) / tenant.gpus.length, 0);
  const reserved = tenants.reduce((sum, tenant) => sum + tenant.reserved, 0);
  const unknown = tenants.filter((tenant) => tenant.used === null).length;
  let words = 'Memory: quotas ' + sizeOf(granted, gpu.memory_usable) + ', used '
    + (unknown === tenants.length && unknown ? NOT_MEASURED : size(used));
  if (unknown && unknown < tenants.length) {
    words += ' (of ' + plural(unknown, 'tenant') + ' not measured)';
  }
  if (suspended) {
    words += ', suspended to the host ' + size(suspended);
  }
  if (reserved) {
    words += ', reserved by calls ' + size(reserved);
  }
  const isRead = gpu.reading && gpu.reading.memory_used !== null;
  words += ', in all ' + (isRead ? size(gpu.reading.memory_used) : 'not reported');
  if (gpu.memory_low) {
    words += '; reclaim below ' + size(gpu.memory_low) + ' free, until ' + size(gpu.memory_high);
  }
  if (gpu.suspended && gpu.suspended.length) {
    words += '; suspended for memory: ' + gpu.suspended.join(', ');
  }
  return { words, granted, used: unknown && unknown === tenants.length ? null : used };
}

// The GPU of an event: its own, or that of its tenant, which may have ended meanwhile.
function gpuOf(state, event) {
  const tenant = state.tenants.find((each) => each.id === event.tenant);
  const granted = state.events.find((each) => each.kind === 'Acquired' && each.tenant === event.tenant);
  return event.gpu || (tenant ? tenant.gpus[0] : granted && granted.gpu);
}

// What reclaim did on a GPU, as far as the kept events tell.
function reclaimWords(state, gpu) {
  const steps = state.events.filter((event) => RECLAIM.includes(event.kind) && gpuOf(state, event) === gpu.id);
  if (!steps.length) {
    return '';
  }
  const count = (kind) => steps.filter((event) => event.kind === kind).length;
  const last = steps[steps.length - 1];
  return 'Reclaim: asked ' + count('ReclaimAsked') + ', suspended ' + count('Suspended') + ', ended '
    + count('EndedByReclaim') + ' in the kept events; last ' + when(last.at, state.at) + ': ' + last.tenant + ' '
    + eventWords(last);
}

function gpuCard(gpu, index) {
  const title = el('h2', { id: 'gpu-' + index, tabindex: '-1' });
  const held = el('span', { class: 'num' });
  const health = el('p', { class: 'bad' });
  const sharing = el('p', { class: 'small muted' });
  const device = el('p', { class: 'small muted' });
  const memory = memoryBar();
  const memoryText = el('p', { class: 'small muted' });
  const reclaim = el('p', { class: 'small muted' });
  const body = el('tbody', { role: 'rowgroup' });
  const max = el('span', { class: 'sub scale' });
  const head = headRow(
    el('th', { scope: 'col', class: 'c-name' }, 'Tenant'),
    el('th', { scope: 'col', class: 'c-share' }, 'Held of entitled', max),
    el('th', { scope: 'col', class: 'c-line' }, 'Last 5 min'),
    el('th', { scope: 'col', class: 'c-memory' }, 'Memory'),
    el('th', { scope: 'col', class: 'c-wait' }, 'Waits'));
  const table = el('table', { class: 'shares', role: 'table', 'aria-labelledby': title.id }, head, body);
  const none = el('p', { class: 'muted' }, 'No tenant.');
  const element = el('section', { class: 'card', 'aria-labelledby': title.id },
    el('div', { class: 'title' }, title, held), health, sharing, device, memory.element, memoryText, reclaim,
    table, none);
  return {
    element,
    update(state, now) {
      const tenants = tenantsOf(state, now);
      const top = scale(tenants.flatMap((tenant) => [tenant.held, tenant.entitled]));
      text(title, 'GPU ' + index + ': ' + now.model + ' ' + shortId(now.id));
      attribute(title, 'title', now.id);
      text(held, now.held === null ? 'held in all: not measured' : 'held in all ' + now.held.toFixed(1) + ' %');
      const bad = now.health !== 'healthy' ? now.health + ': ' + now.health_reason : now.unusable_as_whole || '';
      text(health, bad);
      text(sharing, now.mode ? 'Sharing: ' + now.mode + ', ' + now.mode_reason : 'How it is shared is not known.');
      text(device, deviceWords(now));
      const { words, granted, used } = memoryWords(now, tenants);
      text(memoryText, words);
      text(reclaim, reclaimWords(state, now));
      memory.update(used, granted, now.memory_usable, words);
      table.hidden = tenants.length === 0;
      none.hidden = tenants.length > 0;
      text(max, 'bars: 0–' + top + ' %');
      keyed(body, tenants, (tenant) => tenant.id, (tenant) => shareRow(state, tenant),
        (each, tenant) => each.update(tenant, top, state));
    },
  };
}

function tile(gpu, index) {
  const name = el('span', {}, 'GPU ' + index);
  const held = el('span', { class: 'num' });
  const fill = el('i');
  const words = el('span', { class: 'small' });
  const share = el('div', { class: 'bar', 'aria-hidden': 'true' }, fill);
  const element = el('li', {}, el('a', { href: '#/gpu/' + index }, el('strong', {}, name, held), share, words));
  return {
    element,
    update(state, now) {
      const tenants = tenantsOf(state, now);
      const waiting = tenants.filter((tenant) => tenant.wait && tenant.waited_ms >= LONG_WAIT_MS).length;
      const isBad = now.health !== 'healthy';
      text(held, now.held === null ? NOT_MEASURED : now.held.toFixed(0) + ' %');
      fill.style.width = Math.min(100, now.held || 0) + '%';
      share.classList.toggle('unknown', now.held === null);
      attribute(words, 'class', isBad ? 'small bad' : waiting ? 'small warn' : 'small muted');
      const alsoWaiting = waiting ? ', ' + waiting + (waiting === 1 ? ' waits' : ' wait') : '';
      text(words, isBad ? now.health : plural(tenants.length, 'tenant') + alsoWaiting);
    },
  };
}

const WAITS = ['', 'Since', 'For', 'Why'];

function waitRow(tenant) {
  const since = el('td', { class: 'num' });
  const on = el('td');
  const why = el('td');
  const element = row(WAITS, el('th', { scope: 'row' }, tenantLink(tenant.id)), since, on, why);
  let shown = '';
  return {
    element,
    update(now, state) {
      const isForMemory = state.gpus.some((gpu) => (gpu.suspended || []).includes(now.id));
      const unnamed = isForMemory ? 'free memory' : now.suspended ? 'a user' : 'not reported';
      text(since, time(now.since) + ' (' + duration(now.waited_ms) + ')');
      text(why, now.wait.why);
      const names = now.wait.on.join('\n');
      if (names + unnamed !== shown) {
        shown = names + unnamed;
        const links = now.wait.on.flatMap((id, i) => (i ? [', ', tenantLink(id)] : [tenantLink(id)]));
        on.replaceChildren(...(links.length ? links : [unnamed]));
      }
    },
  };
}

export function overview() {
  const summary = el('p', { class: 'muted' });
  const tiles = el('ul', { class: 'tiles' });
  const waits = el('tbody', { role: 'rowgroup' });
  const table = el('table', { class: 'stack waits', role: 'table', 'aria-labelledby': 'waits' },
    headRow('Tenant', 'Since', 'For', 'Why'), waits);
  const others = el('p', { class: 'small muted' });
  const cards = el('div', { class: 'cards' });
  const element = el('div', {}, el('h1', { tabindex: '-1' }, 'GPUs of this node'), summary, tiles,
    el('section', { class: 'card', 'aria-labelledby': 'waits' }, el('h2', { id: 'waits' }, 'Who waits'), table, others),
    el('p', { class: 'legend small' }, el('span', { class: 'class online' }, 'online'),
      el('span', { class: 'class nearline' }, 'nearline'), el('span', { class: 'class offline' }, 'offline'),
      el('span', { class: 'key' }, 'entitled share, dashed over time'),
      el('span', { class: 'key used' }, 'memory in use'),
      el('span', { class: 'key granted' }, 'granted by quotas')), cards);
  return {
    element,
    title: 'GPUs',
    update(state) {
      const waiting = state.tenants.filter((tenant) => tenant.wait);
      const long = waiting.filter((tenant) => tenant.waited_ms >= LONG_WAIT_MS || tenant.suspended)
        .sort((a, b) => b.waited_ms - a.waited_ms);
      text(summary, plural(state.gpus.length, 'GPU') + ', ' + plural(state.tenants.length, 'tenant')
        + '. Shares are percent of one GPU’s time, as charged over the last second;'
        + ' of work that overlaps, each tenant is charged its own.');
      const places = state.gpus.map((gpu, index) => ({ gpu, index }));
      keyed(tiles, places, ({ gpu }) => gpu.id, ({ gpu, index }) => tile(gpu, index),
        (part, { gpu }) => part.update(state, gpu));
      keyed(waits, long, (tenant) => tenant.id, waitRow, (each, tenant) => each.update(tenant, state));
      table.hidden = long.length === 0;
      const short = waiting.length - long.length;
      text(others, (long.length ? '' : 'Nobody has waited for a second or longer. ')
        + (short ? plural(short, 'tenant waits', 'tenants wait') + ' for turns between their work. ' : '')
        + 'Checked once a second. Requests that wait to be granted are not listed.');
      keyed(cards, places, ({ gpu }) => gpu.id, ({ gpu, index }) => gpuCard(gpu, index),
        (card, { gpu }) => card.update(state, gpu));
    },
  };
}

// ---- one tenant

function facts(state, tenant) {
  const slow = tenant.slowdown === null ? 'not known' : tenant.slowdown.toFixed(2) + ' times as long as alone';
  return [
    ['Holds now', percent(tenant.held)],
    ['Entitled to', percent(tenant.entitled)],
    ['Class, policy', tenant.class + ', ' + tenant.policy + (tenant.share ? ' ' + tenant.share + '\u00a0%' : '')],
    ['On', tenant.gpus.map((gpu) => gpuName(state, gpu)).join(', ')],
    ['Memory', sizeOf(tenant.used, tenant.quota)],
    ['Reserved by calls', tenant.reserved ? size(tenant.reserved) : 'none'],
    ['In the host’s memory', tenant.suspended ? size(tenant.memory_suspended) : 'none'],
    ['GPU time in all', duration(tenant.gpu_ms)],
    ['Turns lost', String(tenant.preemptions)],
    ['Allocations refused', tenant.denied === null ? NOT_MEASURED : String(tenant.denied)],
    ['Calls running, waiting', tenant.running + ', ' + tenant.waiting],
    ['Processes', tenant.processes ? tenant.processes + ' (' + tenant.pids.join(', ') + ')' : '0'],
    ['Owner', 'process ' + tenant.owner],
    ['Enforced by', tenant.backend || 'turns of its JVM'],
    ['Its work takes', slow],
    ['Copies', percent(tenant.copy)],
    ['Interrupted', tenant.preemption
      ? tenant.preemption.replace(/_/g, ' ') + (tenant.preemption_reason ? ': ' + tenant.preemption_reason : '')
      : 'not known'],
    ['Calls let through', tenant.passed_through ? tenant.passed_through + ', not held to share or quota' : '0'],
  ];
}

function between(from, to) {
  const words = (ms) => (ms >= 60000 ? ms / 60000 + ' min' : ms / 1000 + ' s');
  if (!from) {
    return 'under ' + words(to);
  }
  return to ? words(from) + ' to ' + words(to) : words(from) + ' or longer';
}

function histogramRow(bar) {
  const fill = el('i');
  const count = el('td', { class: 'num' });
  const element = el('tr', {}, el('th', { scope: 'row' }, bar.name), count,
    el('td', {}, el('div', { class: 'bar', 'aria-hidden': 'true' }, fill)));
  return {
    element,
    update(now) {
      text(count, String(now.count));
      fill.style.width = (now.most ? (100 * now.count) / now.most : 0) + '%';
    },
  };
}

function fact([name]) {
  const value = el('dd');
  return { element: el('div', {}, el('dt', {}, name), value), update: ([, words]) => text(value, words) };
}

export function tenantPage(id) {
  const gone = el('p', { class: 'bad' });
  const list = el('dl');
  const wait = el('p');
  const canvas = el('canvas', { class: 'chart', role: 'img' });
  const words = el('p', { class: 'small muted' });
  const looks = el('p', { class: 'small muted' });
  const bars = el('tbody');
  const events = eventTable();
  const whole = el('div', {},
    el('section', { class: 'card', 'aria-labelledby': 'line' },
      el('h2', { id: 'line' }, 'Share, the last 5 minutes'), canvas, words, wait),
    el('section', { class: 'card', 'aria-labelledby': 'facts' }, el('h2', { id: 'facts' }, 'Now'), list),
    el('section', { class: 'card', 'aria-labelledby': 'bars' },
      el('h2', { id: 'bars' }, 'Waits without GPU time'), looks,
      el('table', { class: 'histogram', 'aria-labelledby': 'bars' }, headRow('Lasted', 'Waits', 'Of the most'), bars)));
  const element = el('div', {}, el('p', {}, el('a', { href: '#/' }, 'All GPUs')),
    el('h1', { tabindex: '-1' }, id), gone, whole,
    el('section', { class: 'card', 'aria-labelledby': 'its' }, el('h2', { id: 'its' }, 'Its events'), events.element));
  return {
    element,
    title: id,
    update(state) {
      const tenant = state.tenants.find((each) => each.id === id);
      events.update(state, state.events.filter((event) => event.tenant === id || event.by === id));
      whole.hidden = !tenant;
      text(gone, tenant
        ? tenant.impaired || ''
        : 'No virtual GPU of that name is held now. What its last events tell is below.');
      if (!tenant) {
        return;
      }
      keyed(list, facts(state, tenant), ([name]) => name, fact, (part, each) => part.update(each));
      text(wait, tenant.wait
        ? 'Waits since ' + time(tenant.since) + ' (' + duration(tenant.waited_ms) + '): ' + tenant.wait.why
          + (tenant.wait.on.length ? '; for ' + tenant.wait.on.join(', ') : '') + '.'
        : 'Does not wait.');
      const series = seriesOf(state, tenant);
      chart(canvas, series, state.times, state.kept, scale([...series.held, ...series.entitled]), tenant.class);
      const known = series.held.filter((value) => value !== null);
      const mean = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
      const summary = 'Held (line): ' + percent(tenant.held) + ' now, ' + percent(mean) + ' on average over '
        + plural(known.length, 'second') + '. Entitled to (dashes): ' + percent(tenant.entitled) + '.';
      text(words, summary);
      attribute(canvas, 'aria-label', summary);
      const waits = tenant.waits;
      text(looks, 'It waited in ' + waits.waiting_looks + ' of ' + plural(waits.looks, 'look')
        + ', about ' + ((100 * waits.waiting_looks) / waits.looks).toFixed(0)
        + ' % of the time. A wait counts from the first look to the last one in which it waited'
        + ' and had had no GPU time since;'
        + ' looked at once a second, so shorter ones are mostly not seen.');
      const most = Math.max(...waits.ended);
      const rows = waits.ended.map((count, i) => (
        { name: between(waits.from_ms[i], waits.from_ms[i + 1]), count, most }));
      keyed(bars, rows, (each) => each.name, histogramRow, (part, each) => part.update(each));
    },
  };
}

// ---- events

const GROUPS = [
  ['preemption', 'Preemptions', ['Preempted', 'CancelFailed']],
  ['death', 'Deaths', ['ProcessGone', 'EndedByReclaim', 'Leaked']],
  ['refusal', 'Refusals', ['Refused', 'AllocationDenied', 'HeldBack']],
  ['reclaim', 'Reclaim', RECLAIM],
  ['health', 'Health', ['HealthChanged', 'GpuFault', 'Disturbed', 'MeteringFailed', 'SuspectReport']],
  ['lease', 'Grants and ends', ['Acquired', 'Closed', 'Resized']],
  ['sharing', 'Ways of sharing', ['SharingChanged']],
];
const MOST_SHOWN = 200;
const LONG_REASON = 200;

function eventWords(event) {
  const kind = event.kind.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
  switch (event.kind) {
    case 'Preempted':
      return 'preempted by ' + event.by + (event.times > 1 ? ', ' + event.times + ' times' : '');
    case 'AllocationDenied':
      return plural(event.count, 'allocation') + ' refused';
    case 'SharingChanged':
      return 'sharing is ' + event.mode;
    case 'Suspended':
      return 'suspended, ' + size(event.freed_bytes) + ' moved';
    case 'ReclaimAsked':
      return 'asked to free ' + size(event.wanted_bytes);
    case 'EndedByReclaim':
      return 'ended to reclaim memory: processes ' + event.processes;
    case 'HealthChanged':
      return 'health is ' + event.health;
    case 'Closed':
      return 'closed after ' + duration(event.gpu_time_ms) + ' of GPU time';
    default:
      return kind;
  }
}

// A reason may be a paragraph: the rest of a long one is shown on demand.
function reasonOf(event) {
  const words = event.reason || (event.kind === 'Preempted' ? 'the other is more urgent' : '');
  if (words.length <= LONG_REASON) {
    return words;
  }
  const cut = words.lastIndexOf(' ', LONG_REASON);
  const end = cut > 0 ? cut : LONG_REASON;
  return el('details', {}, el('summary', {}, words.slice(0, end) + ' …'), words.slice(end));
}

const EVENTS = ['When', 'Whose', 'What', 'Why'];

function eventRow(state, event) {
  const whose = event.tenant ? tenantLink(event.tenant) : event.gpu ? gpuName(state, event.gpu) : 'node';
  const at = el('time', { datetime: new Date(event.at).toISOString() }, when(event.at, state.at));
  const why = reasonOf(event);
  return {
    element: row(EVENTS.map((name) => (name === 'Why' && !why ? '' : name)), el('td', { class: 'num' }, at),
      el('td', {}, whose), el('td', {}, eventWords(event)), el('td', {}, why)),
  };
}

function eventTable() {
  const body = el('tbody', { role: 'rowgroup' });
  const none = el('p', { class: 'muted' }, 'No such event.');
  const table = el('table', { class: 'stack events', role: 'table', 'aria-label': 'Events, the latest first' },
    headRow(...EVENTS), body);
  return {
    element: el('div', {}, table, none),
    update(state, events) {
      const latest = events.slice(-MOST_SHOWN).reverse();
      keyed(body, latest, (event) => event.number, (event) => eventRow(state, event), () => {});
      table.hidden = latest.length === 0;
      none.hidden = latest.length > 0;
    },
  };
}

export function eventsPage() {
  const kind = el('select', { id: 'kind' }, el('option', { value: '' }, 'All'),
    ...GROUPS.map(([value, name]) => el('option', { value }, name)));
  const search = el('input',
    { id: 'search', type: 'search', placeholder: 'tenant, GPU or reason', autocomplete: 'off' });
  const count = el('p', { class: 'small muted', role: 'status' });
  const table = eventTable();
  const element = el('div', {}, el('h1', { tabindex: '-1' }, 'Events'),
    el('div', { class: 'filters' },
      el('label', { for: 'kind' }, 'Kind'), kind, el('label', { for: 'search' }, 'Contains'), search),
    count, el('section', { class: 'card', 'aria-label': 'Events' }, table.element));
  let last;
  const show = () => {
    const kinds = (GROUPS.find(([value]) => value === kind.value) || [])[2];
    const wanted = search.value.toLowerCase();
    const contains = (event) => [event.tenant, event.gpu, event.reason, event.by, eventWords(event)]
      .join(' ').toLowerCase().includes(wanted);
    const found = last.events.filter((event) => (!kinds || kinds.includes(event.kind)) && (!wanted || contains(event)));
    text(count, plural(found.length, 'event') + ' of the last ' + last.events.length
      + (found.length > MOST_SHOWN ? '; the latest ' + MOST_SHOWN + ' are shown' : '')
      + (last.leftOut ? '; ' + last.leftOut + ' more came too fast to be kept' : ''));
    table.update(last, found);
  };
  kind.addEventListener('change', show);
  search.addEventListener('input', show);
  return {
    element,
    title: 'Events',
    update(state) {
      last = state;
      show();
    },
  };
}

// ---- MIG

function leaseItem(device) {
  return el('li', {}, device.compute_slices + ' compute slices: ',
    device.lease ? tenantLink(device.lease) : 'not of vgpu', ' ',
    el('span', { class: 'muted small' }, device.id));
}

function instanceItem(instance) {
  const words = 'Instance ' + instance.id + ', ' + instance.profile + ': memory slices ' + instance.start + ' to '
    + (instance.start + instance.memory_slices - 1) + ', ' + instance.free_compute_slices + ' of '
    + instance.compute_slices + ' compute slices free';
  return el('li', {}, words, el('ul', {}, ...instance.devices.map(leaseItem)));
}

function migItem(state, gpu) {
  const mode = !gpu.supported ? 'cannot be cut by MIG' : gpu.mode ? 'MIG is on' : 'MIG is off';
  const pending = gpu.mode === gpu.pending ? '' : ', and is to change when nothing uses it';
  return el('li', {}, el('strong', {}, gpuName(state, gpu.id) + ': ' + gpu.model), ' ' + mode + pending + ' ',
    el('span', { class: 'muted small' }, gpu.id), el('ul', {}, ...gpu.instances.map(instanceItem)));
}

export function migPage() {
  const tree = el('div', { class: 'card' });
  const element = el('div', {}, el('h1', { tabindex: '-1' }, 'MIG instances'), tree);
  let shown = null;
  return {
    element,
    title: 'MIG',
    update(state) {
      const now = JSON.stringify(state.mig);
      if (now === shown) {
        return;
      }
      shown = now;
      if (!state.mig || state.mig.unknown) {
        tree.replaceChildren(el('p', {}, 'What is cut by MIG is not known here'
          + (state.mig ? ': ' + state.mig.unknown : '. On the node, vgpu mig list shows it.')));
      } else {
        tree.replaceChildren(el('ul', { class: 'tree' }, ...state.mig.gpus.map((gpu) => migItem(state, gpu))));
      }
    },
  };
}
