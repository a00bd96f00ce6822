// Lines on a canvas, in the colours of the theme.
let colours = new Map();

export function forgetColours() {
  colours = new Map();
}

function colour(name) {
  if (!colours.has(name)) {
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim());
  }
  return colours.get(name);
}

function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const draw = canvas.getContext('2d');
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, width, height);
  return { draw, width, height };
}

// A gap where nothing was measured.
function line(draw, values, x, y, style, width, dash) {
  draw.strokeStyle = style;
  draw.lineWidth = width;
  draw.setLineDash(dash || []);
  draw.beginPath();
  let isOpen = false;
  values.forEach((value, i) => {
    if (value === null) {
      isOpen = false;
    } else if (isOpen) {
      draw.lineTo(x(i), y(value));
    } else {
      draw.moveTo(x(i), y(value));
      isOpen = true;
    }
  });
  draw.stroke();
}

export function spark(canvas, series, kept, max, kind) {
  const { draw, width, height } = prepare(canvas);
  if (!width) {
    return;
  }
  const offset = kept - series.held.length;
  const x = (i) => ((offset + i) / (kept - 1)) * width;
  const y = (value) => height - 1.5 - (Math.min(value, max) / max) * (height - 3);
  line(draw, series.entitled, x, y, colour('mark'), 1, [3, 2]);
  line(draw, series.held, x, y, colour(kind), 1.5);
}

const LEFT = 50;
const BOTTOM = 22;

export function chart(canvas, series, times, kept, max, kind) {
  const { draw, width, height } = prepare(canvas);
  if (!width) {
    return;
  }
  const offset = kept - series.held.length;
  const x = (i) => LEFT + ((offset + i) / (kept - 1)) * (width - LEFT - 8);
  const y = (value) => 8 + (1 - Math.min(value, max) / max) * (height - BOTTOM - 8);
  draw.font = '12px system-ui, sans-serif';
  draw.fillStyle = colour('muted');
  draw.textAlign = 'right';
  draw.textBaseline = 'middle';
  for (let part = 0; part <= 4; part++) {
    const value = (max * part) / 4;
    line(draw, [value, value], (i) => (i ? width - 8 : LEFT), y, colour('line'), 1);
    draw.fillText(Number(value.toFixed(1)) + ' %', LEFT - 6, y(value));
  }
  draw.textBaseline = 'alphabetic';
  const last = times.length - 1;
  for (let i = last; i >= 0; i -= 60) {
    draw.textAlign = i === last ? 'right' : 'center';
    const ago = Math.round((times[last] - times[i]) / 1000);
    if (x(i) > LEFT + 20) {
      draw.fillText(ago ? ago + ' s ago' : 'now', x(i), height - 5);
    }
  }
  line(draw, series.entitled, x, y, colour('mark'), 1.5, [5, 4]);
  line(draw, series.held, x, y, colour(kind), 2);
}
