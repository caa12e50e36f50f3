// What an attempt was seen using: a strip a card, small drawings of all cards together, and figures.
import { h, head2, facts, table, keep, meter } from './dom.js';
import { band, strip } from './charts.js';
import { bytes, clock, count, hours, percent, seconds, span } from './words.js';

const idleShare = 0.9; // of its time: a card that did nothing for so much of it has been idle

// sum gives the cards of an attempt in the order of nodes, and those that were idle.
export function sum(a) {
  const cards = (a.measures || []).flatMap((m) => (m.cards || []).map((c) => ({ node: m.node, seconds: m.seconds, ...c })));
  const idle = cards.filter((c) => c.seconds > 120 && typeof c.idle_seconds === 'number' && c.idle_seconds > idleShare * c.seconds);
  return { cards, idle };
}

// begun is the way to the first step as a bar of its parts, each with its name and seconds; nothing where none was seen.
function begun(s) {
  if (!s || s.first_use_seconds === undefined && s.first_beat_seconds === undefined) return '';
  const use = s.first_use_seconds || 0, parts = [['image', s.image_seconds, 'over'], ['prolog', s.prolog_seconds, 'bad'], ['prepare', s.prepare_seconds, 'wait'], ['wait', s.wait_seconds, 'none'], ['to the first use of a card', use, ''],
    ['to the first beat', s.first_beat_seconds === undefined ? 0 : Math.max(s.first_beat_seconds - use, 0), 'over']].filter(([, v]) => v >= 0.05);
  const total = parts.reduce((sum, [, v]) => sum + v, 0), text = `${total.toFixed(1)} s to the first step` + (parts.length ? ': ' + parts.map(([name, v]) => `${name} ${v.toFixed(1)} s`).join(', ') : '');
  return h('div', { id: 'start' }, h('p', { class: 's' }, text), total ? meter(parts.map(([, v, kind]) => [100 * v / total, kind]), text) : '');
}

const heatNodes = 8; // that are drawn; more are in the table

// measures fills the boxes heat, plots and used of a job.
export function measures(parts, j, a) {
  const on = a && a.measures.length > 0;
  for (const k of ['heat', 'plots', 'used']) parts[k].hidden = !on;
  if (!on) return;
  const { cards, idle } = sum(a), key = JSON.stringify([a.attempt, a.measures, a.efficiency, Boolean(a.cause)]), withSeries = cards.filter((c) => c.series);
  const begin = seconds(a.start_time), end = seconds(a.end_time) || begin + Math.max(...a.measures.map((m) => m.seconds));
  const axis = () => h('div', { class: 'row s soft' }, h('span', null, clock(begin)), h('span', { class: 'grow' }), h('span', null, a.cause ? clock(end) : 'now'));
  parts.heat.hidden = !withSeries.length;
  keep(parts.heat, key, () => {
    const named = new Map((j.ranks || []).flatMap((r) => (r.cards || []).map((u) => [u, r.rank]))), isIdle = new Set(idle), nodes = [...new Set(withSeries.map((c) => c.node))].sort((x, y) => Number(idle.some((c) => c.node === y)) - Number(idle.some((c) => c.node === x)));
    return [head2(`Cards of attempt ${a.attempt}`, 'shade is how busy'), nodes.slice(0, heatNodes).map((n) => [h('p', { class: 's' }, n), h('div', { class: 'heat' }, withSeries.filter((c) => c.node === n).map((c) => [h('span', { class: 'soft r' }, String(c.index)),
      h('span', { class: isIdle.has(c) ? 'out' : null }, strip(c.series.use, `card ${c.index} of ${n}: ${c.utilization ? percent(c.utilization.mean) : 'unknown'} busy`)), h('span', isIdle.has(c) ? { class: 'idle' } : { class: 'soft' }, isIdle.has(c) ? `idle${named.has(c.uuid) ? ', rank ' + named.get(c.uuid) : ''}` : c.utilization ? percent(c.utilization.mean) : '–')]))]),
    nodes.length > heatNodes ? h('p', { class: 'soft s' }, `and ${count(nodes.length - heatNodes, 'node')} more: see the table below`) : '', axis()];
  });
  const of = (k) => withSeries.map((c) => c.series[k]), hosts = a.measures.filter((m) => m.series);
  parts.plots.hidden = !withSeries.length && !hosts.length;
  keep(parts.plots, key, () => {
    const one = (name, unit, series) => (series.length ? h('div', null, h('p', { class: 's' }, name, ' ', h('span', { class: 'soft' }, unit)), band(series, `${name} over time`)) : '');
    const vram = Math.max(0, ...cards.map((c) => c.vram_asked || c.vram_bytes));
    return [head2('Measures', `line: mean of ${withSeries.length ? count(withSeries.length, 'card') : count(hosts.length, 'node')}; band: lowest to highest`), h('div', { class: 'three', id: 'plots' }, one('busy', 'cards, 0 to 100 %', of('use')), one('VRAM', `0 to ${bytes(vram)}`, of('memory')), one('CPUs', 'of those held, 0 to 100 %', hosts.map((m) => m.series.use)), withSeries.length ? '' : one('memory', 'of what was asked', hosts.map((m) => m.series.memory))), axis()];
  });
  keep(parts.used, key, () => {
    const e = a.efficiency || {}, vram = Math.max(0, ...cards.map((c) => c.vram?.max || 0)), whole = Math.max(0, ...cards.map((c) => c.vram_asked || c.vram_bytes)), energy = cards.filter((c) => typeof c.joules === 'number').reduce((s, c) => s + c.joules, 0);
    const rows = a.measures.flatMap((x) => [[x.node, '', x.cpu ? percent(x.cpu.mean) : '–', bytes(x.memory_peak_bytes) + (x.memory_bytes ? ' of ' + bytes(x.memory_bytes) : ''), '', '', ''],
      ...(x.cards || []).map((c) => ['', `card ${c.index}`, '', '', c.utilization ? percent(c.utilization.mean) : '–', typeof c.idle_seconds === 'number' ? span(c.idle_seconds) : '–', c.vram ? `${bytes(c.vram.max)} of ${bytes(c.vram_asked || c.vram_bytes)}` : '–'])]);
    const open = parts.used.querySelector('details')?.open;
    return [h('h2', null, a.cause ? `What attempt ${a.attempt} used` : 'So far'), h('div', { id: 'used' }, facts([
      ['card time', cards.length ? `${hours(cards.reduce((s, c) => s + c.seconds, 0))}, ${percent(e.gpu_percent)} busy` : ''], ['cards idle', e.gpu_idle_percent ? percent(e.gpu_idle_percent) + ' of the time' : ''], ['VRAM, at most', cards.length && vram ? `${bytes(vram)} of ${bytes(whole)} (${percent(100 * vram / whole)})` : ''],
      ['CPUs', `${percent(e.cpu_percent)} of those held`], ['memory, at most', e.memory_peak_bytes ? `${bytes(e.memory_peak_bytes)}${e.memory_percent ? ` (${percent(e.memory_percent)} of what was asked)` : ''}` : ''], ['time limit', e.time_percent ? percent(e.time_percent) : ''], ['energy', energy ? `${(energy / 3.6e6).toFixed(energy < 3.6e6 ? 3 : 1)} kWh` : '']]),
    a.cause ? '' : h('p', { class: 'soft s' }, 'as of the last minute')), begun(e.start), e.advice?.length && a.cause ? h('ul', { id: 'advice' }, e.advice.map((x) => h('li', null, x.text))) : '',
    h('details', { open }, h('summary', { class: 's' }, 'by node and card'), table('What was used', ['node', 'card', 'CPU|', 'memory, at most|', 'busy|', 'idle|', 'VRAM, at most|'], rows.slice(0, 256)))];
  });
}
