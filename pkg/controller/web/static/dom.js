// What the views have in common: elements and calls.
import { told } from './words.js';

function put(el, props, kids) {
  for (const [k, v] of Object.entries(props || {})) {
    if (v === false || v === undefined || v === null) continue;
    if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
    else if (k.startsWith('--')) el.style.setProperty(k, v); // a property is no inline style to a browser's policy
    else el.setAttribute(k, v === true ? '' : v);
  }
  el.append(...kids.flat(9).filter((k) => k !== null && k !== undefined && k !== false && k !== ''));
  return el;
}

export const h = (tag, props, ...kids) => put(document.createElement(tag), props, kids);
export const svg = (tag, props, ...kids) => put(document.createElementNS('http://www.w3.org/2000/svg', tag), props, kids);
export const $ = (id) => document.getElementById(id);

export const session = { user: '', admin: false, guest: false, csrf: '' };

const headers = () => ({ 'Content-Type': 'application/json', 'Gang-CSRF': session.csrf });

async function ask_(path, body) {
  let res;
  try {
    res = await fetch(path, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body), headers: headers() });
  } catch {
    throw new Error('gangd does not answer');
  }
  const text = await res.text();
  if (res.ok) return text;
  let e = {};
  try { e = JSON.parse(text); } catch { /* not gangd's */ }
  const err = new Error(told(e.message || `${res.status} ${res.statusText}`) + (e.hint ? '; ' + told(e.hint) : ''));
  err.code = e.code;
  throw err;
}

// call asks gangd. What it refuses is thrown, with its own words.
export async function call(path, body) {
  const text = await ask_(path, body);
  return text ? JSON.parse(text) : {};
}

// lines asks for one JSON object a line, plain for a text.
export const lines = async (path, body) => (await ask_(path, body)).split('\n').filter(Boolean).map((l) => JSON.parse(l));
export const plain = ask_;

let saying = 0;
export function say(text) {
  $('said').textContent = text;
  clearTimeout(saying);
  saying = setTimeout(() => { $('said').textContent = ''; }, 12000);
}

// ask resolves to the reason given ('' where none is asked for), or to null. The choice that changes nothing has the focus.
export function ask({ question, says, yes, no, reason, harm }) {
  const d = $('ask');
  $('asked').textContent = question;
  $('ask-says').textContent = says || '';
  $('ask-says').hidden = !says;
  $('reason-label').hidden = !reason;
  $('reason').value = '';
  $('yes').textContent = yes;
  $('yes').className = harm ? 'bad' : '';
  $('no').textContent = no || 'Leave it';
  d.returnValue = 'no';
  $('reason').onkeydown = (e) => { if (e.key === 'Enter') { e.preventDefault(); $('yes').click(); } };
  d.showModal();
  (reason ? $('reason') : $('no')).focus();
  return new Promise((done) => d.addEventListener('close', () => done(d.returnValue === 'yes' ? $('reason').value : null), { once: true }));
}

// act asks, calls, and says what became of it.
export async function act(question, path, body) {
  const why = await ask(question);
  if (why === null) return;
  try {
    const out = await call(path, question.reason ? { ...body, reason: why } : body);
    const bad = (out.results || []).filter((r) => r.error).map((r) => `${r.ref}: ${r.error.message}`);
    say(bad.length ? bad.join('; ') : question.done || 'Done.');
  } catch (e) {
    say(e.message);
  }
}

export const mark = (kind) => h('span', { class: 'm ' + kind, 'aria-hidden': 'true' });

// meter draws parts of a hundred: [percent, kind] each.
export function meter(parts, label) {
  return h('span', { class: 'meter', role: 'img', 'aria-label': label || parts.map(([v]) => Math.round(v) + ' %').join(', ') },
    parts.filter(([v]) => v > 0).map(([v, kind]) => h('i', { class: kind || '', '--v': Math.min(100, v).toFixed(2) })));
}

export const box = (title, ...kids) => h('section', { class: 'box' }, title && h('h2', null, title), ...kids);
export const head2 = (title, says, ...more) => h('div', { class: 'row titled' }, h('h2', null, title), h('span', { class: 'grow' }), says && h('small', { class: 'soft' }, says), ...more);

// table of names and rows of cells. What stands behind a name: | it is of figures; on a phone ~ has a line of its own, and ^ is not there.
export function table(label, names, rows) {
  const marks = names.map((n) => n.match(/[|~^]*$/)[0]), heads = names.map((n, i) => n.slice(0, n.length - marks[i].length)), stacked = marks.some((m) => m.includes('~'));
  const cls = (i) => [marks[i].includes('|') && 'r', marks[i].includes('~') && 'own', marks[i].includes('^') && 'big-only'].filter(Boolean).join(' ') || null;
  return h('div', { class: 'wide' + (stacked ? ' stack' : ''), tabindex: '0', role: 'region', 'aria-label': label },
    h('table', { class: 'sum' }, h('thead', null, h('tr', null, heads.map((n, i) => h('th', { scope: 'col', class: cls(i) }, n)))),
      h('tbody', null, rows.map((r) => h('tr', { class: r.class }, (r.cells || r).map((c, i) => h('td', { class: cls(i), 'data-h': stacked && marks[i].includes('|') ? (heads[i] === 'cards' && String(c) === '1' ? 'card' : heads[i]) : null }, c ?? '')))))));
}

export const facts = (list) => h('dl', { class: 'facts' }, list.filter(([, v]) => v !== '' && v !== undefined && v !== null && v !== false).map(([k, v]) => [h('dt', null, k), h('dd', null, v)]));

export const jobLink = (j, ...text) => h('a', { href: '/job/' + j.ref }, text.length ? text : j.ref);
export const nodeLink = (n) => (session.guest ? n : h('a', { href: '/node/' + encodeURIComponent(n) }, n));
export const listed = (list, make) => list.flatMap((x, i) => [i ? ', ' : '', make(x)]);

// empty is what stands where there is nothing to show: why, and what to do next.
export const empty = (says, ...next) => h('div', { class: 'empty' }, h('p', null, says), next.length ? h('p', { class: 'soft s' }, ...next) : null);

// keep replaces what a box shows, but for when it says the same as before: a selection, and an open fold, stay.
export function keep(el, key, make) {
  if (el.drawn === key) return;
  el.drawn = key;
  el.replaceChildren(...[make()].flat(9).filter(Boolean));
}

// A browser keeps six connections to one host for all of its tabs together: one that nobody sees lets its streams go after a while.
const unseen = 3000;

// whileSeen opens what is to be open while somebody sees the tab, and closes it when nobody does. It returns what ends that.
export function whileSeen(open, close) {
  let is = false, later = 0;
  const look = () => {
    clearTimeout(later);
    if (!document.hidden && !is) { is = true; open(); }
    if (document.hidden && is) later = setTimeout(() => { is = false; close(); }, unseen);
  };
  document.addEventListener('visibilitychange', look);
  look();
  return () => { clearTimeout(later); document.removeEventListener('visibilitychange', look); if (is) close(); };
}
