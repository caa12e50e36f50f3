// Queue: what runs, then what waits in its order. An array is one row. Of ten thousand rows only those that are seen exist.
import { h, $, session, mark, meter, jobLink, empty } from './dom.js';
import { jobs, nodes, order, state, onChange } from './live.js';
import { clock, count, ended, figure, markOf, ranges, reasonWords, rough, soon, stateWords, toneOf } from './words.js';

const spare = 8;
const seconds = () => Date.now() / 1000;
const kind = (j) => (ended(j.state) ? 'ended' : j.state !== 'PENDING' ? 'running' : j.held ? 'held' : 'waiting');
const states = [['', 'Running and waiting'], ['running', 'Running'], ['idle', 'Holding idle cards'], ['waiting', 'Waiting'], ['held', 'Held'], ['ended', 'Ended']];

// columns are their class, their name, what is sorted by, and whether they are of figures.
const columns = [
  ['plc', '#', (j) => order.place.get(j.job_id) ?? 1e9, true], ['ref', 'Job', (j) => j.job_id], ['nam', 'Name', (j) => j.name], ['usr', 'User', (j) => j.user], ['acct', 'Account', (j) => j.account || ''], ['prt', 'Partition', (j) => j.partition],
  ['crd', 'Cards', (j) => j.cards || 0, true], ['lim', 'Limit, left', (j) => j.time_limit_seconds || 1e12], ['age', 'Ran, waited', (j) => seconds() - (j.start_time || j.submit_time), true],
  ['beg', 'Starts about', (j) => order.starts.get(j.job_id)?.at || 1e12, true], ['sta', 'Where, or why not', (j) => (j.state === 'PENDING' ? j.reason : j.nodes)],
];

// What is filtered and sorted by, and which arrays are unfolded, stays while one looks at a job.
const look = { text: '', state: '', part: '', user: '', mine: false, by: -1, down: false, top: 0, at: -1, open: new Set() };
const fresh = { text: '', state: '', part: '', user: '', mine: false };

// What of the filters a job, of this kind, fits: its owner and words, its state, its partition.
function fits(j) {
  if (look.user && j.user !== look.user || look.mine && j.user !== session.user) return false;
  if (!look.text) return true;
  j.words ??= [j.name, j.user, j.account || '', j.partition, j.nodes].join('\n').toLowerCase();
  const t = look.text.toLowerCase();
  return j.ref.startsWith(t) || j.words.includes(t);
}
const inState = (j, k) => (look.state === 'idle' ? k === 'running' && idleCards(j) > 0 : look.state ? k === look.state : k !== 'ended');
const inPart = (j) => !look.part || partsOf(j).includes(look.part);
const partsOf = (j) => (j.parts ??= j.partition.split(','));

// showIdle shows the jobs that hold idle cards, those with the most first.
export function showIdle() { Object.assign(look, fresh, { state: 'idle', by: -1, at: -1, top: 0 }); }

// idleCards counts the cards of a running job that do nothing now, of those of which it is known.
function idleCards(j) {
  let idle = 0;
  for (const name of j.nodes ? j.nodes.split(',') : []) for (const c of nodes.get(name)?.cards || []) if (c.jobs.includes(j.job_id) && c.utilization >= 0 && c.utilization < 5) idle++;
  return idle;
}

// counts of an array's elements that are known, by what they do.
function counts(list) {
  const n = { done: 0, runs: 0, bad: 0, waits: 0, held: 0, total: list.length };
  for (const j of list) { const m = markOf(j); if (m === 'over') n.done++; else if (m === 'trouble') n.bad++; else n[m]++; }
  return n;
}
export const arrayParts = (n) => [[100 * n.done / n.total, 'over'], [100 * n.runs / n.total], [100 * n.bad / n.total, 'bad'], [100 * (n.waits + n.held) / n.total, 'none']];
export const arrayWords = (n) => [n.runs && `${figure(n.runs)} run`, n.bad && h('span', { class: 'bad' }, `${figure(n.bad)} failed`), n.done && `${figure(n.done)} done`, n.waits && `${figure(n.waits)} wait`, n.held && `${figure(n.held)} held`].filter(Boolean).flatMap((x, i) => (i ? [', ', x] : [x]));
export { counts };

// refOf writes the elements of an array as one reference: 4_[12-59%6].
export function refOf(id, list) {
  const limit = list.find((j) => j.array_limit)?.array_limit, text = ranges(list.map((j) => Number(j.array_index)));
  return `${id}_[${text.length > 16 ? text.slice(0, text.indexOf(',') > 0 ? text.indexOf(',') : 16) + ',…' : text}${limit ? '%' + limit : ''}]`;
}

export function queue(view) {
  const narrow = matchMedia('(max-width: 860px)'), heightNow = () => (narrow.matches ? 48 : 28);
  const th = h('div', { class: 'tr th', role: 'row', 'aria-rowindex': '1' }, columns.map(([cls, name, , right], i) =>
    h('span', { class: cls + (right ? ' r' : ''), role: 'columnheader', 'aria-sort': 'none' }, h('button', { type: 'button', title: 'Sort by this', onclick: () => sortBy(i) }, name))));
  const space = h('div', { role: 'presentation' }), body = h('div', { id: 'rows', role: 'rowgroup', tabindex: '0', 'aria-label': 'Jobs' }, space);
  const says = h('span', { id: 'count', class: 'soft' }), chips = h('div', { class: 'chips', id: 'states' }), none = h('div', { id: 'none', hidden: true });
  const text = h('input', { id: 'filter', type: 'search', 'aria-label': 'Filter by id, name, user, account, partition or node', placeholder: 'filter: id, name, user, node', value: look.text });
  const users = h('select', { id: 'users', 'aria-label': 'Of whom' });
  const grid = h('div', { class: 'q box', role: 'table', 'aria-label': 'Queue' }, h('div', { role: 'rowgroup' }, th), body, none);
  view.append(h('div', { class: 'row' }, h('h1', null, 'Queue'), says), h('div', { class: 'tools' }, text, chips, users), grid);

  let list = [], waiting = null, built = 0, tall = heightNow(), room = 0; // room is the height of the box of rows
  const height = () => tall;
  const stood = new Map(); // what put each job where it is
  const shown = new Map(); // row elements by place in the list

  // items are the rows: a heading, a job, an array, or some elements of one that is unfolded.
  function items(all, title, how) {
    if (!all.length) return [];
    const out = [], of = new Map();
    for (const j of all) {
      if (!j.array) { out.push({ key: `j${j.job_id}`, j, first: j }); continue; }
      let a = of.get(j.array);
      if (!a) { a = { key: `a${j.array}`, id: j.array, list: [], first: j }; of.set(j.array, a); out.push(a); }
      a.list.push(j);
    }
    if (look.by >= 0) {
      const [, , key] = columns[look.by], sign = look.down ? -1 : 1;
      out.sort((a, b) => { const x = key(a.first), y = key(b.first); return (x < y ? -1 : x > y ? 1 : a.first.job_id - b.first.job_id) * sign; });
    }
    const cards = all.reduce((s, j) => s + (j.cards || 0), 0);
    const held = all.reduce((n, j) => n + (kind(j) === 'held'), 0), text = held && held < all.length ? `${title} ${figure(all.length - held)}, held ${figure(held)}` : `${title} ${figure(all.length)}`;
    return [{ key: 'g' + title, title: text, says: `${count(cards, 'card')}, ${look.by >= 0 ? 'sorted by ' + columns[look.by][1].toLowerCase() : how}` },
      ...out.flatMap((x) => (x.list && look.open.has(x.id) ? [x, ...unfold(x)] : [x]))];
  }

  // unfold gives the elements: those that failed or run one by one, those that wait or are done together.
  function unfold(a) {
    const out = [], together = new Map();
    for (const j of a.list) {
      const m = markOf(j);
      if (m === 'trouble' || m === 'runs') { out.push({ key: `s${j.job_id}`, sub: [j], first: j, m }); continue; }
      const why = m === 'waits' ? j.reason : m;
      if (!together.has(why)) together.set(why, { key: `s${a.id}${why}`, sub: [], first: j, m });
      together.get(why).sub.push(j);
    }
    const rank = { trouble: 0, runs: 1, waits: 2, held: 3, over: 4 };
    return [...out, ...together.values()].sort((x, y) => rank[x.m] - rank[y.m]);
  }

  function build() {
    built = performance.now();
    const groups = { running: [], ended: [] }, per = { '': 0, running: 0, idle: 0, waiting: 0, held: 0, ended: 0 }, parts = new Map(), people = new Map(), runs = new Set();
    stood.clear();
    const matching = [];
    for (const j of jobs.values()) {
      const k = kind(j);
      stood.set(j.job_id, j);
      if (k !== 'ended') people.set(j.user, (people.get(j.user) || 0) + 1);
      if (!fits(j)) continue;
      const state = inState(j, k), part = inPart(j);
      if (part) { per[k]++; if (k !== 'ended') per['']++; if (k === 'running' && idleCards(j)) per.idle++; }
      if (state) for (const p of partsOf(j)) parts.set(p, (parts.get(p) || 0) + 1);
      if (!state || !part) continue;
      matching.push([j, k]);
      if (k === 'running' && j.array) runs.add(j.array);
    }
    // An array stands where its first element does.
    const firsts = new Map(), placed = [];
    for (const [j, k] of matching) {
      if (k === 'ended') groups.ended.push(j);
      else if (k === 'running' || runs.has(j.array)) groups.running.push(j);
      else {
        const at = order.place.get(j.job_id) ?? 1e9;
        placed.push([at, j]);
        if (j.array) firsts.set(j.array, Math.min(firsts.get(j.array) ?? 1e9, at));
      }
    }
    for (const p of placed) if (p[1].array) p[0] = firsts.get(p[1].array);
    placed.sort(([a, i], [b, j]) => a - b || i.job_id - j.job_id);
    const whole = placed.map(([, j]) => j);
    const idle = look.state === 'idle' ? new Map(groups.running.map((j) => [j, idleCards(j)])) : null;
    groups.running.sort((a, b) => (idle ? idle.get(b) - idle.get(a) : 0) || (a.start_time || 1e12) - (b.start_time || 1e12) || a.job_id - b.job_id);
    groups.ended.sort((a, b) => b.end_time - a.end_time);
    list = [...items(groups.running, 'Running', idle ? 'most idle cards first' : 'longest first'), ...items(whole, look.state === 'held' ? 'Held' : 'Waiting', order.told ? 'in the order of the queue' : 'the order of the queue comes in a moment'), ...items(groups.ended, 'Ended', 'newest first, of the last minutes')];
    const rows = list.filter((x) => !x.title).length, total = jobs.size;
    space.style.height = list.length * height() + 'px';
    grid.setAttribute('aria-rowcount', String(list.length + 1));
    const n = groups.running.length + whole.length + groups.ended.length;
    says.textContent = state.told ? `${figure(n)} of ${count(total, 'job')}${rows !== n ? ` in ${count(rows, 'row')}` : ''}` : 'loading';
    [...th.children].forEach((c, i) => {
      c.setAttribute('aria-sort', i === look.by ? (look.down ? 'descending' : 'ascending') : 'none');
      const arrow = i === look.by ? (look.down ? '↓' : '↑') : '', name = columns[i][1];
      c.firstChild.textContent = !arrow ? name : columns[i][3] ? `${arrow} ${name}` : `${name} ${arrow}`;
    });
    filters(per, parts, people);
    nothing(rows, total);
    const before = new Map([...shown.values()].map((el) => [el.key, el])), focused = document.activeElement?.closest('.tr')?.key, at = [...before.get(focused)?.querySelectorAll('a, button') || []].indexOf(document.activeElement);
    shown.clear();
    fit();
    draw(before);
    if (at >= 0 && !body.contains(document.activeElement)) [...shown.values()].find((el) => el.key === focused)?.querySelectorAll('a, button')[at]?.focus();
  }

  function filters(per, parts, people) {
    const key = JSON.stringify([state.told, per, [...parts], [...people.keys()].sort(), look.state, look.part, look.user, look.mine]);
    if (chips.drawn === key) return;
    chips.drawn = key;
    const focused = document.activeElement?.dataset?.chip;
    const chip = (id, label, on, set) => h('button', { type: 'button', 'data-chip': id, 'aria-pressed': String(on), onclick: () => { set(); anew(); } }, label);
    const names = [...parts.keys()].sort();
    chips.replaceChildren(...states.filter(([k]) => k !== 'idle' || per.idle || look.state === 'idle').map(([k, label]) => chip('state ' + k, state.told ? `${label} ${figure(per[k])}` : label, look.state === k, () => { look.state = k; })),
      ...(names.length > 1 && names.length < 9 || look.part ? names.map((p) => chip('part ' + p, p, look.part === p, () => { look.part = look.part === p ? '' : p; })) : []),
      session.guest ? '' : chip('mine', 'Mine', look.mine, () => { look.mine = !look.mine; }));
    if (focused) [...chips.children].find((c) => c.dataset.chip === focused)?.focus();
    users.replaceChildren(h('option', { value: '' }, 'everybody'), ...[...people.keys()].sort().slice(0, 500).map((u) => h('option', { value: u, selected: u === look.user }, u)));
    users.hidden = people.size < 2 && !look.user;
  }

  function nothing(rows, total) {
    none.hidden = rows > 0 || !state.told;
    body.hidden = rows === 0 && state.told;
    if (none.hidden) return;
    const narrowed = look.text || look.part || look.user || look.mine, among = look.state ? ` among those that ${{ running: 'run', idle: 'hold idle cards', waiting: 'wait', held: 'are held', ended: 'have ended' }[look.state]}` : '';
    none.replaceChildren(narrowed || look.state && total ? empty(narrowed ? `No job matches ${look.text ? `“${look.text}”` : 'these filters'}${among}.` : { running: 'Nothing runs.', idle: 'No card that is held is idle.', waiting: 'Nothing waits.', held: 'Nothing is held.', ended: 'Nothing has ended in the last minutes.' }[look.state],
      'Jobs that ended earlier are in ', h('code', null, 'gacct'), session.guest ? '' : [', and yours on ', h('a', { href: '/me' }, 'Me')], '.', ' ', h('button', { type: 'button', id: 'clear', onclick: () => { Object.assign(look, fresh); text.value = ''; build(); text.focus(); } }, 'Clear filters'))
      : empty('Nothing runs and nothing waits.', h('code', null, 'gsubmit job.sh'), ' submits a job.'));
  }

  // anew shows another choice of jobs from its begin on.
  function anew() {
    Object.assign(look, { at: -1, top: 0 });
    body.scrollTop = 0;
    build();
  }

  // fit gives the rows the room that there is, and no more than they need.
  function fit() {
    if (body.hidden) return;
    room = Math.min(Math.max(240, innerHeight - body.getBoundingClientRect().top - scrollY - 32), list.length * height());
    body.style.height = room + 'px';
    look.top = Math.max(0, Math.min(look.top, list.length * height() - room));
  }

  const cell = (cls, ...kids) => h('span', { class: cls, role: 'cell' }, ...kids);
  const link = (j, ...t) => (session.guest ? t : jobLink(j, ...t));

  function row(x, i) {
    const props = { role: 'row' };
    let el;
    if (x.title) el = h('div', { ...props, class: 'tr gr' }, h('div', { role: 'cell' }, h('h2', null, x.title), h('span', { class: 'soft s' }, ' ' + x.says)));
    else if (x.sub) el = sub(x, props);
    else el = one(x, props);
    el.key = x.key;
    el.of = basis(x);
    return put(el, i);
  }

  function put(el, i) {
    el.style.top = i * height() + 'px';
    el.setAttribute('aria-rowindex', String(i + 2));
    el.classList.toggle('on', i === look.at);
    return el;
  }

  // A row that says what it said is the same element at another place. What an array says is more than its first element.
  function basis(x) {
    if (x.title) return [x.title, x.says];
    const s = order.starts.get(x.first.job_id);
    return x.j ? [x.j, order.place.get(x.j.job_id), s?.at, s?.sure, order.whys.get(x.j.job_id)] : [{}];
  }

  function sub(x, props) {
    const j = x.first, ids = ranges(x.sub.map((e) => Number(e.array_index)));
    return h('div', { ...props, class: 'tr sub', 'data-job': x.sub.length === 1 ? j.job_id : null }, cell('plc r', mark(x.m)), cell('ref', x.sub.length === 1 ? link(j, j.ref) : `${j.array}_[${ids}]`), cell('nam soft', x.sub.length > 1 ? count(x.sub.length, 'element') : ''),
      cell('sta', h('span', { class: x.m === 'trouble' ? 'bad' : 'soft' }, `${stateWords(j)}${x.m === 'runs' ? ` for ${rough(seconds() - j.start_time)} on ${j.nodes}` : x.m === 'trouble' ? `, ${clock(j.end_time)}` : x.m === 'waits' ? ': ' + reasonWords(j.reason) : ''}`)));
  }

  function one(x, props) {
    const array = x.list, j = x.first, all = array || [j], run = all.find((e) => kind(e) === 'running'), lead = run || j, over = !run && ended(j.state);
    const n = array && counts(all), cards = all.reduce((s, e) => s + (!run || kind(e) === 'running' ? e.cards || 0 : 0), 0);
    const limit = lead.time_limit_seconds, gone = run && limit ? (seconds() - run.start_time) / limit * 100 : 0, s = order.starts.get(j.job_id);
    const ref = array ? refOf(x.id, array) : j.ref, target = { ref: array ? x.id : j.ref }, idle = run && !array ? idleCards(j) : 0;
    const fold = array && h('button', { class: 'fold', type: 'button', tabindex: '-1', 'aria-expanded': String(look.open.has(x.id)), 'aria-label': `Elements of ${x.id}`, onclick: (e) => { e.stopPropagation(); toggle(x); } }, look.open.has(x.id) ? '▾' : '▸');
    return h('div', { ...props, class: 'tr one' + (run ? ' go' : ''), 'data-job': array ? null : j.job_id, 'data-array': array ? x.id : null },
      cell('plc r soft', order.place.get(j.job_id) && !run ? figure(order.place.get(j.job_id)) : mark(markOf(lead))),
      cell('ref', link(target, ref)), cell('nam', fold, link(target, j.name), h('small', { class: 'only-narrow soft' }, ` ${array ? x.id : j.ref} ${j.user}`)),
      cell('usr', j.user), cell('acct soft', j.account || ''), h('span', { class: 'prt soft', role: 'cell', title: j.partition }, j.partition), h('span', { class: 'crd r', role: 'cell', 'data-u': cards === 1 ? ' card' : ' cards' }, figure(cards)),
      cell('lim', h('span', { class: gone > 90 ? 'wait' : null }, over ? '' : limit ? run ? `${rough(Math.max(0, limit - (seconds() - run.start_time)))} of ${rough(limit)}` : rough(limit) : 'no limit'), array ? meter(arrayParts(n)) : run && limit ? meter([[gone, gone > 90 ? 'wait' : '']], `${Math.round(gone)} % of its time is over`) : ''),
      cell('age r', over ? j.start_time ? rough(j.end_time - j.start_time) : '' : rough(seconds() - (run ? run.start_time : j.submit_time))),
      cell('beg r', run || over ? '' : s?.at ? s.at - seconds() < 60 ? 'now' : soon(s.at) : '–'),
      h('span', { class: 'sta', role: 'cell', title: over ? '' : run ? lead.nodes : order.whys.get(j.job_id) || reasonWords(j.reason) }, status(array, n, lead, idle, over)));
  }

  function status(array, n, j, idle, over) {
    if (array) return arrayWords(n);
    if (over) return h('span', { class: toneOf(j) }, `${stateWords(j)} ${clock(j.end_time)}`);
    if (j.state === 'PENDING') return order.whys.get(j.job_id) || [reasonWords(j.reason), j.reason && j.reason !== 'None' ? h('span', { class: 'soft' }, ` (${j.reason})`) : ''];
    return [j.state === 'RUNNING' ? '' : stateWords(j) + ', ', idle && j.cards > 1 ? h('span', { class: 'wait' }, `${idle} of ${count(j.cards, 'card')} idle; `) : idle ? h('span', { class: 'wait' }, 'idle; ') : '', h('span', { class: 'soft' }, j.nodes.replaceAll(',', ', '))];
  }

  function draw(before) {
    const H = height(), first = Math.max(0, Math.floor(look.top / H) - spare), last = Math.min(list.length, Math.ceil((look.top + room) / H) + spare);
    for (const [i, el] of shown) if (i < first || i >= last) { el.remove(); shown.delete(i); }
    const drawn = [];
    for (let i = first; i < last; i++) {
      let el = shown.get(i);
      if (!el) {
        const x = list[i], was = before?.get(x.key), same = was && basis(x).every((v, k) => v === was.of[k]);
        if (same) before.delete(x.key);
        shown.set(i, el = same ? put(was, i) : row(x, i));
      }
      drawn.push(el);
    }
    for (const el of before?.values() || []) el.remove();
    // Who goes through them by keyboard goes in their order.
    let next = null;
    for (const el of drawn.reverse()) {
      if (el.parentNode !== body || el.nextSibling !== next) body.insertBefore(el, next);
      next = el;
    }
  }

  function sortBy(i) {
    if (look.by !== i) [look.by, look.down] = [i, false];
    else if (!look.down) look.down = true;
    else look.by = -1; // the order of the queue again
    build();
  }

  function toggle(x) {
    if (look.open.has(x.id)) look.open.delete(x.id); else look.open.add(x.id);
    build();
  }

  // What a row says may be another while the list is as it was: then only rows that are seen are drawn again.
  const standing = ['state', 'held', 'start_time', 'array', 'user', 'partition', 'cards'];
  function again(ids) {
    for (const id of ids) {
      const was = stood.get(id), is = jobs.get(id);
      if (!was !== !is || was && standing.some((k) => was[k] !== is[k])) return false;
    }
    for (const [i, el] of shown) {
      const x = list[i], hit = x.list?.some((j) => ids.has(j.job_id)) || x.sub?.some((j) => ids.has(j.job_id)) || x.j && ids.has(x.j.job_id);
      if (!hit) continue;
      for (const l of [x.list, x.sub]) if (l) l.forEach((j, k) => { l[k] = jobs.get(j.job_id) || j; });
      x.first = jobs.get(x.first.job_id) || x.first;
      const fresh = row(x, i);
      el.replaceWith(fresh);
      shown.set(i, fresh);
    }
    return look.by < 0;
  }

  // Many changes a second are one new list each quarter of it.
  function touch(told) {
    if (told && !told.all && !told.order && (!told.jobs.size || again(told.jobs))) return;
    const wait = Math.max(0, 250 - (performance.now() - built));
    if (!wait) { build(); return; }
    waiting ??= setTimeout(() => { waiting = null; build(); }, wait);
  }

  function move(by) {
    let to = look.at + by;
    while (list[to]?.title) to += by;
    if (!list[to]) return;
    look.at = to;
    const H = height(), top = to * H;
    if (top < body.scrollTop + H) body.scrollTop = Math.max(0, top - H);
    if (top + H > body.scrollTop + room) body.scrollTop = top + H - room;
    look.top = body.scrollTop;
    for (const [i, el] of shown) el.classList.toggle('on', i === to);
    draw();
  }

  const go = (x) => { if (x && !x.title && !session.guest) document.dispatchEvent(new CustomEvent('go', { detail: '/job/' + (x.list ? x.id : x.sub?.length > 1 ? x.first.array : x.first.ref) })); };
  let drawing = false;
  body.addEventListener('scroll', () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; look.top = body.scrollTop; draw(); });
  }, { passive: true });
  let typed = 0;
  text.addEventListener('input', () => {
    look.text = text.value.trim();
    typed ||= requestAnimationFrame(() => { typed = 0; anew(); });
  });
  users.addEventListener('change', () => { look.user = users.value; anew(); });
  const keys = (e) => {
    if (e.target.matches('input, select') || e.ctrlKey || e.metaKey || e.altKey || $('ask').open || $('keys').open) return;
    const x = list[look.at];
    if (e.key === 'j' || e.key === 'ArrowDown') { e.preventDefault(); move(1); } else if (e.key === 'k' || e.key === 'ArrowUp') { e.preventDefault(); move(-1); } else if ((e.key === 'o' || e.key === 'ArrowRight' || e.key === 'ArrowLeft') && x?.list) toggle(x);
    else if (e.key === 'Enter' && !e.target.matches('a, button')) go(x);
  };
  const sized = () => { tall = heightNow(); build(); };
  document.addEventListener('keydown', keys);
  addEventListener('resize', sized);
  const clockwork = setInterval(() => { if (!document.hidden) for (const [i, el] of shown) { const fresh = row(list[i], i); if (fresh.textContent !== el.textContent && !el.contains(document.activeElement)) { el.replaceWith(fresh); shown.set(i, fresh); } } }, 5000);
  const stop = onChange(touch);
  build();
  body.scrollTop = look.top;
  return () => { stop(); clearInterval(clockwork); clearTimeout(waiting); cancelAnimationFrame(typed); document.removeEventListener('keydown', keys); removeEventListener('resize', sized); };
}
