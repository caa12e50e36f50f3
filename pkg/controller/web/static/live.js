// The queue and the nodes as gangd tells them: one stream, which comes back by itself.
import { $ } from './dom.js';
import { clock, members, span } from './words.js';

export const jobs = new Map(); // by number
export const nodes = new Map(); // by name
export const arrays = new Map(); // numbers of the elements of each array that are known
// order is how the queue goes: the place of each job that could start, and when it is expected to, as far as it was computed.
export const order = { place: new Map(), starts: new Map(), whys: new Map(), total: 0, told: false };
export const state = { on: false, told: false, nodes: false, partitions: [] };

const listeners = new Set();
const news = () => ({ jobs: new Set(), nodes: new Set(), used: new Set(), all: false, order: false });
let gathered = news(), due = false, source = null, since = null, pause = 500, heard = 0;

// onChange calls fn with what is different, once a frame: {jobs, nodes, used, all, order}. used are nodes of which only figures moved.
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
    const told = gathered;
    gathered = news();
    for (const fn of [...listeners]) fn(told);
  });
}

const escapes = { t: '\t', n: '\n', r: '\r', '\\': '\\' };
const text = (s) => (s.includes('\\') ? s.replace(/\\(.)/g, (_, c) => escapes[c] ?? c) : s);
const numbers = new Set(['job_id', 'array_job_id', 'array_limit', 'priority', 'size', 'epoch', 'min_nodes', 'cards', 'time_limit_seconds']);
const inSeconds = (t) => Number(t.slice(0, -6) || 0) / 1000; // of nanoseconds
const reader = (name) => (numbers.has(name) ? Number : name.endsWith('_time') ? inSeconds : text);

// rows reads a table of text/tab-separated-values, some hundred lines at a time; see LinesType of pkg/api.
function* rows(data) {
  const all = data.split('\n'), names = all[0].split('\t'), read = names.map(reader), out = [];
  for (let i = 1; i < all.length; i++) {
    if (!all[i]) continue;
    const f = all[i].split('\t'), j = {};
    for (let k = 0; k < names.length; k++) j[names[k]] = read[k](f[k]);
    j.array = j.array_job_id && j.array_index !== '' ? j.array_job_id : 0;
    j.ref = j.array ? `${j.array}_${j.array_index}` : String(j.job_id);
    out.push(j);
    if (out.length % 200 === 0) yield;
  }
  return out;
}

function* take(data, whole) {
  const list = yield* rows(data);
  if (whole) { jobs.clear(); arrays.clear(); gathered.all = state.told = true; }
  for (const j of list) {
    jobs.set(j.job_id, j);
    gathered.jobs.add(j.job_id);
    if (!j.array) continue;
    if (!arrays.has(j.array)) arrays.set(j.array, new Set());
    arrays.get(j.array).add(j.job_id);
  }
}

function drop(ids) {
  for (const id of ids) {
    const j = jobs.get(id);
    jobs.delete(id);
    gathered.jobs.add(id);
    const of = j && arrays.get(j.array);
    if (of) { of.delete(id); if (!of.size) arrays.delete(j.array); }
  }
}

function queued(o) {
  order.place = new Map(members(o.order).map((id, i) => [id, i + 1]));
  order.starts = new Map((o.starts || []).map(([id, at, sure]) => [id, { at, sure: Boolean(sure) }]));
  order.whys = new Map((o.whys || []).flatMap((w) => members(w.jobs).map((id) => [id, w.text])));
  order.total = order.place.size;
  order.told = true;
  gathered.order = true;
}

function node(n) { nodes.set(n.name, n); gathered.nodes.add(n.name); }

// use takes in what moves of nodes; see NodeUse of pkg/api.
const mebi = 1048576;
function use(of) {
  for (const [name, u] of Object.entries(of)) {
    const n = nodes.get(name);
    if (!n) continue;
    let given = false;
    n.cards.forEach((c, i) => {
      const [used, strangers, busy, reserved, ...ids] = u.cards[i] || [];
      if (used === undefined) return;
      given ||= ids.join() !== c.jobs.join() || (strangers > 0) !== (c.strangers_bytes > 0);
      Object.assign(c, { used_bytes: used * mebi, strangers_bytes: strangers * mebi, utilization: busy, reserved_bytes: reserved * mebi, jobs: ids });
    });
    Object.assign(n, { cpus_used: u.cpus_used, memory_used_bytes: u.memory_used_bytes, jobs: u.jobs });
    (given ? gathered.nodes : gathered.used).add(name);
  }
}

function line(on) {
  state.on = on;
  const el = $('line');
  el.textContent = on ? 'live' : 'away';
  el.classList.toggle('off', !on);
  if (on) {
    since = null;
    pause = 500;
    $('lost').hidden = true;
  } else {
    since = since || heard || Date.now();
    away();
  }
}

// away says of when what is shown is.
function away() {
  const of = since / 1000;
  $('lost').textContent = `gangd has not answered for ${span(Date.now() / 1000 - of)}: what you see is of ${clock(of, true)}. Jobs run on, and this page goes on by itself.`;
  $('lost').hidden = false;
}

// What is told is taken in in its order, a slice at a time: ten thousand jobs at once would hold a browser up.
const slice = 12;
let inbox = [], taking = false;
function takeIn() {
  const until = document.hidden ? Infinity : performance.now() + slice;
  while (inbox.length) {
    if (performance.now() >= until) { setTimeout(takeIn); return; }
    if (inbox[0].next().done) { inbox.shift(); changed(); }
  }
  taking = false;
}

let again = 0; // the timer of the next try

export function connect() {
  if (source) source.close();
  if (state.on) heard = Date.now();
  const s = new EventSource('/v1/live?nodes=1');
  source = s;
  source.begun = Date.now();
  inbox = [];
  const on = (name, work) => s.addEventListener(name, (e) => {
    if (s !== source) return;
    heard = Date.now();
    if (!state.on) line(true);
    if (!work) return;
    inbox.push(work(e.data));
    if (!taking) { taking = true; takeIn(); }
  });
  on('all', (d) => take(d, true));
  on('rows', (d) => take(d, false));
  on('gone', function* (d) { drop(d.split(',').map(Number)); });
  on('order', function* (d) { queued(JSON.parse(d)); });
  on('nodes', function* (d) { const list = JSON.parse(d); yield; nodes.clear(); list.forEach(node); state.nodes = gathered.all = true; });
  on('node', function* (d) { JSON.parse(d).forEach(node); });
  on('use', function* (d) { use(JSON.parse(d)); });
  on('beat');
  s.onerror = () => { if (s === source) retry(); };
}

// rest lets the stream go until connect.
export function rest() {
  clearTimeout(again);
  source?.close();
  source = null;
}

// retry tries after a pause that is another one in each page: a hundred that come back at once would be a flood.
function retry() {
  source.close();
  source = null;
  line(false);
  again = setTimeout(connect, pause * (0.5 + Math.random()));
  pause = Math.min(pause * 2, 10000);
}

// A gangd that is frozen ends no connection: it is silent. It says something each two seconds otherwise.
const silence = 4500;
setInterval(() => {
  if (!state.on && since && !document.hidden) away();
  if (!source) return;
  const quiet = Date.now() - Math.max(heard, source.begun);
  if (state.on ? Date.now() - heard > silence : quiet > 4 * silence) retry();
}, 500);
