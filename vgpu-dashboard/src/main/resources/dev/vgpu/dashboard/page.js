// Receives the server's messages, and shows the page that the address names.
import { forgetColours } from './charts.js';
import { text, time } from './parts.js';
import { eventsPage, migPage, overview, tenantPage } from './views.js';

const MOST_EVENTS = 500;
const COMMON = ['Preempted', 'SharingChanged']; // Dropped first, so that they displace no refusal and no death.
const AGAIN_MS = 5000;
const QUIET_MS = 5000; // Or three times the time between two looks, if that is longer.

const state = {
  look: -1, at: 0, kept: 300, gpus: [], tenants: [], mig: null, events: [], leftOut: 0, times: [], history: new Map(),
};
const main = document.getElementById('main');
const link = document.getElementById('link');
const clock = document.getElementById('clock');
let view = null;
let stream = null;
let isPaused = false;
let anewAt = 0;
let heardAt = 0;

// ---- messages

function onHello(hello) {
  state.kept = hello.kept;
  state.look = hello.look;
  state.times = hello.at;
  state.history = new Map(Object.entries(hello.history));
  state.events = hello.events;
}

function onTick(tick) {
  const missed = state.look >= 0 && tick.look > state.look + 1;
  if (tick.look > state.look) {
    remember(tick);
    state.look = tick.look;
    addEvents(tick.events);
  }
  Object.assign(state, { at: tick.at, gpus: tick.gpus, tenants: tick.tenants, mig: tick.mig });
  return missed;
}

function remember(tick) {
  state.times.push(tick.at);
  const there = new Set();
  for (const tenant of tick.tenants) {
    there.add(tenant.id);
    let series = state.history.get(tenant.id);
    if (!series) {
      series = { held: Array(state.times.length - 1).fill(null), entitled: Array(state.times.length - 1).fill(null) };
      state.history.set(tenant.id, series);
    }
    series.held.push(tenant.held);
    series.entitled.push(tenant.entitled);
  }
  for (const id of state.history.keys()) {
    if (!there.has(id)) {
      state.history.delete(id);
    }
  }
  while (state.times.length > state.kept) {
    state.times.shift();
    for (const series of state.history.values()) {
      series.held.shift();
      series.entitled.shift();
    }
  }
}

function addEvents(events) {
  const last = state.events.length ? state.events[state.events.length - 1].number : 0;
  state.events.push(...events.list.filter((event) => event.number > last));
  while (state.events.length > MOST_EVENTS) {
    state.events.splice(Math.max(0, state.events.findIndex((event) => COMMON.includes(event.kind))), 1);
  }
  state.leftOut += events.left_out;
}

// ---- the page

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // The address is not valid, for example because it was typed.
  }
}

function pageOf(hash) {
  const path = hash.slice(1).split('/');
  switch (path[1]) {
    case 'tenant':
      return tenantPage(decoded(path.slice(2).join('/')));
    case 'events':
      return eventsPage();
    case 'mig':
      return migPage();
    default:
      return overview();
  }
}

function show() {
  if (view && state.look >= 0) {
    view.update(state);
    text(clock, (isPaused ? 'Paused at ' : '') + time(state.at));
  }
}

function go(focus) {
  const hash = location.hash;
  if (hash === '#main') {
    main.focus();
    return;
  }
  view = pageOf(hash);
  document.title = view.title + ' – vgpu';
  if (state.look >= 0) {
    main.replaceChildren(view.element);
    show();
  }
  document.querySelectorAll('nav a').forEach((a) => {
    const isHere = a.hash === hash || (a.hash === '#/' && !['#/events', '#/mig'].includes(hash));
    if (isHere) {
      a.setAttribute('aria-current', 'page');
    } else {
      a.removeAttribute('aria-current');
    }
  });
  const gpu = hash.match(/^#\/gpu\/(\d+)$/);
  const heading = gpu ? document.getElementById('gpu-' + gpu[1]) : view.element.querySelector('h1');
  if (focus && heading) {
    heading.focus({ preventScroll: true });
    if (gpu) {
      heading.scrollIntoView();
    } else {
      scrollTo(0, 0);
    }
  }
}

// ---- the stream

function old() {
  return state.at ? 'All below is of ' + time(state.at) + ': ' : '';
}

function warnOfQuiet() {
  const quietMs = Math.max(QUIET_MS, 3 * (state.times.at(-1) - state.times.at(-2) || 0));
  if (!document.hidden && stream.readyState === EventSource.OPEN && performance.now() - heardAt > quietMs) {
    text(link, old() + 'vgpu has told nothing since.');
  }
}

function connect() {
  stream?.close();
  stream = new EventSource('/events');
  const mine = stream;
  heardAt = performance.now();
  let hello = null;
  stream.addEventListener('hello', (event) => {
    hello = JSON.parse(event.data);
  });
  stream.addEventListener('unknown', (event) => {
    heardAt = performance.now();
    text(link, old() + 'vgpu cannot look at the GPUs now: ' + JSON.parse(event.data).why);
  });
  stream.addEventListener('tick', (event) => {
    heardAt = performance.now();
    text(link, '');
    if (hello) {
      onHello(hello);
      hello = null;
    }
    const isFirst = !main.contains(view.element);
    const missed = onTick(JSON.parse(event.data));
    if (isFirst) {
      go(false);
    } else if (!isPaused) {
      show();
    }
    if (missed && state.at - anewAt > AGAIN_MS) {
      anewAt = state.at;
      connect(); // The server then sends the whole history again.
    }
  });
  stream.addEventListener('error', () => {
    text(link, 'No connection to vgpu since ' + time(state.at || Date.now())
      + ': it has ended, as many watch as may, or its token is another. Trying again.');
    if (mine.readyState === EventSource.CLOSED) {
      setTimeout(() => mine === stream && !document.hidden && connect(), AGAIN_MS);
    }
  });
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    stream?.close(); // The page is not visible: leave the place to another viewer.
  } else {
    connect();
  }
});

const pause = document.getElementById('pause');
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.setAttribute('aria-pressed', String(isPaused));
  show();
});

const theme = document.getElementById('theme');
function setTheme(name) {
  if (name) {
    document.documentElement.dataset.theme = name;
  } else {
    delete document.documentElement.dataset.theme;
  }
  theme.value = name;
  forgetColours();
  show();
}
theme.addEventListener('change', () => {
  localStorage.setItem('theme', theme.value);
  setTheme(theme.value);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme(theme.value));
addEventListener('resize', show);
addEventListener('hashchange', () => go(true));
setTheme(localStorage.getItem('theme') || '');
go(false);
connect();
setInterval(warnOfQuiet, 1000);
