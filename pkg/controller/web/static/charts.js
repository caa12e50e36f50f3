// Drawings: the last day, bars by day, attempts on a time axis, a strip a card, a line with its band. All have words beside them.
import { h, svg } from './dom.js';
import { clock, figure, hours, two } from './words.js';

const path = (d, props) => svg('path', { d, ...props });
const label = (x, y, text, props) => svg('text', { x, y, ...props }, text);

// redraw draws when the box has a width, and again when that changes.
export function redraw(el, draw) {
  let width = 0;
  const look = new ResizeObserver(() => { if (el.clientWidth && el.clientWidth !== width) { width = el.clientWidth; draw(width); } });
  look.observe(el);
  return { again: () => { if (width) draw(width); }, stop: () => look.disconnect() };
}

// steps is an outline of values that hold until the next; what is null leaves a gap. Closed down to base it is an area.
function steps(list, x, y, base) {
  let out = '', from = -1;
  for (let i = 0; i <= list.length; i++) {
    const known = i < list.length && list[i] !== null;
    if (known && from < 0) { from = i; out += base === undefined ? `M${x(i)} ${y(list[i])}` : `M${x(i)} ${base}`; }
    if (known) out += `V${y(list[i])}H${x(i + 1)}`;
    else if (from >= 0) { if (base !== undefined) out += `V${base}Z`; from = -1; }
  }
  return out;
}

// nice is a round number at or above v.
function nice(v) {
  const p = 10 ** Math.floor(Math.log10(Math.max(v, 1)));
  return [1, 2, 2.5, 4, 5, 8, 10].map((k) => k * p).find((k) => k >= v && Number.isInteger(k)) || Math.ceil(v);
}

// day draws the last 24 hours: cards given and busy above, cards that were waited for below.
export function day(el, d, said) {
  const draw = (W) => {
    const n = d.given.length, one = Boolean(d.node), top = 10, mid = one ? 148 : 112, low = 148, H = 168, L = Math.max(1, ...d.usable) < 1000 ? 32 : 44, R = W < 520 ? 8 : 104;
    const most = nice(Math.max(1, ...d.usable, ...d.given)), asked = nice(Math.max(1, ...d.asked));
    const x = (i) => +(L + i / n * (W - L - R)).toFixed(1), y = (v) => +(mid - v / most * (mid - top)).toFixed(1), z = (v) => +(low - v / asked * 28).toFixed(1);
    const begin = d.start, step = d.step_seconds, kids = [];
    const first = Math.ceil(begin / 10800) * 10800 + new Date(begin * 1000).getTimezoneOffset() * 60 % 10800;
    for (let t = first; t <= begin + n * step; t += W < 520 ? 21600 : 10800) {
      const X = x((t - begin) / step);
      if (X > W - R - 56) continue; // where it says "now"
      kids.push(svg('line', { x1: X, x2: X, y1: top, y2: low, class: 'grid' }), label(X, 164, `${two(new Date(t * 1000).getHours())}:00`, { 'text-anchor': 'middle' }));
    }
    kids.push(label(W - R, 164, 'now', { 'text-anchor': 'end' }));
    for (const v of [0, most / 2, most]) if (Number.isInteger(v)) kids.push(label(L - 6, y(v) + 4, figure(v), { 'text-anchor': 'end' }));
    kids.push(path(steps(d.given, x, y, mid), { class: 'given' }), path(steps(d.busy, x, y, mid), { class: 'busy' }), path(steps(d.given, x, y), { class: 'given-line' }),
      path(steps(d.usable, x, y), { class: 'usable' }), one ? '' : path(steps(d.asked, x, z, low), { class: 'asked' }));
    const i = d.given.findLastIndex((v) => v !== null);
    if (R > 20 && i >= 0) {
      const at = [[y(d.usable[i]) - 4, `${figure(d.usable[i])} usable`, 'soft'], [y(d.given[i]) + 4, `${figure(d.given[i])} given`, 'run'], [d.busy[i] === null ? -1 : y(d.busy[i]) + 12, `${figure(d.busy[i])} busy`, 'run'], [one ? -1 : z(d.asked[i]) + 6, `${figure(d.asked[i])} waited for`, 'wait']].filter(([Y]) => Y >= 0);
      for (let k = 1; k < at.length; k++) at[k][0] = Math.max(at[k][0], at[k - 1][0] + 14);
      for (const [Y, text, tone] of at) kids.push(label(W - R + 8, Y, text, { class: tone }));
    }
    const hair = svg('line', { class: 'hair', y1: top, y2: low, visibility: 'hidden' });
    kids.push(hair);
    const s = svg('svg', { height: H, width: W, role: 'img', 'aria-label': i < 0 ? 'No figures yet' : `The last 24 hours: now ${d.given[i]} of ${d.usable[i]} cards given, ${d.busy[i] ?? 'unknown'} busy, ${d.asked[i]} waited for` }, kids);
    s.addEventListener('pointermove', (e) => {
      const k = Math.max(0, Math.min(n - 1, Math.floor((e.offsetX - L) / (W - L - R) * n)));
      hair.setAttribute('x1', x(k + 0.5)); hair.setAttribute('x2', x(k + 0.5)); hair.setAttribute('visibility', 'visible');
      said(d.given[k] === null ? `${clock(begin + k * step)}  nothing is known` : `${clock(begin + k * step)}  ${d.given[k]} given, ${d.busy[k] ?? '–'} busy, ${d.usable[k]} usable${one ? '' : `, ${d.asked[k]} waited for`}`);
    });
    s.addEventListener('pointerleave', () => { hair.setAttribute('visibility', 'hidden'); said(''); });
    el.replaceChildren(s);
  };
  return redraw(el, draw);
}

// days draws card hours: busy full, held and not busy pale. list is of {day, held, busy}, in seconds.
export function days(el, list) {
  return redraw(el, (W) => {
    const L = 40, H = 148, low = 124, top = 20, most = nice(Math.max(1, ...list.map((d) => d.held / 3600))), w = (W - L) / list.length, kids = [];
    const y = (v) => +(low - v / 3600 / most * (low - top)).toFixed(1);
    for (const v of [0, most / 2, most]) kids.push(svg('line', { x1: L, x2: W, y1: y(v * 3600), y2: y(v * 3600), class: 'grid' }), label(L - 6, y(v * 3600) + 4, String(v), { 'text-anchor': 'end' }));
    list.forEach((d, i) => {
      const x = L + i * w + w * 0.15;
      kids.push(svg('rect', { x, width: w * 0.7, y: y(d.held), height: low - y(d.held), class: 'bar-held' }, svg('title', null, `${d.day}: ${hours(d.held)} held, ${hours(d.busy)} busy`)));
      if (d.busy) kids.push(svg('rect', { x, width: w * 0.7, y: y(d.busy), height: low - y(d.busy), class: 'bar-busy' }));
      if (w > 24 || i % 2 === (list.length - 1) % 2) kids.push(label(x + w * 0.35, 140, d.day.slice(-2), { 'text-anchor': 'middle' }));
      if (w > 36 && d.held) kids.push(label(x + w * 0.35, y(d.held) - 4, String(Math.round(d.held / 3600)), { 'text-anchor': 'middle' }));
    });
    el.replaceChildren(svg('svg', { height: H, width: W, role: 'img', 'aria-label': `Card hours by day, ${list[0].day} to ${list.at(-1).day}` }, kids));
  });
}

// axis draws spans of time one after the other: {from, to, kind, text, title}.
export function axis(parts, begin, end, marks) {
  const long = Math.max(1, end - begin), at = (t) => ((Math.min(Math.max(t, begin), end) - begin) / long * 100).toFixed(2);
  const seen = (marks || []).filter((m, i, a) => i === 0 || (m.at - a[i - 1].at) / long > 0.14 || m.end);
  return h('div', { class: 'axis' }, parts.map((p) => h('i', { class: p.kind, title: p.title, '--x': at(p.from), '--w': (at(p.to) - at(p.from)).toFixed(2) }, (p.to - p.from) / long > 0.06 ? p.text : '')),
    seen.map((m) => h('small', { class: m.end ? 'end' : null, '--x': at(m.at) }, m.text)));
}

// strip is one row of a heat strip: shade is how busy, nothing where it is unknown.
export function strip(points, name) {
  const n = Math.max(points.length, 1);
  return svg('svg', { viewBox: `0 0 ${n} 1`, preserveAspectRatio: 'none', role: 'img', 'aria-label': name },
    points.map((v, i) => (v === null ? null : svg('rect', { x: i, y: 0, width: 1.04, height: 1, class: 'heat-bit', 'fill-opacity': (0.08 + v / 100 * 0.88).toFixed(2) }))));
}

// band draws the mean of several series, between the lowest and the highest of them. All have as many points as the longest.
export function band(series, name) {
  const n = Math.max(2, ...series.map((s) => s.length)), H = 64, W = 300;
  const x = (i) => +(i / (n - 1) * W).toFixed(1), y = (v) => +(H - 2 - v / 100 * (H - 6)).toFixed(1);
  const mean = [], low = [], high = [];
  for (let i = 0; i < n; i++) {
    const v = series.map((s) => s[i]).filter((p) => p !== null && p !== undefined);
    if (!v.length) continue;
    mean.push(`${x(i)} ${y(v.reduce((a, b) => a + b, 0) / v.length)}`);
    low.push(`${x(i)} ${y(Math.min(...v))}`);
    high.push(`${x(i)} ${y(Math.max(...v))}`);
  }
  return svg('svg', { height: H, viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': name },
    path(`M0 ${y(100)}H${W}M0 ${y(50)}H${W}M0 ${y(0)}H${W}`, { class: 'grid' }),
    mean.length && [series.length > 1 && path(`M${high.join('L')}L${low.reverse().join('L')}Z`, { class: 'given' }), path('M' + mean.join('L'), { class: 'mean' })]);
}
