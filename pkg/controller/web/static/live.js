// The queue and the nodes as gangd tells them: one stream, which comes back by itself.
import { $ } from './dom.js';

export const jobs = new Map();
export const nodes = new Map();
export const state = { on: false, told: false };

const listeners = new Set();
let touched = new Set(), all = false, due = false, source = null, since = null, pause = 500, heard = 0;

// onChange calls fn(ids, all) once a frame with the jobs that are different.
export function onChange(fn) {
  listeners.add(fn);
  return () => listeners.delete(fn);
}

function changed() {
  if (due) return;
  due = true;
  // A page in the background draws nothing, and must not gather for ever.
  (document.hidden ? (f) => setTimeout(f, 500) : requestAnimationFrame)(() => {
    due = false;
    const ids = touched, whole = all;
    touched = new Set();
    all = false;
    for (const fn of [...listeners]) fn(ids, whole);
  });
}

const escapes = { t: '\t', n: '\n', r: '\r', '\\': '\\' };
const plain = (s) => (s.includes('\\') ? s.replace(/\\(.)/g, (_, c) => escapes[c] ?? c) : s);
const number = new Set(['job_id', 'array_job_id', 'array_limit', 'priority', 'size', 'epoch', 'min_nodes', 'time_limit_seconds']);

// rows reads a table of text/tab-separated-values; see LinesType of pkg/api.
export function rows(text) {
  const lines = text.split('\n');
  const names = lines[0].split('\t');
  const out = [];
  for (let i = 1; i < lines.length; i++) {
    if (!lines[i]) continue;
    const f = lines[i].split('\t'), j = {};
    for (let k = 0; k < names.length; k++) {
      const n = names[k];
      if (number.has(n)) j[n] = Number(f[k]);
      else if (n.endsWith('_time')) j[n] = Number(f[k].slice(0, -6) || 0) / 1000; // nanoseconds, in seconds
      else j[n] = plain(f[k]);
    }
    j.ref = j.array_job_id && j.array_index !== '' ? `${j.array_job_id}_${j.array_index}` : String(j.job_id);
    out.push(j);
  }
  return out;
}

function take(text, whole) {
  if (whole) { jobs.clear(); all = true; }
  for (const j of rows(text)) {
    jobs.set(j.job_id, j);
    touched.add(j.job_id);
  }
  changed();
}

function line(on) {
  state.on = on;
  const el = $('line');
  el.textContent = on ? 'live' : 'not connected';
  el.classList.toggle('off', !on);
  if (on) {
    since = null;
    pause = 500;
    $('lost').hidden = true;
  } else {
    since = since || new Date();
    $('lost').textContent = `gangd does not answer since ${since.toLocaleTimeString()}: what is shown is from before. Jobs are not affected, and this page goes on by itself.`;
    $('lost').hidden = false;
  }
}

export function connect() {
  if (source) source.close();
  const s = new EventSource('/v1/live?nodes=1');
  source = s;
  heard = Date.now();
  const on = (name, fn) => s.addEventListener(name, (e) => { heard = Date.now(); if (!state.on) line(true); fn(e.data); });
  on('all', (d) => { state.told = true; take(d, true); });
  on('rows', (d) => take(d, false));
  on('gone', (d) => { for (const id of d.split(',')) { jobs.delete(Number(id)); touched.add(Number(id)); } changed(); });
  on('nodes', (d) => { nodes.clear(); for (const n of JSON.parse(d)) nodes.set(n.name, n); all = true; changed(); });
  on('node', (d) => { for (const n of JSON.parse(d)) nodes.set(n.name, n); changed(); });
  on('beat', () => {});
  s.onerror = () => {
    if (s !== source) return;
    s.close();
    line(false);
    again();
  };
}

// again tries after a pause that is another one in each page: a hundred that come back at once would be a flood.
function again() {
  setTimeout(connect, pause * (0.5 + Math.random()));
  pause = Math.min(pause * 2, 10000);
}

// A connection can end without a word; gangd says something each 5 s.
setInterval(() => {
  if (source && source.readyState === EventSource.OPEN && Date.now() - heard > 20000) {
    source.close();
    line(false);
    connect();
  }
}, 5000);
