// Queue: every job in memory, of which only the rows that are seen exist.
import { h, session, ended, stateClass, duration } from './dom.js';
import { jobs, state, onChange } from './live.js';

const rowHeight = 26, spare = 8;

const columns = [
  ['Job', (j) => j.job_id, (j) => h('a', { href: '/job/' + j.ref }, j.ref)],
  ['Name', (j) => j.name, (j) => j.name],
  ['User', (j) => j.user, (j) => j.user],
  ['Partition', (j) => j.partition, (j) => j.partition],
  ['State', (j) => j.state, (j) => h('span', { class: stateClass(j.state) }, j.state)],
  ['Time', (j) => (j.start_time ? (j.end_time || Date.now() / 1000) - j.start_time : 0), (j) => time(j)],
  ['Ranks', (j) => j.size, (j) => String(j.size)],
  ['Nodes or reason', (j) => j.nodes || j.reason, (j) => j.nodes || (j.state === 'PENDING' ? `(${j.reason})` : '')],
];

const time = (j) => (j.start_time ? duration((j.end_time || Date.now() / 1000) - j.start_time) : '');

// What is filtered and sorted by stays while one looks at a job.
const look = { text: '', state: 'waiting and running', mine: false, by: 0, down: true, top: 0, at: -1 };

export function queue(view) {
  const head = h('div', { class: 'row head', role: 'row', 'aria-rowindex': '1' }, columns.map(([name], i) =>
    h('span', { class: 'c' + i, role: 'columnheader', 'aria-sort': 'none' }, h('button', { type: 'button', onclick: () => sortBy(i) }, name))));
  const space = h('div', { role: 'presentation' });
  const body = h('div', { class: 'scroll', id: 'rows', role: 'rowgroup', tabindex: '0', 'aria-label': 'Jobs' });
  const count = h('span', { id: 'count', class: 'soft' });
  const text = h('input', { id: 'filter', type: 'search', 'aria-label': 'Filter by id, name, user, partition or node', placeholder: 'filter', value: look.text });
  const states = h('select', { id: 'states', 'aria-label': 'States' }, ['waiting and running', 'waiting', 'running', 'ended', 'all'].map((s) => h('option', { selected: s === look.state }, s)));
  const mine = h('input', { id: 'mine', type: 'checkbox' });
  mine.checked = look.mine;
  const grid = h('div', { class: 'queue', role: 'table', 'aria-label': 'Queue' }, h('div', { role: 'rowgroup' }, head), body);
  view.append(h('h1', null, 'Queue'), h('div', { class: 'tools' }, text, states,
    session.guest ? null : h('label', null, mine, ' mine'), count), grid);
  body.append(space);

  let list = [];
  const shown = new Map(); // row elements by place in the list

  const wanted = (j) => {
    if (look.mine && j.user !== session.user) return false;
    switch (look.state) {
      case 'waiting': if (j.state !== 'PENDING') return false; break;
      case 'running': if (j.state === 'PENDING' || ended(j.state)) return false; break;
      case 'ended': if (!ended(j.state)) return false; break;
      case 'waiting and running': if (ended(j.state)) return false; break;
      default:
    }
    if (!look.text) return true;
    const t = look.text.toLowerCase();
    return j.ref.startsWith(t) || [j.name, j.user, j.partition, j.nodes].some((s) => s.toLowerCase().includes(t));
  };

  function build() {
    const key = columns[look.by][1], sign = look.down ? -1 : 1;
    list = [];
    for (const j of jobs.values()) if (wanted(j)) list.push(j);
    list.sort((a, b) => {
      const x = key(a), y = key(b);
      return (x < y ? -1 : x > y ? 1 : a.job_id - b.job_id) * sign;
    });
    space.style.height = list.length * rowHeight + 'px';
    grid.setAttribute('aria-rowcount', String(list.length + 1));
    count.textContent = state.told ? `${list.length} of ${jobs.size} jobs` : 'loading';
    [...head.children].forEach((c, i) => c.setAttribute('aria-sort', i === look.by ? (look.down ? 'descending' : 'ascending') : 'none'));
    for (const el of shown.values()) el.remove();
    shown.clear();
    draw();
  }

  function draw() {
    look.top = body.scrollTop;
    const first = Math.max(0, Math.floor(body.scrollTop / rowHeight) - spare);
    const last = Math.min(list.length, Math.ceil((body.scrollTop + body.clientHeight) / rowHeight) + spare);
    for (const [i, el] of shown) if (i < first || i >= last) { el.remove(); shown.delete(i); }
    for (let i = first; i < last; i++) {
      if (shown.has(i)) continue;
      const j = list[i];
      const el = h('div', { class: 'row' + (i === look.at ? ' on' : ''), role: 'row', 'aria-rowindex': String(i + 2), 'data-job': j.job_id },
        columns.map(([, , cell], k) => h('span', { class: 'c' + k, role: 'cell' }, cell(j))));
      el.style.top = i * rowHeight + 'px';
      shown.set(i, el);
      body.append(el);
    }
  }

  function sortBy(i) {
    look.down = look.by === i ? !look.down : false;
    look.by = i;
    build();
  }

  // Where order and selection are as before, only rows that are seen are drawn again.
  function touch(ids, whole) {
    if (whole) { build(); return; }
    let rebuild = false;
    const at = new Map();
    for (const [i, el] of shown) at.set(Number(el.dataset.job), i);
    const known = new Map(list.map((j, i) => [j.job_id, i]));
    for (const id of ids) {
      const j = jobs.get(id), i = known.get(id);
      if ((i === undefined) !== (!j || !wanted(j))) { rebuild = true; break; }
      if (i === undefined) continue;
      const key = columns[look.by][1];
      if (key(list[i]) !== key(j)) { rebuild = true; break; }
      list[i] = j;
      if (at.has(id)) { shown.get(at.get(id)).remove(); shown.delete(at.get(id)); }
    }
    if (rebuild) build(); else draw();
  }

  function move(by) {
    look.at = Math.max(0, Math.min(list.length - 1, look.at + by));
    const top = look.at * rowHeight;
    if (top < body.scrollTop) body.scrollTop = top;
    if (top + rowHeight > body.scrollTop + body.clientHeight) body.scrollTop = top + rowHeight - body.clientHeight;
    for (const [i, el] of shown) el.classList.toggle('on', i === look.at);
    draw();
  }

  let drawing = false;
  body.addEventListener('scroll', () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; draw(); });
  }, { passive: true });
  text.addEventListener('input', () => { look.text = text.value.trim(); look.at = -1; build(); });
  states.addEventListener('change', () => { look.state = states.value; look.at = -1; build(); });
  mine.addEventListener('change', () => { look.mine = mine.checked; build(); });
  const keys = (e) => {
    if (e.target.matches('input, select') || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === 'j' || e.key === 'ArrowDown') { e.preventDefault(); move(1); }
    else if (e.key === 'k' || e.key === 'ArrowUp') { e.preventDefault(); move(-1); }
    else if (e.key === 'Enter' && list[look.at] && !e.target.matches('a, button')) document.dispatchEvent(new CustomEvent('go', { detail: '/job/' + list[look.at].ref }));
  };
  document.addEventListener('keydown', keys);
  const clock = setInterval(() => {
    for (const [i, el] of shown) if (list[i].start_time && !list[i].end_time) el.children[5].textContent = time(list[i]);
  }, 1000);
  const stop = onChange(touch);
  build();
  body.scrollTop = look.top;
  return () => { stop(); clearInterval(clock); document.removeEventListener('keydown', keys); };
}
