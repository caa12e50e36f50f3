// What ranks write: of one or of all, each line with its rank, following.
import { h, whileSeen } from './dom.js';

const keepLines = 4000;

// output fills a box with what the ranks of a job wrote, and write. only is the rank that is shown first, undefined for all. chosen
// keeps what a person has chosen for the next box of the same job: it is made anew when the job ends.
export function output(box, j, may, only, chosen) {
  if (!may) {
    box.append(h('h2', null, 'Output'), h('p', { class: 'soft' }, `Only ${j.user} or an admin may read it.`));
    return () => {};
  }
  const names = j.size > 1 && j.launch !== 'batch' ? ['all ranks', ...Array.from({ length: Math.min(j.size, 64) }, (_, i) => 'rank ' + i)] : ['rank 0'];
  const first = names.includes(chosen.ranks) ? chosen.ranks : only !== undefined && names.includes('rank ' + only) ? 'rank ' + only : names[0];
  const pick = h('select', { id: 'ranks', 'aria-label': 'Of which ranks' }, names.map((n) => h('option', { selected: n === first }, n)));
  const errors = h('input', { type: 'checkbox', id: 'stderr', checked: chosen.errors }), follow = h('input', { type: 'checkbox', id: 'follow', checked: chosen.follow ?? true });
  const note = h('span', { class: 'soft s', id: 'log-note', role: 'status' });
  const out = h('pre', { id: 'log', class: 'log', tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': 'Output' });
  const nothing = h('p', { class: 'soft', id: 'log-none', hidden: true });
  box.append(h('div', { class: 'row titled' }, h('h2', null, 'Output'), h('span', { class: 'grow' }), note, h('div', { class: 'tools' }, pick, h('label', { class: 's' }, errors, ' errors'), h('label', { class: 's' }, follow, ' follow'))), nothing, out);
  let source = null, timer = 0, at = new Map(), decoders = new Map(), rest = new Map(), waiting = [], due = false;

  function bare(text) {
    nothing.textContent = text;
    nothing.hidden = Boolean(out.childElementCount) || !text;
    out.classList.toggle('none', !out.childElementCount);
    out.hidden = !out.childElementCount;
  }

  function line(rank, text) {
    waiting.push([rank, text]);
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      const many = pick.value === 'all ranks';
      out.append(...waiting.slice(-keepLines).map(([r, s]) => h('span', null, many ? h('span', { class: 'rank' }, `[${r}] `) : '', s + '\n')));
      waiting = [];
      while (out.childElementCount > keepLines) out.firstElementChild.remove();
      bare('');
      if (follow.checked) out.scrollTop = out.scrollHeight;
    });
  }

  function piece(p) {
    const key = p.rank + ':' + p.epoch;
    if (!decoders.has(key)) decoders.set(key, new TextDecoder());
    const raw = Uint8Array.from(atob(p.data || ''), (c) => c.charCodeAt(0));
    const text = (rest.get(p.rank) || '') + decoders.get(key).decode(raw, { stream: true });
    const all = text.split('\n');
    rest.set(p.rank, all.pop().slice(-10000));
    for (const l of all) line(p.rank, l);
    at.set(p.rank, `${p.rank}:${p.epoch}:${p.offset}`);
  }

  function open() {
    const ranks = pick.value === 'all ranks' ? '' : pick.value.slice(5);
    const q = new URLSearchParams({ job: String(j.job_id), tail: '65536' });
    if (ranks) q.set('ranks', ranks);
    if (errors.checked) q.set('stderr', '1');
    if (at.size) q.set('from', [...at.values()].join(','));
    const s = source = new EventSource('/v1/logs?' + q);
    s.onopen = () => { note.textContent = 'following'; };
    s.onmessage = (e) => piece(JSON.parse(e.data));
    s.addEventListener('over', (e) => {
      const p = JSON.parse(e.data);
      if (rest.get(p.rank)) { line(p.rank, rest.get(p.rank)); rest.delete(p.rank); }
      if (p.error) line(p.rank, '(' + p.error + ')');
    });
    s.addEventListener('end', () => { s.close(); over = true; note.textContent = 'no more will come'; if (!waiting.length) bare('It wrote nothing.'); });
    s.onerror = () => {
      if (s !== source) return;
      s.close();
      note.textContent = 'gangd does not answer; it goes on from here';
      timer = setTimeout(open, 1000 + Math.random() * 1000);
    };
  }

  function close() {
    clearTimeout(timer);
    const s = source;
    source = null;
    if (s) s.close();
  }

  let over = false; // no more will come
  function begin() {
    close();
    over = false;
    [at, decoders, rest, waiting] = [new Map(), new Map(), new Map(), []];
    out.replaceChildren();
    bare('Nothing yet.');
    if (!document.hidden) open();
  }
  pick.addEventListener('change', () => { chosen.ranks = pick.value; begin(); });
  errors.addEventListener('change', () => { chosen.errors = errors.checked; begin(); });
  follow.addEventListener('change', () => { chosen.follow = follow.checked; });
  begin();
  const seen = whileSeen(() => { if (!source && !over) open(); }, close);
  return () => { seen(); close(); };
}
