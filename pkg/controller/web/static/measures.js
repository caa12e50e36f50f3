// What an attempt was seen using: figures, advice, and how it went with time, drawn by uPlot, which reports draw with, too.
import { h, duration, bytes, table } from './dom.js';

const percent = (v) => (v === undefined || v === null ? 'unknown' : v.toFixed(v < 10 ? 1 : 0) + ' %');
const size = (v) => (v === undefined || v === null ? 'unknown' : bytes(v));
const mean = (f) => (f ? percent(f.mean) : 'unknown');

// Told apart with any kind of colour vision (Okabe and Ito); the seventh and those after it are dashed.
const colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];

let bringing = null;
// uplot is brought when somebody looks at the first job that was measured.
function uplot() {
  return bringing ??= new Promise((done, fail) => {
    const s = h('script', { src: '/uplot.js', onload: () => done(window.uPlot), onerror: () => { bringing = null; fail(new Error('no uplot.js')); } });
    document.head.append(h('link', { rel: 'stylesheet', href: '/uplot.css' }), s);
  });
}

// figure draws series of percentages, each of {name, step, points}, that begin with the attempt. Its canvas is for the eye; the
// table above has the figures.
function figure(uPlot, title, lines) {
  const box = h('figure', { class: 'plot', role: 'img', 'aria-label': `${title}: ${lines.map((l) => `${l.name} ${percent(l.points.findLast((p) => p !== null))} last`).join(', ')}` });
  const css = getComputedStyle(document.documentElement), ink = css.getPropertyValue('--soft'), edge = css.getPropertyValue('--edge');
  const axis = { stroke: ink, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge, width: 1 } };
  const data = uPlot.join(lines.map((l) => [l.points.map((_, i) => i * l.step), l.points]));
  const width = () => Math.max(240, Math.min(640, box.parentElement.clientWidth - 8));
  const draw = () => new uPlot({
    title, width: width(), height: 190, legend: { live: false }, cursor: { show: false },
    scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max(100, high || 0)] } },
    axes: [{ ...axis, values: (u, v) => v.map((s) => duration(s)), space: 70 }, { ...axis, values: (u, v) => v.map((p) => p + ' %'), size: 56 }],
    series: [{}, ...lines.map((l, i) => ({ label: l.name, stroke: colours[i % 6], width: 1.5, dash: i < 6 ? [] : [8, 4], points: { show: l.points.length < 3 } }))],
  }, data, box);
  return { box, draw };
}

// start is the way to the first step as a bar of its parts, each with its name and seconds; nothing where none was seen.
function start(s) {
  if (!s || (s.first_use_seconds === undefined && s.first_beat_seconds === undefined)) return '';
  const use = s.first_use_seconds, beat = s.first_beat_seconds;
  const parts = [['image', s.image_seconds], ['prolog', s.prolog_seconds], ['prepare', s.prepare_seconds], ['wait', s.wait_seconds], ['to the first use of a card', use],
    ['to the first beat', beat === undefined ? undefined : Math.max(beat - (use || 0), 0)]].map(([name, v], i) => ({ name, v: v || 0, colour: colours[i] })).filter((p) => p.v >= 0.05);
  const total = parts.reduce((sum, p) => sum + p.v, 0);
  const text = `${total.toFixed(1)} s to the first step` + (parts.length ? ': ' + parts.map((p) => `${p.name} ${p.v.toFixed(1)} s`).join(', ') : '');
  const bar = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [k, v] of [['viewBox', '0 0 100 4'], ['preserveAspectRatio', 'none'], ['width', '100%'], ['height', '10'], ['aria-hidden', 'true']]) bar.setAttribute(k, v);
  let x = 0;
  for (const p of parts) {
    const r = document.createElementNS('http://www.w3.org/2000/svg', 'rect'), w = 100 * p.v / total;
    for (const [k, v] of [['x', x], ['y', 0], ['width', w], ['height', 4], ['fill', p.colour]]) r.setAttribute(k, v);
    bar.append(r);
    x += w;
  }
  return h('div', { id: 'start' }, h('p', null, text), bar);
}

// measures keeps a box up to date with the newest attempt; what did not change is not drawn again.
export function measures(box) {
  let last = '', node = '';
  async function show(attempts) {
    const a = attempts.findLast((x) => x.measures && x.measures.length);
    const now = a ? JSON.stringify([a.attempt, a.measures, a.efficiency, node]) : '';
    if (now === last) return;
    last = now;
    if (!a) { box.replaceChildren(); return; }
    const e = a.efficiency || {}, names = a.measures.map((m) => m.node);
    const m = a.measures.find((x) => x.node === node) || a.measures[0];
    const rows = a.measures.flatMap((x) => [[x.node, '', mean(x.cpu), size(x.memory_peak_bytes) + (x.memory_bytes ? ' of ' + bytes(x.memory_bytes) : ''), '', '', '', ''],
      ...(x.cards || []).map((c) => ['', `card ${c.index}`, '', '', mean(c.utilization), c.idle_seconds === null || c.idle_seconds === undefined ? 'unknown' : duration(c.idle_seconds),
        c.vram ? `${bytes(c.vram.max)} of ${bytes(c.vram_asked || c.vram_bytes)}` : 'unknown', c.joules === null || c.joules === undefined ? 'unknown' : (c.joules / 3600).toFixed(1) + ' Wh'])]);
    const pick = names.length > 1 && h('select', { id: 'measured-node', 'aria-label': 'Of which node', onchange: (ev) => { node = ev.target.value; show(attempts); } },
      names.map((n) => h('option', { selected: n === m.node }, n)));
    const plots = h('div', { class: 'plots', id: 'plots' });
    box.replaceChildren(h('h2', null, `What attempt ${a.attempt} used`),
      h('p', { id: 'used' }, `CPU ${percent(e.cpu_percent)}, memory ${percent(e.memory_percent)}, cards ${percent(e.gpu_percent)}, VRAM ${percent(e.vram_percent)}` +
        (e.time_percent === undefined ? '' : `, time limit ${percent(e.time_percent)}`) + (a.cause ? '' : '; as of the last minute')),
      start(e.start),
      h('ul', { id: 'advice' }, (e.advice || []).map((x) => h('li', null, x.text))),
      table(['node', 'card', 'CPU', 'memory, at most', 'use', 'idle', 'VRAM, at most', 'energy'], rows.slice(0, 256), { label: 'What was used' }),
      pick ? h('div', { class: 'tools' }, pick) : '', plots);
    const lines = (key) => (m.cards || []).filter((c) => c.series).map((c) => ({ name: `card ${c.index}`, step: c.series.step_seconds, points: c.series[key] }));
    const all = [[`${m.node}: CPUs and memory`, m.series ? [{ name: 'CPU', step: m.series.step_seconds, points: m.series.use }, { name: 'memory', step: m.series.step_seconds, points: m.series.memory }] : []],
      [`${m.node}: cards, in use`, lines('use')], [`${m.node}: cards, VRAM`, lines('memory')]].filter(([, l]) => l.length);
    if (!all.length) return;
    try {
      const uPlot = await uplot();
      for (const [title, l] of all) {
        const f = figure(uPlot, title, l);
        plots.append(f.box);
        f.draw();
      }
    } catch (err) {
      plots.replaceChildren(h('p', { class: 'bad' }, 'can not draw: ' + err.message));
    }
  }
  return show;
}
