// Job: a verdict or how far it is, then what a person came for. Waiting: why, its place and when. Running: its output and what it
// uses. Failed: who, why, its last lines, what to do.
import { h, session, call, plain, act, head2, facts, table, mark, meter, keep, nodeLink, jobLink, listed } from './dom.js';
import { jobs, order, onChange } from './live.js';
import { axis } from './charts.js';
import { array } from './array.js';
import { measures, sum } from './measures.js';
import { output } from './output.js';
import { ago, bytes, causeWords, clock, count, ended, hours, isOwnFault, iso, markOf, rough, seconds, soon, span, stateWords, told, toneOf } from './words.js';

// why is what gqueue --why prints, word by word.
export const why = (w) => `job ${w.job_id} is ${w.state}` + (w.reason && w.reason !== 'None' ? ` (${w.reason})` : '') + '\n' +
  told(w.why).split('\n').filter((l, i, a) => l || i < a.length - 1).map((l) => `  ${l}\n`).join('');

// linked is a text with a link to each job that it names.
function linked(text) {
  const out = [];
  let at = 0;
  for (const m of text.matchAll(/\bjobs? (\d+(?:_\d+)?(?:(?:, | and )\d+(?:_\d+)?)*)/g)) {
    for (const n of m[1].matchAll(/\d+(?:_\d+)?/g)) {
      const from = m.index + m[0].length - m[1].length + n.index;
      out.push(text.slice(at, from), jobLink({ ref: n[0] }));
      at = from + n[0].length;
    }
  }
  return [...out, text.slice(at)];
}

// whyTold is the same for reading: its first line on top, what is said of nodes as a table, and what would start at once apart.
function whyTold(w) {
  const all = told(w.why).split('\n').filter(Boolean), first = (all.shift() || '').replace(/^\d+\w\w of \d+ in the queue; /, '');
  const nodes = [], rest = [], now = [];
  for (const l of all) {
    const [, where, what] = l.match(/^([\w.,[\]-]+): (.*)$/) || [];
    if (where) nodes.push([where, linked(what)]);
    else (/ would start now$/.test(l) ? now : rest).push(l);
  }
  return [h('h2', null, 'Why it waits: ', linked(first)),
    rest.length ? h('ul', null, rest.map((l) => h('li', null, linked(l)))) : '',
    now.map((l) => h('p', { class: 'tip' }, mark('runs'), l)),
    nodes.length ? table('Nodes', ['nodes', 'what they have for it'], nodes) : '',
    h('details', null, h('summary', null, h('span', { class: 'soft' }, 'as gqueue --why says it')), h('pre', { id: 'why', class: 'log' }, why(w)))];
}

// story reads all events of a job, the last of them at most.
export async function story(query, most) {
  let out = [], since = '';
  for (let page = 0; page < 20; page++) {
    const r = await call(`/v1/events?${query}${since}`);
    out = [...out, ...r.events].slice(-most);
    if (!r.more) break;
    since = '&since=' + r.events.at(-1).seq;
  }
  return out;
}

export function job(view, ref) {
  if (!ref) { view.append(h('h1', null, 'No job'), h('p', null, 'Which one? ', h('a', { href: '/queue' }, 'The queue'), ' has them all.')); return () => {}; }
  const body = h('div', { class: 'job', id: 'job' }, h('p', { class: 'soft' }, `Job ${ref}: loading`));
  view.append(body);
  let parts = null, stops = [], id = 0, busy = false, again = false, over = false, inner = null, was = '';
  const chosen = {}; // of the output

  async function load() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const [detail, events] = await Promise.all([call('/v1/jobs/' + encodeURIComponent(ref)), story('job=' + encodeURIComponent(ref), 400)]);
      const j = detail.job;
      if (!over && j.array_job_id && !ref.includes('_') && String(j.array_job_id) === ref) { busy = false; stopAll(); body.remove(); inner = array(view, j); return; }
      const w = j.state === 'PENDING' ? await call(`/v1/jobs/${encodeURIComponent(ref)}/why`) : null;
      if (!over) show(detail, events, w);
    } catch (e) {
      if (!over && !parts) body.replaceChildren(h('h1', null, `No job ${ref}`), h('p', { class: 'bad' }, e.message), h('p', null, h('a', { href: '/queue' }, 'The queue'), session.guest ? '' : [', or ', h('a', { href: '/me' }, 'my jobs')]));
    }
    busy = false;
    if (again && !over) { again = false; load(); }
  }

  // lay puts the parts in the order in which they matter in this state.
  function lay(d) {
    const j = d.job, kind = j.state === 'PENDING' ? 'waits' : !ended(j.state) ? 'runs' : j.state === 'COMPLETED' ? 'done' : 'failed';
    if (was === kind + j.epoch) return;
    stopAll();
    was = kind + j.epoch;
    const first = !parts;
    parts = {};
    for (const k of ['head', 'tips', 'why', 'todo', 'logs', 'heat', 'plots', 'attempts', 'used', 'ends', 'facts', 'ranks', 'story', 'script']) parts[k] = h('section', { id: 'job-' + k, class: k === 'tips' ? null : 'box', hidden: k !== 'head' && k !== 'logs' });
    const p = parts, sides = { waits: [[p.why, p.attempts, p.logs], [p.facts, p.story]], runs: [[p.logs, p.plots, p.attempts], [p.heat, p.used, p.facts, p.story]], failed: [[p.logs, p.attempts, p.plots, p.heat], [p.todo, p.ends, p.used, p.facts, p.story]], done: [[p.logs, p.plots, p.attempts], [p.heat, p.used, p.facts, p.story]] }[kind];
    const trigger = kind === 'failed' ? j.trigger_rank ?? d.attempts.at(-1)?.trigger_rank : undefined;
    if (kind === 'waits' && !j.epoch) p.logs.append(h('h2', null, 'Output'), h('p', { class: 'soft', id: 'log-none' }, 'None yet: the job has not started.'));
    else stops.push(output(p.logs, j, session.admin || session.uid === j.uid, trigger, chosen));
    body.replaceChildren(p.head, p.tips, h('div', { class: 'two wide-left' }, h('div', null, sides[0], p.ranks, p.script), h('div', null, sides[1])));
    if (first) document.getElementById('view').focus({ preventScroll: true });
  }

  function show(d, events, w) {
    const j = d.job, last = d.attempts.at(-1), measured = d.attempts.findLast((a) => a.measures?.length);
    id = j.job_id;
    j.ref = j.array_job_id ? `${j.array_job_id}_${j.array_index}` : String(j.job_id);
    j.cards = jobs.get(id)?.cards ?? (j.gpus_per_node ? j.gpus_per_node * Math.max(j.nodes.length, j.min_nodes || 1) : j.gpus_per_rank * j.size);
    lay(d);
    document.title = `${j.ref} ${j.name} ${j.state} - gangd`;
    keep(parts.head, JSON.stringify([j, order.place.get(id), order.starts.get(id), Math.floor(Date.now() / 5000)]), () => header(j, last));
    parts.head.className = 'box head ' + toneOf(j);
    const tips = tipsOf(j, measured);
    keep(parts.tips, JSON.stringify(tips), () => tips.map((t) => h('p', { class: 'tip' }, mark('waits'), t)));
    parts.tips.hidden = !tips.length;
    section(parts.why, w, () => whyTold(w), w);
    section(parts.todo, ended(j.state) && j.state !== 'COMPLETED', () => [h('h2', null, 'What to do'), h('ul', { id: 'todo' }, todo(j, last).map((t) => h('li', null, t)))], [j, last?.efficiency]);
    section(parts.attempts, d.attempts.length, () => attempts(j, d.attempts), [d.attempts.map((a) => ({ ...a, measures: 0 })), j.end_time, ended(j.state) ? 0 : Math.floor(Date.now() / 15000)]);
    measures(parts, j, measured);
    section(parts.ends, last?.ends?.length > 1 && ended(j.state), () => order_(last), last?.ends);
    section(parts.facts, true, () => asked(j), { ...j, ranks: 0, status: 0, last_beat: 0, why: 0 });
    ranksOf(j);
    scriptOf(j);
    section(parts.story, events.length, () => tales(events), [events.length, events.at(-1)?.seq, Math.floor(Date.now() / 60000)]);
  }

  // What was submitted, for who may read it: one line of --wrap as it is, a longer one folded.
  let text = null;
  async function scriptOf(j) {
    if (!session.admin && session.uid !== j.uid) return;
    if (text === null) {
      text = '';
      try { text = (await plain(`/v1/jobs/${encodeURIComponent(ref)}/script`)).replace(/^#!\/bin\/sh\n# Made by gsubmit --wrap\.\n\n/, '').trimEnd(); } catch { /* it is kept for a while only */ }
    }
    const el = parts.script;
    el.hidden = !text || over;
    if (el.hidden) return;
    const many = text.split('\n').length, log = h('pre', { class: 'log', tabindex: '0', 'aria-label': 'Script' }, text.slice(0, 100000));
    keep(el, text, () => (many < 4 ? [h('h2', null, 'Script'), log] : h('details', null, h('summary', null, h('b', null, 'Script '), h('span', { class: 'soft' }, `${j.command || ''}, ${count(many, 'line')}`)), log)));
  }

  function section(el, on, make, key) {
    el.hidden = !on;
    if (on) keep(el, JSON.stringify(key), make);
  }

  function header(j, last) {
    const mine = session.admin || session.uid === j.uid, one = { refs: [j.ref] }, live = !ended(j.state), start = seconds(j.start_time), now = Date.now() / 1000;
    const button = (label, on, question, path, more) => on && mine && h('button', { type: 'button', id: 'do-' + label.toLowerCase().split(' ')[0], onclick: () => act(question, path, { ...one, ...more }) }, label);
    const what = `${j.name} (${count(j.cards || j.size, j.cards ? 'card' : 'rank')}${start && live ? ', ' + rough(now - start) : ''})`;
    const nodes = j.nodes.length ? [' on ', listed(j.nodes.slice(0, 12), nodeLink), j.nodes.length > 12 ? ` and ${j.nodes.length - 12} more` : ''] : '';
    const out = [h('div', { class: 'row' }, h('h1', null, `${j.ref} ${j.name}`), h('span', { id: 'state', class: toneOf(j), 'data-state': j.state }, mark(markOf(j)), `${stateWords(j)}`, j.state === 'PENDING' && order.place.get(id) ? `, place ${order.place.get(id)} of ${order.total}` : ''), stateWords(j) === j.state.toLowerCase() || ['runs', 'waits'].includes(stateWords(j)) ? '' : h('span', { class: 'soft s' }, j.state),
      h('span', { class: 'grow' }), h('span', { id: 'job-tools', class: 'tools' },
        button('Hold', j.state === 'PENDING' && !j.held, { question: `Hold ${what}?`, says: 'It waits until it is released, and gives up its turn for others.', yes: 'Hold it' }, '/v1/hold'),
        button('Release', Boolean(j.held), { question: `Release ${what}?`, says: 'It goes back to the queue.', yes: 'Release it' }, '/v1/release'),
        button('Requeue', j.state === 'RUNNING', { question: `Requeue ${what}?`, says: `${stops_(j)} Then it waits again under its number, and begins from the start or its own checkpoint.`, yes: 'Stop and requeue', no: 'Keep running', harm: true }, '/v1/requeue'),
        button('Run again', ended(j.state) && !session.guest, { question: `Run ${j.name} again?`, says: 'It waits again under its number, and begins from the start or its own checkpoint.', yes: 'Run it again' }, '/v1/requeue', { ended: true }),
        button('Cancel', live, { question: `Cancel ${what}?`, says: cancels(j, last), yes: 'Cancel job', no: j.state === 'PENDING' ? 'Keep it' : 'Keep running', harm: true }, '/v1/cancel'),
        mine ? '' : h('span', { class: 'soft' }, `${j.user}'s: only its owner and admins change it`)))];
    if (j.state === 'PENDING') {
      const s = order.starts.get(id);
      out.push(h('p', null, h('b', null, count(j.cards || j.size, j.cards ? 'card' : 'rank')), ` for ${j.time_limit_seconds ? 'at most ' + rough(j.time_limit_seconds) : 'as long as it takes'}; ${j.user}${j.account ? ', ' + j.account : ''}; submitted ${clock(seconds(j.submit_time))} (${ago(seconds(j.submit_time))})`),
        h('p', { id: 'expected' }, h('span', { class: 'soft' }, s?.at ? s.sure ? 'Starts by ' : 'Starts about ' : 'Start '), s?.at ? [h('span', { class: 'big' }, s.at - now < 60 ? 'now' : soon(s.at)), h('span', { class: 'soft' }, s.at - now < 60 ? '' : ` in ${rough(s.at - now)}; ${s.sure ? 'at the latest, by the time limits of what runs' : 'a guess from time limits'}`)]
          : h('span', { class: 'soft' }, order.place.get(id) ? 'not known: what runs before it has no time limit, or it needs a node that is away' : 'not before what it waits for')));
    } else if (live) {
      const limit = j.time_limit_seconds, gone = limit ? (now - start) / limit * 100 : 0;
      out.push(h('p', null, j.status ? [h('b', { id: 'status' }, j.status), '; '] : '', count(j.cards || j.size, j.cards ? 'card' : 'rank'), nodes, `; ${j.user}${j.account ? ', ' + j.account : ''}; attempt ${Math.max(1, (last?.attempt ?? 1))}`, j.last_beat ? `; last beat ${ago(seconds(j.last_beat))}` : ''));
      if (start) out.push(h('div', null, limit ? meter([[gone, gone > 90 ? 'wait' : '']], `${Math.round(gone)} % of its time limit is over`) : '', h('div', { class: 'row s' }, h('span', null, `${rough(now - start)}${limit ? ' of ' + rough(limit) : ', no time limit'}`), h('span', { class: 'grow' }), h('span', { class: 'soft' }, limit ? `limit ends ${soon(start + limit)}` : ''))));
    } else {
      const end = seconds(j.end_time), a = last;
      if (j.state !== 'COMPLETED') out.push(h('div', { class: 'culprit' }, h('p', { id: 'verdict' }, h('b', null, told(j.verdict || stateWords(j)))),
        a && a.trigger_rank !== undefined && isOwnFault(a.cause) ? h('p', { class: 'soft' }, `Culprit: rank ${a.trigger_rank}${j.ranks?.[a.trigger_rank]?.node ? ' on ' + j.ranks[a.trigger_rank].node : ''}; cause: ${causeWords(a.cause)}${a.text && !(j.verdict || '').includes(a.text) ? ': ' + a.text : ''}`) : a && a.cause ? h('p', { class: 'soft' }, `Cause: ${causeWords(a.cause)}`) : ''));
      out.push(h('p', null, count(j.cards || j.size, j.cards ? 'card' : 'rank'), nodes, `; ${j.user}${j.account ? ', ' + j.account : ''}; `, start ? `ran ${span(end - start)}, ended ${clock(end)} (${ago(end)})` : `never started, ended ${clock(end)} (${ago(end)})`, j.exit_code !== null && j.exit_code !== undefined ? `, exit code ${j.exit_code}` : ''));
    }
    return out;
  }

  load();
  const stop = onChange((told) => { if (!inner && (told.all || told.jobs.has(id) || told.order || !id)) load(); });
  // What ranks say of themselves is no event; it is looked at while somebody looks.
  const clockwork = setInterval(() => { const j = jobs.get(id); if (!inner && !document.hidden && j && !ended(j.state)) load(); }, 5000);
  function stopAll() { for (const f of stops) f(); stops = []; }

  function ranksOf(j) {
    const list = (j.ranks || []).slice(0, 512);
    parts.ranks.hidden = !j.epoch || !list.length;
    if (parts.ranks.hidden) return;
    const beats = list.map((r) => seconds(r.last_beat)).filter(Boolean), open = parts.ranks.querySelector('details')?.open;
    keep(parts.ranks, JSON.stringify([list, Math.floor(Date.now() / 5000)]), () => h('details', { open }, h('summary', null, h('b', null, 'Ranks '), h('span', { class: 'soft' }, `${j.size}${beats.length ? `, last beats ${ago(Math.min(...beats))} to ${ago(Math.max(...beats))}` : ''}`)),
      table('Ranks', ['rank|', 'state', 'node', 'cards|', 'last beat|', 'says', 'exit|'], list.map((r) => [r.rank, r.state, r.node ? nodeLink(r.node) : '', (r.cards || []).length || '', r.last_beat ? h('span', { title: iso(seconds(r.last_beat)) }, ago(seconds(r.last_beat))) : '–', r.status || '', r.exit_code ?? (r.signal ? 'signal ' + r.signal : '–')])),
      j.size > list.length ? h('p', { class: 'soft' }, `and ${j.size - list.length} more`) : ''));
  }
  return () => { over = true; stop(); clearInterval(clockwork); stopAll(); inner?.(); };
}

// stops_ is how a job that runs is stopped.
export function stops_(j) {
  const n = j.notice, by = (s) => clock(Date.now() / 1000 + s, true);
  if (n) return `It gets ${n.signal.replace('SIG', '')} now and has ${span(n.lead_seconds)} to save; what is left is stopped by ${by(n.lead_seconds + j.grace_seconds)}.`;
  return `It gets TERM now; what is left after ${span(j.grace_seconds)} is killed, by ${by(j.grace_seconds)}.`;
}

function cancels(j) {
  if (j.state === 'PENDING') return 'It has not started: it gives up its place in the queue.';
  const c = j.checkpoint ? ` Its last checkpoint was ${ago(seconds(j.checkpoint.time))}.` : '';
  return stops_(j) + c;
}

function tipsOf(j, a) {
  if (!a || ended(j.state)) return [];
  return (a.efficiency?.advice || []).map((x) => x.text).concat(sum(a).idle.length ? [`${sum(a).idle.length} of ${count(sum(a).cards.length, 'card')} did next to nothing so far (${sum(a).idle.map((c) => `${c.node} card ${c.index}`).slice(0, 4).join(', ')}${sum(a).idle.length > 4 ? ', …' : ''}).`] : []);
}

// todo is what helps after this end.
function todo(j, a) {
  const last = a?.efficiency?.advice?.map((x) => x.text) || [], again = j.array_job_id ? [h('code', null, `gctl rerun --failed ${j.array_job_id}`), ' runs the elements again that failed.'] : [h('code', null, `gctl rerun ${j.ref}`), ' submits it once more; Run again, above, runs it under its number.'];
  const by = {
    crash: ['Its own program ended it: read the last lines of the rank that failed first.'], oom: [['Ask for more memory than now: ', h('code', null, '--mem=…'), ' (of a node), or a smaller batch.']], timeout: [['It needs longer, or a checkpoint before its end: ', h('code', null, '--time=…'), ', ', h('code', null, '--signal=USR1@120'), '.']],
    'node-lost': ['Nothing of its own was wrong: its node went away.'], launch: ['It could not be started: see the verdict for what was missing, and where.'], preempted: ['Nothing of its own was wrong: another job had the right to its place.'],
    stalled: ['No rank said that it goes on for too long: see what it did last.'], idle: ['Its cards did nothing for too long: they go to who waits.'], 'gpu-hang': ['Its cards did nothing while its processes lived: a collective call that waits for a rank is the most common reason.'],
    cancelled: [`Cancelled${j.cancelled_by ? ' by ' + j.cancelled_by : ''}.`],
  }[j.cause] || [];
  return [...by, ...last, again];
}

function asked(j) {
  return [h('h2', null, 'What was asked'), facts([
    ['ranks', `${j.size}${j.gpus_per_rank ? `, ${count(j.gpus_per_rank, 'card')}${j.vram_bytes ? ' of ' + bytes(j.vram_bytes) : ''} each` : j.gpus_per_node ? `, ${count(j.gpus_per_node, 'card')} a node` : ''}`],
    ['CPUs, memory', `${j.cpus_per_rank}${j.memory_bytes ? ', ' + bytes(j.memory_bytes) : ''} a rank${j.memory_per_node_bytes ? `, ${bytes(j.memory_per_node_bytes)} a node` : ''}`],
    ['time limit', j.time_limit_seconds ? rough(j.time_limit_seconds) : 'none'], ['notice', j.notice ? `${j.notice.signal}, ${span(j.notice.lead_seconds)} before` : ''], ['partition', j.partition], ['account', j.account], ['constraint', j.constraint],
    ['dependency', j.dependency], ['reservation', j.reservation], ['priority', String(j.priority)], ['submitted', iso(seconds(j.submit_time))], ['started', seconds(j.start_time) ? iso(seconds(j.start_time)) : ''], ['ended', seconds(j.end_time) ? iso(seconds(j.end_time)) : ''],
    ['command', j.command && h('code', null, j.command)], ['directory', h('code', null, j.work_dir)], ['output', j.std_out && h('code', null, j.std_out)], ['image', j.container_image], ['comment', j.comment],
    ['checkpoint', j.checkpoint ? `${bytes(j.checkpoint.bytes)}, ${ago(seconds(j.checkpoint.time))}` : ''],
  ])];
}

const kindOf = (a) => (!a.cause ? '' : a.cause === 'completed' ? 'over' : isOwnFault(a.cause) ? 'bad' : 'over');

function attempts(j, list) {
  const begin = Math.min(seconds(j.submit_time), seconds(list[0].start_time)), now = Date.now() / 1000, end = seconds(j.end_time) || now, parts = [], marks = [{ at: begin, text: clock(begin) }];
  let from = begin;
  for (const a of list) {
    const s = seconds(a.start_time), e = seconds(a.end_time) || end;
    if (s - from > 1) parts.push({ from, to: s, kind: 'wait', text: '', title: `waited ${span(s - from)}` });
    parts.push({ from: s, to: e, kind: kindOf(a), text: `${a.attempt}${a.cause ? '' : ', runs'}`, title: `attempt ${a.attempt}: ${span(e - s)}, ${a.cause ? causeWords(a.cause) : 'runs'}` });
    marks.push({ at: s, text: clock(s) });
    from = e;
  }
  if (end - from > 1) parts.push({ from, to: end, kind: 'wait', text: '', title: `waited ${span(end - from)}` });
  marks.push({ at: end, text: seconds(j.end_time) ? clock(end) : 'now', end: true });
  const cards = (a) => (a.gpu_seconds || (a.cause ? 0 : j.cards * (now - seconds(a.start_time))));
  return [head2('Attempts', 'pale: waited; blue: runs; grey: ended through no fault of its own; red: its own failure'), axis(parts, begin, end, marks.filter((m) => m.end || (end - m.at) / Math.max(1, end - begin) > 0.12)),
    table('Attempts', ['#', 'started', 'ran|', 'ended because~', 'card time|^', 'most VRAM|^'], [...list].reverse().map((a) => [a.attempt, h('span', { title: iso(seconds(a.start_time)) }, clock(seconds(a.start_time))), span((seconds(a.end_time) || now) - seconds(a.start_time)),
      a.cause ? [mark(a.cause === 'completed' || !isOwnFault(a.cause) ? 'over' : 'trouble'), causeWords(a.cause), a.trigger_rank === undefined ? '' : `, rank ${a.trigger_rank}`, a.text ? `: ${a.text}` : '', a.started_by ? `; reported first: ${a.started_by.text}` : '', a.stacks && !(a.text || '').endsWith(a.stacks.text) ? `; when it was stopped: ${a.stacks.text}` : ''] : [mark('runs'), 'runs'], hours(cards(a)), a.vram_peak_bytes ? bytes(a.vram_peak_bytes) : '–']))];
}

const after = (ms) => (ms < 1 ? '0' : ms < 1000 ? `${Math.round(ms)} ms` : ms < 10000 ? `${(ms / 1000).toFixed(1)} s` : span(ms / 1000));

// order_ is when each rank ended, the first first.
function order_(a) {
  const list = [...a.ends].sort((x, y) => x.ms - y.ms);
  return [head2('Who ended first', 'after the first'), table('Ends of ranks', ['rank|', 'ended', 'after|'], list.slice(0, 16).map((e) => [e.rank, e.own ? h('span', { class: 'bad' }, mark('trouble'), 'by itself') : 'was stopped', after(e.ms)])), list.length > 16 ? h('p', { class: 'soft s' }, `and ${list.length - 16} more`) : ''];
}

export function tale(e) {
  const out = [e.text, e.cause && `cause ${e.cause}`, e.trigger != null && `rank ${e.trigger}`, e.rank != null && `rank ${e.rank}`, e.node, e.nodes && e.nodes.join(' '), e.signal, e.outcome, e.forced && 'by force',
    e.exit_code !== undefined && `exit ${e.exit_code}`, e.bytes && bytes(e.bytes), e.seconds && `${e.seconds.toFixed(1)} s`, e.state];
  return told(out.filter(Boolean).join(', '));
}

export const tales = (events, title) => [h('h2', null, title || 'Story'), table(title || 'Story', ['when', 'what', '~'], [...events].reverse().slice(0, 200).map((e) => [h('span', { class: 'soft when', title: iso(seconds(e.time)) }, clock(seconds(e.time), true)), e.type.replaceAll('_', ' '), tale(e)]))];
