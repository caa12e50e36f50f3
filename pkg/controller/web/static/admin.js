// Admin: what needs a hand, who waits longest, who uses what.
import { h, session, call, act, say, box, head2, facts, table, mark, keep, jobLink, nodeLink, empty } from './dom.js';
import { jobs, nodes, order, onChange } from './live.js';
import { bar } from './me.js';
import { drained, resumeQuestion } from './node.js';
import { tales } from './job.js';
import { clock, count, figure, hours, reasonWords, rough, seconds, soon, span } from './words.js';

const listeds = (list) => (list && list.length ? list.join(', ') : 'all nodes');

export function admin(view) {
  const health = h('section', { class: 'box', id: 'health' }), sick = h('section', { class: 'box', id: 'sick' }), waits = h('section', { class: 'box', id: 'waits' }), untold = h('section', { class: 'box', id: 'untold', hidden: true }), kept = h('section', { class: 'box', id: 'kept' }), parts = h('section', { class: 'box', id: 'partitions' }), usage = h('section', { class: 'box', id: 'usage' }), audit = h('section', { class: 'box', id: 'audit' }), tools = h('section', { class: 'box', id: 'admin-tools' });
  view.append(h('div', { class: 'row' }, h('h1', null, 'Admin'), session.admin ? '' : h('span', { class: 'soft' }, 'What changes nodes is for admins; all may look.')), h('div', { class: 'two' }, h('div', null, sick, waits, untold, audit), h('div', null, health, usage, parts, kept, session.admin ? tools : '')));
  let over = false;

  async function ping() {
    try {
      // Drawn together: a button that moves below a pointer is missed.
      const [p, o, r, n, l] = await Promise.all([call('/v1/ping'), call('/v1/outbox'), call('/v1/reservations'), call('/v1/nodes'), call(`/v1/ledger?from=${new Date(Date.now() - 6 * 86400e3).toISOString().slice(0, 10)}&by=account,user`)]);
      if (over) return;
      const f = p.figures || {};
      keep(health, JSON.stringify([p, Math.floor(Date.now() / 60000)]), () => [h('h2', null, 'gangd'), h('p', { id: 'ping' }, `${p.nodes_up} of ${p.nodes} nodes up`), p.hold ? h('p', { class: 'bad' }, 'On hold, starts and stops nothing: ' + p.hold) : '',
        facts([['version', p.version], ['runs for', `${span((Date.now() - new Date(p.start_time)) / 1000)} (process ${p.pid})`], ['commits', figure(p.lineage)], ['since its start', `${(f.submitted || 0).toLocaleString('en')} submitted, ${(f.started || 0).toLocaleString('en')} started, ${(f.completed || 0).toLocaleString('en')} completed, ${(f.failed || 0).toLocaleString('en')} failed`], ['last plan', f.last_plan_ns ? `${(f.last_plan_ns / 1e6).toFixed(1)} ms, longest ${(f.longest_plan_ns / 1e6).toFixed(1)} ms` : ''], ['leads', p.leader ? `${p.leader}, term ${p.term}` : '']])]);
      const late = o.lines.filter((x) => x.tries);
      untold.hidden = !(late.length + o.given_up.length);
      keep(untold, JSON.stringify(o), () => [h('h2', null, 'Notices that were not delivered'), table('Notices', ['of', 'to', 'events', 'since', 'why'], [...late.map((x) => [x.user, x.to || x.target, x.waiting, clock(seconds(x.oldest)), `failed ${x.tries} times, goes on: ${x.error}`]), ...o.given_up.map((x) => [x.user, x.to || x.target, `${x.type} of job ${x.ref}`, clock(seconds(x.time)), 'given up after a day: ' + x.error])])]);
      keep(kept, JSON.stringify(r), () => [h('h2', null, 'Reservations'), (r.reservations || []).length ? table('Reservations', ['name', 'from', 'to', 'nodes'], r.reservations.map((x) => [x.name, clock(seconds(x.start_time)), clock(seconds(x.end_time)), (x.nodes || []).join(', ')])) : h('p', { class: 'soft' }, 'None.')]);
      keep(parts, JSON.stringify(n.partitions), () => [h('h2', null, 'Partitions'), table('Partitions', ['name', 'takes', 'nodes', 'limit|'], n.partitions.map((x) => [[x.name, x.default ? h('span', { class: 'soft' }, ' (default)') : ''], { down: 'queues, starts nothing', drain: 'starts, takes no more', inactive: 'nothing' }[x.state] || 'all', listeds(x.nodes), x.max_time_ns ? rough(x.max_time_ns / 1e9) : 'none']))]);
      keep(usage, JSON.stringify(l.rows), () => {
        const rows = l.rows.filter((x) => x.card_ms).sort((a, b) => b.card_ms - a.card_ms), accounts = new Map();
        for (const x of rows) accounts.set(x.account || 'no account', (accounts.get(x.account || 'no account') || 0) + x.card_ms / 1000);
        const list = [...accounts].sort((a, b) => b[1] - a[1]).slice(0, 12);
        return [head2('Card time in 7 days', rows.length ? hours(rows.reduce((s, x) => s + x.card_ms / 1000, 0)) : ''), rows.length ? [h('div', { class: 'bars' }, list.map(([name, s]) => bar(name, s, list[0][1], hours(s)))), table('By user', ['user', 'account', 'card time|', 'busy|', 'idle|', 'lost|'], rows.slice(0, 12).map((x) => [x.user, x.account || '', hours(x.card_ms / 1000), x.seen_card_ms ? `${Math.round(100 * x.busy_card_ms / x.seen_card_ms)} %` : '–', hours(x.idle_card_ms / 1000), hours(x.lost_card_ms / 1000)]))] : h('p', { class: 'soft' }, 'No card was held.')];
      });
    } catch (e) {
      if (!over) health.replaceChildren(h('h2', null, 'gangd'), h('p', { class: 'bad' }, e.message));
    }
  }

  async function trail() {
    try {
      const { events } = await call('/v1/events?of=site&limit=50');
      if (!over) keep(audit, JSON.stringify(events.at(-1)?.seq ?? 0), () => (events.length ? tales(events, 'What was done to nodes, partitions and reservations') : [h('h2', null, 'What was done to nodes, partitions and reservations'), h('p', { class: 'soft' }, 'Nothing that is still known.')]));
    } catch (e) {
      if (!over) audit.replaceChildren(h('p', { class: 'bad' }, e.message));
    }
  }

  function draw() {
    const bad = [...nodes.values()].filter((n) => n.state !== 'up' || n.strikes || n.cards.some((c) => c.state !== 'ok' || c.strangers_bytes)).sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
    keep(sick, JSON.stringify([nodes.size > 0, bad.map((n) => [n.name, n.state, n.reason, n.strikes, n.cards.map((c) => [c.state, c.strangers_bytes > 0])])]), () => [h('h2', null, 'What needs a look'), bad.length ? h('ul', { class: 'plain' }, bad.slice(0, 100).map((n) => h('li', { class: 'row' }, h('b', null, mark('trouble'), nodeLink(n.name)), n.state === 'up' ? '' : h('span', { class: 'bad' }, n.state), n.reason || n.strikes ? h('span', null, n.reason || count(n.strikes, 'failed launch', 'failed launches')) : '',
      h('span', { class: 'soft' }, n.cards.filter((c) => c.state !== 'ok' || c.strangers_bytes).map((c) => `card ${c.index} ${c.state === 'ok' ? 'has strangers' : c.state}`).join(', ')), session.admin && drained(n) ? h('button', { type: 'button', onclick: () => act(resumeQuestion(n.name), `/v1/nodes/${encodeURIComponent(n.name)}/resume`, {}) }, 'Resume') : '')))
      : h('p', { class: 'run', id: 'all-well' }, mark('runs'), nodes.size ? 'Every node is up, and no card is out.' : 'No node has joined yet.')]);
    const list = [...jobs.values()].filter((j) => j.state === 'PENDING' && !j.held).sort((a, b) => a.submit_time - b.submit_time), seen = new Set(), first = list.filter((j) => !j.array || !seen.has(j.array) && seen.add(j.array)).slice(0, 10), now = Date.now() / 1000;
    keep(waits, JSON.stringify([first.map((j) => [j.ref, j.reason, order.place.get(j.job_id), order.starts.get(j.job_id)?.at, order.whys.get(j.job_id)]), Math.floor(now / 60)]), () => [h('h2', null, 'Who waits longest'), first.length ? table('Who waits longest', ['job', 'user', 'cards|', 'waited|', 'starts about|^', 'why~'], first.map((j) => { const s = order.starts.get(j.job_id); return [jobLink({ ref: j.array || j.ref }, `${j.array || j.ref} ${j.name}`), j.user, String(j.cards || 0), rough(now - j.submit_time), s?.at ? soon(s.at) : '–', order.whys.get(j.job_id) || reasonWords(j.reason)]; })) : h('p', { class: 'soft' }, 'Nobody waits.')]);
  }

  if (session.admin) {
    const result = h('pre', { id: 'result', class: 'log', hidden: true, tabindex: '0' });
    const show = (text) => { result.hidden = false; result.textContent = text; };
    tools.append(h('h2', null, 'By hand'), h('div', { class: 'tools' },
      h('button', { type: 'button', id: 'verify', onclick: async () => { try { const v = await call('/v1/verify'); show(v.findings.length ? v.findings.join('\n') : 'memory and store agree'); } catch (e) { say(e.message); } } }, 'Recount memory and store'),
      h('button', { type: 'button', id: 'token', onclick: async () => { try { show((await call('/v1/tokens', {})).line); } catch (e) { say(e.message); } } }, 'Token for a node')), result);
  }
  draw();
  ping();
  trail();
  const clockwork = setInterval(() => { if (!document.hidden) { ping(); trail(); draw(); } }, 15000);
  const stop = onChange((told) => { if (told.all || told.nodes.size || told.order || told.jobs.size) draw(); });
  return () => { over = true; clearInterval(clockwork); stop(); };
}
