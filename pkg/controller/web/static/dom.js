// What the views have in common: elements, words and calls.

export function h(tag, props, ...kids) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === false || v === undefined || v === null) continue;
    if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
    else el.setAttribute(k, v === true ? '' : v);
  }
  el.append(...kids.flat(9).filter((k) => k !== null && k !== undefined && k !== false));
  return el;
}

export const $ = (id) => document.getElementById(id);

export const session = { user: '', admin: false, guest: false, csrf: '' };

// call asks gangd. What it refuses is thrown, with its own words.
export async function call(path, body) {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'Gang-CSRF': session.csrf } };
  let res;
  try {
    res = await fetch(path, init);
  } catch {
    throw new Error('gangd does not answer');
  }
  const text = await res.text();
  if (!res.ok) {
    let e = {};
    try { e = JSON.parse(text); } catch { /* not gangd's */ }
    const err = new Error((e.message || `${res.status} ${res.statusText}`) + (e.hint ? '; ' + e.hint : ''));
    err.code = e.code;
    throw err;
  }
  return text ? JSON.parse(text) : {};
}

let saying = 0;
export function say(text) {
  $('said').textContent = text;
  clearTimeout(saying);
  saying = setTimeout(() => { $('said').textContent = ''; }, 12000);
}

// ask resolves to the reason given ('' where none is asked for), or to null.
export function ask(question, reason) {
  const d = $('ask');
  $('asked').textContent = question;
  $('reason-label').hidden = !reason;
  $('reason').value = '';
  d.returnValue = 'no';
  d.showModal();
  return new Promise((done) => d.addEventListener('close', () => done(d.returnValue === 'yes' ? $('reason').value : null), { once: true }));
}

// act asks, calls, and says what became of it.
export async function act(question, path, body, reason) {
  const why = await ask(question, reason);
  if (why === null) return;
  try {
    const out = await call(path, reason ? { ...body, reason: why } : body);
    const bad = (out.results || []).filter((r) => r.error).map((r) => `${r.ref}: ${r.error.message}`);
    say(bad.length ? bad.join('; ') : 'done');
  } catch (e) {
    say(e.message);
  }
}

export const ended = (state) => !['PENDING', 'RUNNING', 'COMPLETING', 'SUSPENDED', 'CONFIGURING'].includes(state);

export function stateClass(state) {
  if (state === 'PENDING' || state === 'SUSPENDED' || state === 'CONFIGURING') return 'wait';
  if (state === 'RUNNING' || state === 'COMPLETING' || state === 'COMPLETED') return 'good';
  return 'bad';
}

export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const d = Math.floor(s / 86400), hms = [Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60, s % 60].map((n) => String(n).padStart(2, '0'));
  return (d ? d + '-' : '') + hms.join(':');
}

export function bytes(n) {
  if (!n) return '0';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return (n >= 100 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)) + ' ' + units[i];
}

export const when = (t) => (!t || t.startsWith('0001') ? '' : new Date(t).toLocaleString([], { dateStyle: 'short', timeStyle: 'medium' }));

export const hue = (job) => 'h' + (Number(job) * 7) % 12;

export function table(names, rows, props) {
  return h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': (props && props.label) || 'table' },
    h('table', null, h('thead', null, h('tr', null, names.map((n) => h('th', { scope: 'col' }, n)))),
      h('tbody', null, rows.map((r) => h('tr', null, r.map((c) => h('td', null, c === undefined || c === null ? '' : c)))))));
}

export function facts(list) {
  return h('table', { class: 'facts' }, h('tbody', null, list.filter(([, v]) => v !== '' && v !== undefined && v !== null)
    .map(([k, v]) => h('tr', null, h('th', { scope: 'row' }, k), h('td', null, v)))));
}
