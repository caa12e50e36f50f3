// Node: its cards, who is on them, its last 24 hours, and its story.
import { h, session, call, act, box, head2, facts, table, mark, keep, jobLink, empty } from './dom.js';
import { jobs, nodes, state, onChange } from './live.js';
import { day } from './charts.js';
import { story, tales } from './job.js';
import { ago, bytes, clock, count, markOf, rough, seconds, stateWords } from './words.js';

const refOf = (id) => jobs.get(id)?.ref ?? String(id);
export const drained = (n) => n.state === 'draining' || n.state === 'drained';
export const drainQuestion = (name) => ({ question: `Drain ${name}?`, says: 'Nothing new starts there; what runs ends by itself.', yes: 'Drain it', reason: true });
export const resumeQuestion = (name) => ({ question: `Put ${name} back into service?`, yes: 'Resume it' });

export function node(view, name) {
  if (!name) { view.append(h('h1', null, 'No node'), h('p', null, 'Which one? ', h('a', { href: '/now' }, 'Now'), ' has them all.')); return () => {}; }
  const head = h('section', { class: 'box head' }, h('h1', null, name), h('p', { class: 'soft' }, 'loading')), cards = box(), list = box(), about = box(), tale = h('section', { class: 'box', id: 'node-story' }, h('h2', null, 'Story'), h('p', { class: 'soft' }, 'loading')), band = h('div'), said = h('small', { class: 'soft' });
  view.append(head, h('div', { class: 'two wide-left' }, h('div', null, cards, list, h('section', { class: 'box' }, head2('Last 24 hours, in cards', '', said), band)), h('div', null, about, tale)));
  let drawing = null, over = false, at = '';

  function draw() {
    const n = nodes.get(name);
    if (!n) { if (state.nodes) head.replaceChildren(h('h1', null, name), h('p', { class: 'bad' }, `There is no node ${name}.`), h('p', null, h('a', { href: '/now' }, 'All nodes'))); return; }
    const bad = n.state !== 'up', path = `/v1/nodes/${encodeURIComponent(name)}/`;
    head.className = 'box head ' + (bad ? 'bad' : 'run');
    const used = n.cards.filter((c) => c.jobs.length).length;
    keep(head, JSON.stringify([n.state, n.reason, n.drain_user, used, session.admin]), () => [h('div', { class: 'row' }, h('h1', null, name), h('span', { id: 'state', class: bad ? 'bad' : 'run' }, mark(bad ? 'trouble' : 'runs'), n.state), h('span', { class: 'grow' }), h('span', { class: 'tools' },
      session.admin && !drained(n) ? h('button', { type: 'button', onclick: () => act(drainQuestion(name), path + 'drain', {}) }, 'Drain') : '', session.admin && drained(n) ? h('button', { type: 'button', onclick: () => act(resumeQuestion(name), path + 'resume', {}) }, 'Resume') : '')),
      n.reason ? h('p', null, h('b', null, n.reason), n.drain_user && drained(n) ? h('span', { class: 'soft' }, ` (${n.drain_user}, ${clock(seconds(n.drain_time))})`) : '') : '', h('p', null, `${used} of ${count(n.cards.length, 'card')} given, ${n.cpus_used} of ${n.cpus} CPUs, ${bytes(n.memory_used_bytes)} of ${bytes(n.memory_bytes)}`)]);
    keep(cards, JSON.stringify([n.cards, n.state]), () => [h('h2', null, 'Cards'), n.cards.length ? table('Cards', ['', 'of', 'busy|', 'VRAM used|~', 'given|^', 'state~'], n.cards.map((c) => [`card ${c.index}`, c.jobs.length ? c.jobs.flatMap((id, i) => [i ? ', ' : '', jobLink({ ref: refOf(id) }, `${refOf(id)} ${jobs.get(id)?.name ?? ''}`)]) : h('span', { class: 'soft' }, 'free'),
      h('span', { class: c.jobs.length && c.utilization >= 0 && c.utilization < 5 ? 'wait' : null }, c.utilization < 0 ? '–' : `${c.utilization} %`), `${bytes(c.used_bytes)} of ${bytes(c.vram_bytes)}`, bytes(c.reserved_bytes), [c.state === 'ok' ? h('span', { class: 'soft' }, 'ok') : h('span', { class: 'bad' }, mark('trouble'), c.state + (c.reason ? ': ' + c.reason : '')), c.strangers_bytes ? h('span', { class: 'bad' }, `${c.state === 'ok' ? ', ' : '; '}strangers use ${bytes(c.strangers_bytes)}`) : '',
        session.admin ? [' ', h('button', { type: 'button', class: 's small', 'aria-label': `${c.state === 'ok' ? 'Set aside' : 'Resume'} card ${c.index}`, onclick: () => act(c.state === 'ok' ? { question: `Set card ${c.index} of ${name} aside?`, says: 'No gang is put on it; what runs on it goes on.', yes: 'Set it aside', reason: true } : { question: `Put card ${c.index} of ${name} back into service?`, yes: 'Resume it' }, `${path}cards/${c.index}/${c.state === 'ok' ? 'drain' : 'resume'}`, {}) }, c.state === 'ok' ? 'Set aside' : 'Resume')] : '']]))
      : h('p', { class: 'soft' }, 'This node has no cards.')]);
    keep(list, JSON.stringify((n.jobs || []).map((id) => [id, jobs.get(id)?.state, Math.floor(Date.now() / 30000)])), () => [h('h2', null, 'Jobs'), (n.jobs || []).length ? table('Jobs', ['job', 'user', 'state~', 'ran|', 'left|^'], n.jobs.map((id) => { const j = jobs.get(id), now = Date.now() / 1000; return [jobLink({ ref: refOf(id) }, `${refOf(id)} ${j?.name ?? ''}`), j?.user, j ? [mark(markOf(j)), stateWords(j)] : '', j?.start_time ? rough(now - j.start_time) : '–', j?.time_limit_seconds && j.start_time ? rough(Math.max(0, j.start_time + j.time_limit_seconds - now)) : '–']; })) : h('p', { class: 'soft' }, 'No job is here.')]);
    keep(about, JSON.stringify([n.partitions, n.features, n.containment, n.version, n.address, n.load?.hundredths, n.state]), () => [h('h2', null, 'What it is'), facts([['partitions', (n.partitions || []).join(', ')], ['features', (n.features || []).join(', ')], ['cards', n.cards.length ? [...new Set(n.cards.map((c) => c.model))].join(', ') : ''], ['load', n.load ? (n.load.hundredths / 100).toFixed(2) : ''], ['free memory', n.load ? bytes(n.load.free_bytes) : ''],
      ['containment', n.containment], ['other gangs’ cards', n.devices], ['containers', (n.containers || []).join(', ')], ['reservation', n.reservation?.name], ['failed launches', n.strikes || ''], ['version', n.version], ['last heard of', n.state === 'up' ? '' : ago(seconds(n.last_seen))]])]);
    const now = n.state + n.reason;
    if (now !== at) { at = now; past(); }
  }

  async function past() {
    try {
      const [d, events] = await Promise.all([call('/v1/day?node=' + encodeURIComponent(name)), story('node=' + encodeURIComponent(name), 100)]);
      if (over) return;
      drawing?.stop();
      if (d.given.some((v) => v !== null)) drawing = day(band, d, (t) => { said.textContent = t; }); else band.replaceChildren(empty('No figures yet.'));
      tale.replaceChildren(...events.length ? tales(events) : [h('h2', null, 'Story'), h('p', { class: 'soft' }, 'Nothing happened to it that is still known.')]);
    } catch (e) {
      if (!over) tale.replaceChildren(h('h2', null, 'Story'), h('p', { class: 'bad' }, e.message));
    }
  }
  draw();
  const clockwork = setInterval(() => { if (!document.hidden) past(); }, 60000);
  const stop = onChange((told) => { if (told.all || told.nodes.has(name) || told.used.has(name) || told.jobs.size) draw(); });
  return () => { over = true; stop(); clearInterval(clockwork); drawing?.stop(); };
}
