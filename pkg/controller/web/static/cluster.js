// Now: each card of each node. Node: one of them in full.
import { h, session, act, stateClass, ended, bytes, when, hue, table, facts } from './dom.js';
import { jobs, nodes, onChange } from './live.js';

const refOf = (id) => jobs.get(id)?.ref ?? String(id);
const percent = (a, b) => (b > 0 ? Math.min(100, 100 * a / b) : 0);

// words say of a card what its colours say.
function words(c) {
  const who = c.jobs.length ? 'job ' + c.jobs.map(refOf).join(', ') : 'free';
  const busy = c.utilization < 0 ? 'use unknown' : `${c.utilization} % busy`;
  return `card ${c.index}: ${c.state === 'ok' ? who : c.state + (c.reason ? ', ' + c.reason : '')}; ${bytes(c.used_bytes)} of ${bytes(c.vram_bytes)} used, ${busy}` +
    (c.strangers_bytes ? `; strangers use ${bytes(c.strangers_bytes)}` : '');
}

function card(c) {
  const el = h('li', { class: 'card' + (c.state === 'ok' ? '' : ' out'), title: words(c) });
  const vram = h('span', { class: 'vram ' + (c.jobs.length ? hue(c.jobs[0]) : '') });
  vram.style.height = percent(Math.max(c.used_bytes, c.reserved_bytes), c.vram_bytes) + '%';
  el.append(vram);
  if (c.strangers_bytes) {
    const s = h('span', { class: 'strange' });
    s.style.height = Math.max(8, percent(c.strangers_bytes, c.vram_bytes)) + '%';
    el.append(s);
  }
  el.append(c.jobs.length && !session.guest ? h('a', { href: '/job/' + refOf(c.jobs[0]), 'aria-label': words(c) }) : h('span', { role: 'img', 'aria-label': words(c) }));
  return el;
}

function box(n) {
  const used = n.cards.filter((c) => c.jobs.length).length;
  return h('li', { class: 'node', 'data-node': n.name }, h('div', null, h('a', { href: '/node/' + n.name }, n.name),
    h('span', { class: n.state === 'up' ? 'soft' : 'bad' }, n.state === 'up' ? `${used}/${n.cards.length} cards, ${n.cpus_used}/${n.cpus} CPUs` : n.state)),
  n.state === 'up' ? null : h('div', { class: 'soft' }, n.reason),
  n.cards.length ? h('ul', { class: 'cards', 'aria-label': 'Cards of ' + n.name }, n.cards.map(card)) : null);
}

export function now(view) {
  const sum = h('p', { id: 'sum' }), grid = h('ul', { class: 'grid', id: 'grid', 'aria-label': 'Nodes' }), key = h('div', { class: 'tools', id: 'key' });
  view.append(h('h1', null, 'Now'), sum, key, grid);
  const shown = new Map(); // node by name: what was drawn, and where
  function draw() {
    let cards = 0, used = 0, busy = 0, known = 0, up = 0, waits = 0, runs = 0;
    for (const n of nodes.values()) {
      if (n.state === 'up') up++;
      for (const c of n.cards) {
        cards++;
        if (c.jobs.length) used++;
        if (c.jobs.length && c.utilization >= 0) { busy += c.utilization; known++; }
      }
    }
    for (const j of jobs.values()) { if (j.state === 'PENDING') waits++; else if (!ended(j.state)) runs++; }
    sum.textContent = `${up} of ${nodes.size} nodes up; ${used} of ${cards} cards given to jobs, ` +
      (known ? `${Math.round(busy / known)} % busy on average` : 'how busy is unknown') + `; ${runs} ${runs === 1 ? 'job runs' : 'jobs run'}, ${waits} ${waits === 1 ? 'waits' : 'wait'}`;
    for (const [name, s] of shown) if (!nodes.has(name)) { s.el.remove(); shown.delete(name); }
    for (const n of nodes.values()) {
      const s = shown.get(n.name);
      if (s && s.n === n) continue;
      const el = box(n);
      if (s) s.el.replaceWith(el); else grid.append(el);
      shown.set(n.name, { n, el });
    }
    const running = [...jobs.values()].filter((j) => !ended(j.state) && j.state !== 'PENDING').slice(0, 24);
    key.replaceChildren(...running.map((j) => h('span', null, h('span', { class: 'key ' + hue(j.job_id) }), ' ', session.guest ? j.ref : h('a', { href: '/job/' + j.ref }, j.ref), ` ${j.user} ${j.name}`)));
  }
  draw();
  return onChange(draw);
}

export function node(view, name) {
  const title = h('h1', null, 'Node ' + name), body = h('div');
  view.append(title, body);
  let drawn = null;
  function draw(ids, all) {
    const n = nodes.get(name);
    if (!n) { body.replaceChildren(h('p', { class: 'bad' }, nodes.size ? `no node ${name}` : 'loading')); return; }
    if (n === drawn && !all) return;
    drawn = n;
    title.replaceChildren(`Node ${name} `, h('span', { class: n.state === 'up' ? 'good' : 'bad', id: 'state' }, n.state));
    const path = `/v1/nodes/${encodeURIComponent(name)}/`;
    const out = n.state === 'draining' || n.state === 'drained';
    body.replaceChildren(h('div', { class: 'tools' },
      session.admin && !out ? h('button', { type: 'button', onclick: () => act(`Drain ${name}? What runs there ends by itself.`, path + 'drain', {}, true) }, 'Drain') : null,
      session.admin && out ? h('button', { type: 'button', onclick: () => act(`Put ${name} back into service?`, path + 'resume', {}) }, 'Resume') : null),
    facts([['reason', n.reason], ['drained by', n.drain_user && out ? `${n.drain_user}, ${when(n.drain_time)}` : ''], ['partitions', (n.partitions || []).join(' ')], ['features', (n.features || []).join(' ')],
      ['CPUs', `${n.cpus_used} of ${n.cpus} given`], ['memory', `${bytes(n.memory_used_bytes)} of ${bytes(n.memory_bytes)} given`], ['containment', n.containment], ['version', n.version], ['last heard of', when(n.last_seen)]]),
    h('h2', null, 'Cards'), table(['card', 'model', 'VRAM', 'given', 'used', 'strangers', 'busy', 'state', 'jobs'], n.cards.map((c) => [c.index, c.model, bytes(c.vram_bytes), bytes(c.reserved_bytes), bytes(c.used_bytes),
      bytes(c.strangers_bytes), c.utilization < 0 ? 'unknown' : c.utilization + ' %', h('span', { class: c.state === 'ok' ? '' : 'bad' }, c.state + (c.reason ? ': ' + c.reason : '')),
      c.jobs.map((id) => h('a', { href: '/job/' + refOf(id) }, refOf(id) + ' '))]), { label: 'Cards' }),
    h('h2', null, 'Jobs'), table(['job', 'name', 'user', 'state'], (n.jobs || []).map((id) => { const j = jobs.get(id); return [h('a', { href: '/job/' + refOf(id) }, refOf(id)), j?.name, j?.user, j && h('span', { class: stateClass(j.state) }, j.state)]; }), { label: 'Jobs' }));
  }
  draw();
  return onChange(draw);
}
