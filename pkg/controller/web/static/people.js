// Me: what is mine and what it used. Admin: what needs a hand.
import { h, session, call, act, say, ended, stateClass, duration, when, table } from './dom.js';
import { jobs, nodes, onChange } from './live.js';

const link = (j) => h('a', { href: '/job/' + j.ref }, j.ref);

// lines reads one JSON object a line.
async function lines(path, body) {
  const res = await fetch(path, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'Gang-CSRF': session.csrf } });
  if (!res.ok) throw new Error(`${res.status} ${res.statusText}`);
  return (await res.text()).split('\n').filter(Boolean).map((l) => JSON.parse(l));
}

export function me(view) {
  const mine = h('section', { id: 'mine-now' }), used = h('section', { id: 'used' });
  view.append(h('h1', null, 'Me: ' + session.user), mine, used);
  function draw() {
    const list = [...jobs.values()].filter((j) => j.user === session.user && !ended(j.state)).sort((a, b) => b.job_id - a.job_id);
    const runs = list.filter((j) => j.state !== 'PENDING').length;
    mine.replaceChildren(h('h2', null, `${runs} run, ${list.length - runs} wait`),
      list.length ? table(['job', 'name', 'state', 'nodes or reason'], list.slice(0, 200).map((j) => [link(j), j.name, h('span', { class: stateClass(j.state) }, j.state), j.nodes || `(${j.reason})`]), { label: 'My jobs' })
        : h('p', { class: 'soft' }, 'Nothing of yours runs or waits.'));
  }
  async function history() {
    try {
      const all = await lines('/v1/history', { users: [session.user], since: new Date(Date.now() - 7 * 86400e3).toISOString() });
      const causes = new Map();
      let total = 0, lost = 0;
      for (const d of all) {
        for (const a of d.attempts) {
          if (!a.cause) continue;
          total += a.gpu_seconds;
          if (a.cause !== 'completed') { lost += a.gpu_seconds; causes.set(a.cause, (causes.get(a.cause) || 0) + a.gpu_seconds); }
        }
      }
      used.replaceChildren(h('h2', null, 'The last 7 days'),
        h('p', { id: 'week' }, `${all.length} jobs, ${duration(total)} of card time in attempts that ended` + (lost ? `, ${duration(lost)} of it in attempts that did not complete` : '')),
        causes.size ? table(['cause', 'card time'], [...causes].sort((a, b) => b[1] - a[1]).map(([c, s]) => [c, duration(s)]), { label: 'By cause' }) : '',
        table(['job', 'name', 'state', 'attempts', 'card time', 'ended'], all.reverse().slice(0, 100).map((d) => [h('a', { href: '/job/' + d.job.job_id }, d.job.job_id), d.job.name, h('span', { class: stateClass(d.job.state) }, d.job.state),
          d.attempts.length, duration(d.attempts.reduce((s, a) => s + a.gpu_seconds, 0)), when(d.job.end_time)]), { label: 'My jobs of 7 days' }));
    } catch (e) {
      used.replaceChildren(h('p', { class: 'bad' }, e.message));
    }
  }
  draw();
  history();
  return onChange(draw);
}

export function admin(view) {
  const health = h('section', { id: 'health' }), sick = h('section', { id: 'sick' }), untold = h('section', { id: 'untold' }), kept = h('section', { id: 'kept' }), tools = h('section', { id: 'admin-tools' });
  view.append(h('h1', null, 'Admin'), health, sick, untold, kept, tools);
  if (!session.admin) view.append(h('p', { class: 'soft' }, 'What changes nodes is for admins.'));
  async function ping() {
    try {
      // Drawn together: a button that moves below a pointer is missed.
      const [p, o, r] = await Promise.all(['/v1/ping', '/v1/outbox', '/v1/reservations'].map((path) => call(path)));
      health.replaceChildren(h('p', { id: 'ping' }, `gangd ${p.version}, pid ${p.pid}, up ${duration((Date.now() - new Date(p.start_time)) / 1000)}, ${p.nodes_up} of ${p.nodes} nodes up, ${p.lineage} commits`),
        p.hold ? h('p', { class: 'bad' }, 'on hold, starts and stops nothing: ' + p.hold) : '');
      const late = o.lines.filter((l) => l.tries);
      untold.replaceChildren(...late.length + o.given_up.length ? [h('h2', null, 'Notices that were not delivered'), table(['of', 'to', 'events', 'since', 'why'],
        [...late.map((l) => [l.user, l.to || l.target, l.waiting, when(l.oldest), `failed ${l.tries} times, goes on: ${l.error}`]),
          ...o.given_up.map((l) => [l.user, l.to || l.target, `${l.type} of job ${l.ref}`, when(l.time), 'given up after a day: ' + l.error])], { label: 'Notices' })] : []);
      kept.replaceChildren(h('h2', null, 'Reservations'), (r.reservations || []).length ? table(['name', 'from', 'to', 'nodes'], r.reservations.map((x) => [x.name, when(x.start_time), when(x.end_time), (x.nodes || []).join(' ')]), { label: 'Reservations' }) : h('p', { class: 'soft' }, 'none'));
    } catch (e) {
      health.replaceChildren(h('p', { class: 'bad' }, e.message));
    }
  }
  function draw() {
    const bad = [...nodes.values()].filter((n) => n.state !== 'up' || n.strikes || n.cards.some((c) => c.state !== 'ok' || c.strangers_bytes));
    sick.replaceChildren(h('h2', null, 'What needs a look'), bad.length ? table(['node', 'state', 'why', 'cards', ''], bad.map((n) => [h('a', { href: '/node/' + n.name }, n.name), n.state, n.reason || (n.strikes ? n.strikes + ' failed launches' : ''),
      n.cards.filter((c) => c.state !== 'ok' || c.strangers_bytes).map((c) => `${c.index} ${c.state === 'ok' ? 'has strangers' : c.state} `),
      session.admin && (n.state === 'drained' || n.state === 'draining') ? h('button', { type: 'button', onclick: () => act(`Put ${n.name} back into service?`, `/v1/nodes/${encodeURIComponent(n.name)}/resume`, {}) }, 'Resume') : '']), { label: 'Nodes' })
      : h('p', { class: 'good' }, 'Every node is up, and no card is out.'));
  }
  if (session.admin) {
    const result = h('pre', { id: 'result', hidden: true, tabindex: '0' });
    const show = (text) => { result.hidden = false; result.textContent = text; };
    tools.append(h('h2', null, 'By hand'), h('div', { class: 'tools' },
      h('button', { type: 'button', id: 'verify', onclick: async () => { try { const v = await call('/v1/verify'); show(v.findings.length ? v.findings.join('\n') : 'memory and store agree'); } catch (e) { say(e.message); } } }, 'Recount memory and store'),
      h('button', { type: 'button', id: 'token', onclick: async () => { try { show((await call('/v1/tokens', {})).line); } catch (e) { say(e.message); } } }, 'Token for a node')), result);
  }
  draw();
  ping();
  const clock = setInterval(() => { if (!document.hidden) ping(); }, 15000);
  const stop = onChange(draw);
  return () => { clearInterval(clock); stop(); };
}
