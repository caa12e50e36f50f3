// Job: what it is, why it waits, its story, its attempts, and what its ranks write.
import { h, $, session, call, act, ended, stateClass, duration, bytes, when, table, facts } from './dom.js';
import { jobs, onChange } from './live.js';
import { measures } from './measures.js';

// why is what gqueue --why prints, word by word.
export const why = (w) => `job ${w.job_id} is ${w.state}` + (w.reason && w.reason !== 'None' ? ` (${w.reason})` : '') + '\n' +
  w.why.split('\n').filter((l, i, a) => l || i < a.length - 1).map((l) => `  ${l}\n`).join('');

export function job(view, ref) {
  const title = h('h1', null, 'Job ' + ref), body = h('div', null, h('p', { class: 'soft' }, 'loading'));
  view.append(title, body);
  let stopLog = () => {}, used = () => {}, id = 0, parts = null, busy = false, again = false, over = false;

  async function load() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const [detail, events] = await Promise.all([call('/v1/jobs/' + ref), call('/v1/events?job=' + ref)]);
      const w = detail.job.state === 'PENDING' ? await call('/v1/jobs/' + ref + '/why') : null;
      if (!over) show(detail, events.events, w);
    } catch (e) {
      if (!over && !parts) body.replaceChildren(h('p', { class: 'bad' }, e.message));
    }
    busy = false;
    if (again && !over) { again = false; load(); }
  }

  function show(d, events, w) {
    const j = d.job;
    id = j.job_id;
    if (!parts) {
      parts = Object.fromEntries(['tools', 'why', 'logs', 'facts', 'attempts', 'measures', 'ranks', 'story'].map((k) => [k, h('section', { id: 'job-' + k })]));
      body.replaceChildren(...Object.values(parts));
      stopLog = logs(parts.logs, j);
      used = measures(parts.measures);
    }
    title.replaceChildren(`Job ${ref} `, h('span', { class: 'soft' }, j.name), ' ', h('span', { id: 'state', class: stateClass(j.state) }, j.state));
    document.title = `${ref} ${j.state} - gangd`;
    const mine = session.admin || session.uid === j.uid, one = { refs: [ref] };
    const button = (label, on, question, path) => on && mine && h('button', { type: 'button', onclick: () => act(question, path, one) }, label);
    const live = !ended(j.state);
    parts.tools.replaceChildren(h('div', { class: 'tools' },
      button('Cancel', live, `Cancel job ${ref}?`, '/v1/cancel'),
      button('Hold', j.state === 'PENDING' && !j.held, `Hold job ${ref}?`, '/v1/hold'),
      button('Release', Boolean(j.held), `Release job ${ref}?`, '/v1/release'),
      button('Requeue', j.state === 'RUNNING', `Stop job ${ref} and queue it again?`, '/v1/requeue'),
      mine ? null : h('span', { class: 'soft' }, `${j.user}'s: its output and what changes it are its owner's`)));
    parts.why.replaceChildren(...(w ? [h('h2', null, 'Why it waits'), h('pre', { id: 'why' }, why(w))] : j.verdict ? [h('p', { id: 'verdict' }, j.verdict)] : []));
    parts.facts.replaceChildren(h('h2', null, 'What was asked'), facts([
      ['user', j.user], ['account', j.account], ['partition', j.partition], ['ranks', String(j.size)],
      ['cards of a rank', j.gpus_per_rank ? String(j.gpus_per_rank) : ''], ['VRAM of a rank', j.vram_bytes ? bytes(j.vram_bytes) : ''],
      ['CPUs of a rank', String(j.cpus_per_rank)], ['memory of a rank', j.memory_bytes ? bytes(j.memory_bytes) : ''],
      ['time limit', j.time_limit_seconds ? duration(j.time_limit_seconds) : 'none'], ['constraint', j.constraint], ['dependency', j.dependency],
      ['priority', String(j.priority)], ['submitted', when(j.submit_time)], ['started', when(j.start_time)], ['ended', when(j.end_time)],
      ['nodes', j.nodes && j.nodes.length ? h('span', null, j.nodes.flatMap((n, i) => [i ? ', ' : '', h('a', { href: '/node/' + n }, n)])) : ''],
      ['status', j.status], ['directory', j.work_dir], ['command', j.command], ['comment', j.comment],
      ['checkpoint', j.checkpoint ? `${bytes(j.checkpoint.bytes)} of epoch ${j.checkpoint.epoch}, ${when(j.checkpoint.time)}` : ''],
    ]));
    parts.attempts.replaceChildren(...(d.attempts.length ? [h('h2', null, 'Attempts'), timeline(j, d.attempts),
      table(['attempt', 'started', 'ended', 'why it ended', 'nodes', 'exit codes', 'card time', 'most VRAM'], d.attempts.map((a) => [a.attempt, when(a.start_time), when(a.end_time),
        a.cause ? `${a.cause}${a.trigger_rank === undefined ? '' : ', rank ' + a.trigger_rank}${ends(a)}` : 'runs', a.nodes.join(' '),
        (a.exit_codes || []).join(' '), duration(a.gpu_seconds), a.vram_peak_bytes ? bytes(a.vram_peak_bytes) : 'unknown']), { label: 'Attempts' })] : []));
    used(d.attempts);
    const ranks = (j.ranks || []).slice(0, 512);
    parts.ranks.replaceChildren(...(j.epoch ? [h('h2', null, 'Ranks'), table(['rank', 'state', 'node', 'cards', 'last beat', 'says', 'exit'], ranks.map((r) => [r.rank, r.state,
      r.node ? h('a', { href: '/node/' + r.node }, r.node) : '', (r.cards || []).length || '', when(r.last_beat), r.status, r.exit_code ?? (r.signal ? 'signal ' + r.signal : '')]), { label: 'Ranks' }),
      j.size > ranks.length ? h('p', { class: 'soft' }, `and ${j.size - ranks.length} more`) : ''] : []));
    parts.story.replaceChildren(h('h2', null, 'Story'), table(['when', 'epoch', 'what', ''], events.slice(-200).map((e) => [when(e.time), e.epoch, e.type.replaceAll('_', ' '), tale(e)]), { label: 'Story' }));
  }

  load();
  const stop = onChange((ids, all) => { if (all || ids.has(id) || !id) load(); });
  // What ranks say of themselves is no event; it is looked at while somebody looks.
  const clock = setInterval(() => { const j = jobs.get(id); if (!document.hidden && j && !ended(j.state)) load(); }, 5000);
  return () => { over = true; stop(); clearInterval(clock); stopLog(); };
}

// ends is what ended an attempt in which something went wrong, and when each of its ranks ended.
function ends(a) {
  const by = a.started_by ? `; reported first: ${a.started_by.text}` : '';
  const list = (a.ends || []).slice().sort((x, y) => x.ms - y.ms);
  const some = list.slice(0, 16).map((e) => `rank ${e.rank} +${e.ms.toFixed(1)} ms${e.own ? '' : ' (stopped)'}`).join(', ');
  return (a.text ? `: ${a.text}${by}` : '') + (some ? `; ends: ${some}${list.length > 16 ? `, ${list.length - 16} more` : ''}` : '');
}

function tale(e) {
  const out = [e.text, e.cause && `cause ${e.cause}`, e.trigger !== undefined && `rank ${e.trigger}`, e.rank !== undefined && `rank ${e.rank}`, e.node, e.nodes && e.nodes.join(' '),
    e.signal, e.outcome, e.forced && 'by force', e.exit_code !== undefined && `exit ${e.exit_code}`, e.bytes && bytes(e.bytes), e.seconds && `${e.seconds.toFixed(1)} s`, e.state];
  return out.filter(Boolean).join(', ');
}

// timeline draws when it waited, ran and failed.
function timeline(j, attempts) {
  const ns = 'http://www.w3.org/2000/svg', t = (x) => new Date(x).getTime(), none = (x) => !x || x.startsWith('0001');
  const begin = t(j.submit_time), end = none(j.end_time) ? Date.now() : t(j.end_time), span = Math.max(1, end - begin);
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('class', 'bars');
  svg.setAttribute('viewBox', '0 0 1000 34');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', `from submission to ${none(j.end_time) ? 'now' : 'the end'}, ${duration(span / 1000)}: ${attempts.length} attempts`);
  const bar = (from, to, kind, text) => {
    const r = document.createElementNS(ns, 'rect'), tip = document.createElementNS(ns, 'title');
    tip.textContent = text;
    for (const [k, v] of [['x', (from - begin) / span * 1000], ['width', Math.max(1, (to - from) / span * 1000)], ['y', 6], ['height', 22], ['class', kind]]) r.setAttribute(k, v);
    r.append(tip);
    svg.append(r);
  };
  bar(begin, end, 'waiting', 'waited');
  for (const a of attempts) {
    const to = none(a.end_time) ? end : t(a.end_time);
    bar(t(a.start_time), to, a.cause && a.cause !== 'completed' ? 'failed' : 'ran', `attempt ${a.attempt}: ${duration((to - t(a.start_time)) / 1000)} ${a.cause || 'runs'}`);
  }
  return svg;
}

const keepLines = 4000;

// logs follows the output of some ranks or of all, each line with its rank.
function logs(box, j) {
  const mine = session.admin || session.uid === j.uid;
  box.append(h('h2', null, 'Output'));
  if (!mine) {
    box.append(h('p', { class: 'soft' }, `Only ${j.user} or an admin may read it.`));
    return () => {};
  }
  const names = j.size > 1 && j.launch !== 'batch' ? ['all ranks', ...Array.from({ length: Math.min(j.size, 64) }, (_, i) => 'rank ' + i)] : ['rank 0'];
  const pick = h('select', { id: 'ranks', 'aria-label': 'Of which ranks' }, names.map((n) => h('option', null, n)));
  const errors = h('input', { type: 'checkbox', id: 'stderr' }), follow = h('input', { type: 'checkbox', id: 'follow', checked: true });
  const note = h('span', { class: 'soft', id: 'log-note', role: 'status' });
  const out = h('pre', { id: 'log', tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': 'Output' });
  box.append(h('div', { class: 'tools' }, pick, h('label', null, errors, ' errors'), h('label', null, follow, ' follow'), note), out);
  let source = null, timer = 0, at = new Map(), decoders = new Map(), rest = new Map(), waiting = [], due = false;

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
      if (follow.checked) out.scrollTop = out.scrollHeight;
    });
  }

  function piece(p) {
    const key = p.rank + ':' + p.epoch;
    if (!decoders.has(key)) decoders.set(key, new TextDecoder());
    const raw = Uint8Array.from(atob(p.data || ''), (c) => c.charCodeAt(0));
    const text = (rest.get(p.rank) || '') + decoders.get(key).decode(raw, { stream: true });
    const lines = text.split('\n');
    rest.set(p.rank, lines.pop().slice(-10000));
    for (const l of lines) line(p.rank, l);
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
    s.addEventListener('end', () => { s.close(); note.textContent = 'no more will come'; });
    s.onerror = () => {
      if (s !== source) return;
      s.close();
      note.textContent = 'gangd does not answer; it goes on from here';
      timer = setTimeout(open, 1000 + Math.random() * 1000);
    };
  }

  function begin() {
    clearTimeout(timer);
    if (source) source.close();
    [at, decoders, rest, waiting] = [new Map(), new Map(), new Map(), []];
    out.replaceChildren();
    open();
  }
  pick.addEventListener('change', begin);
  errors.addEventListener('change', begin);
  begin();
  return () => { clearTimeout(timer); const s = source; source = null; if (s) s.close(); };
}
