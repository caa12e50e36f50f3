// Now: is there room, is what is given used, what starts next, what needs a look.
import { h, $, session, call, mark, meter, empty, nodeLink, head2 } from './dom.js';
import { jobs, nodes, order, state, onChange } from './live.js';
import { paint, hueOf } from './hues.js';
import { day } from './charts.js';
import { showIdle } from './queue.js';
import { bytes, count, ended, figure, soon, span } from './words.js';

const away = (n) => n.state !== 'up' && n.state !== 'draining';
const out = (c) => c.state !== 'ok' || c.strangers_bytes > 0;
const idleBelow = 5; // percent: a card that is given and does less is held idle

// figures are of all nodes and jobs together.
function figures() {
  const f = { cards: 0, given: 0, free: 0, out: 0, nodesOut: 0, cardsOut: 0, busy: 0, known: 0, idle: 0, runs: 0, waits: 0, asked: 0, users: new Set(), soon: 0, later: 0 };
  for (const n of nodes.values()) {
    if (away(n) || n.state === 'draining') f.nodesOut++;
    for (const c of n.cards) {
      f.cards++;
      if (c.jobs.length) {
        f.given++;
        if (c.utilization >= 0) { f.known++; f.busy += c.utilization; if (c.utilization < idleBelow) f.idle++; }
      } else if (n.state !== 'up' || out(c)) {
        f.out++;
        if (n.state === 'up') f.cardsOut++;
      } else f.free++;
    }
  }
  const now = Date.now() / 1000;
  for (const j of jobs.values()) {
    if (j.state === 'PENDING') { f.waits++; f.asked += j.cards || 0; if (!order.place.has(j.job_id)) f.later++; } else if (!ended(j.state)) {
      f.runs++;
      f.users.add(j.user);
      if (j.time_limit_seconds && j.start_time + j.time_limit_seconds - now < 3600) f.soon++;
    }
  }
  return f;
}

const tile = (id, name, big, parts, says, label) => h('div', { class: 'box tile', id }, h('span', { class: 'soft' }, name), h('b', { class: 'big' }, big), meter(parts, label), h('small', { class: 'soft' }, says));

function tiles(f) {
  if (!state.told || !state.nodes) return [['cards', 'Cards'], ['busy', 'Busy of given'], ['runs', 'Running'], ['waits', 'Waiting']].map(([id, name]) => tile('tile-' + id, name, '–', [], 'loading', 'not known yet'));
  const of = (n) => 100 * n / Math.max(1, f.cards), busy = f.known ? Math.round(f.busy / f.known) : -1;
  const outs = [f.nodesOut && count(f.nodesOut, 'node'), f.cardsOut && count(f.cardsOut, 'card')].filter(Boolean).join(', ');
  return [
    tile('tile-cards', 'Cards', [h('span', null, figure(f.given), h('small', null, ' given')), ' ', h('span', null, figure(f.free), h('small', null, ' free'))], [[of(f.given)], [of(f.free), 'none'], [of(f.out), 'bad']],
      !f.cards ? nodes.size ? 'no node has a card' : 'no node has joined' : [`of ${figure(f.cards)}`, f.out || f.nodesOut ? ['; ', h('span', { class: 'bad' }, `${f.out} out: ${outs || 'of use'}`)] : '; all in service'], `${f.given} of ${f.cards} cards given, ${f.free} free, ${f.out} out of service`),
    tile('tile-busy', 'Busy of given', busy < 0 ? '–' : `${busy} %`, [[Math.max(0, busy)]], f.idle ? h('a', { href: '/queue', class: 'wait', id: 'idle', onclick: showIdle }, count(f.idle, 'held card') + ' idle') : f.given ? busy < 0 ? 'how busy they are is unknown' : 'no held card is idle' : 'no card is given', busy < 0 ? 'unknown' : `${busy} percent busy`),
    tile('tile-runs', 'Running', count(f.runs, 'job'), [[of(f.given)]], f.runs ? `of ${count(f.users.size, 'user')}; ${f.soon || 'none'} ${f.soon > 1 ? 'end' : 'ends'} within 1 h` : 'nothing runs', `${f.given} of ${f.cards} cards`),
    tile('tile-waits', 'Waiting', count(f.waits, 'job'), [[Math.min(100, 100 * (f.waits - f.later) / Math.max(1, f.waits)), 'wait'], [100 * f.later / Math.max(1, f.waits), 'none']],
      f.waits ? `${count(f.asked, 'card')} asked; ${f.waits - f.later} in order, ${f.later} later` : 'nobody waits', `${f.waits - f.later} could start, ${f.later} wait for something else`),
  ];
}

// next are the jobs that are expected to start first.
function next(el) {
  const now = Date.now() / 1000, known = [...order.starts].map(([id, s]) => ({ j: jobs.get(id), ...s })).filter((s) => s.j && s.j.state === 'PENDING' && s.at);
  known.sort((a, b) => a.at - b.at || order.place.get(a.j.job_id) - order.place.get(b.j.job_id));
  const rows = known.slice(0, 7), open = [...order.place.keys()].filter((id) => !order.starts.get(id)?.at).slice(0, Math.max(0, 7 - rows.length)).map((id) => ({ j: jobs.get(id), at: 0 })).filter((s) => s.j);
  const list = [...rows, ...open];
  el.replaceChildren(...list.length ? list.map(({ j, at, sure }) => h('div', { class: 'next' }, h('span', { class: 'soft r' }, order.place.get(j.job_id) ?? ''),
    session.guest ? h('span', { class: 'cut' }, `${j.ref} ${j.name}`) : h('a', { class: 'cut', href: '/job/' + j.ref }, `${j.ref} ${j.name}`), h('span', { class: 'soft cut' }, j.user), h('span', { class: 'r' }, j.cards ? count(j.cards, 'card') : count(j.size, 'rank')),
    h('span', { class: 'r', title: at ? sure ? 'at the latest, by the time limits of what runs' : 'a guess from time limits' : 'what runs before it has no time limit, or it needs a node that is away' }, at ? `${at - now < 60 ? 'now' : (sure ? 'by ' : 'about ') + soon(at)}` : '–'),
    h('span', { class: 'until' }, at ? h('i', { '--x': Math.min(98, Math.max(0, (at - now) / 864)).toFixed(2) }) : null)))
    : [empty(state.told && order.told ? 'Nothing waits that could start.' : 'Not known yet.')]);
}

// words say of a card what its looks say.
function words(n, c) {
  const who = c.jobs.length ? 'job ' + c.jobs.map((id) => jobs.get(id)?.ref ?? id).join(', ') : 'free';
  const busy = c.utilization < 0 ? 'use unknown' : `${c.utilization} % busy`;
  return `${n.name} card ${c.index}: ${away(n) ? n.state : c.state === 'ok' ? who : c.state + (c.reason ? ', ' + c.reason : '')}; ${bytes(c.used_bytes)} of ${bytes(c.vram_bytes)} used, ${busy}` +
    (c.strangers_bytes ? `; strangers use ${bytes(c.strangers_bytes)}` : '');
}

// gang says of a job what a person wants to know who points at one of its cards.
function gang(id) {
  const j = jobs.get(id);
  if (!j) return `job ${id}`;
  let cards = 0, busy = 0, known = 0, idle = 0, on = 0;
  for (const n of nodes.values()) {
    const mine = n.cards.filter((c) => c.jobs.includes(id));
    if (mine.length) on++;
    for (const c of mine) { cards++; if (c.utilization >= 0) { known++; busy += c.utilization; if (c.utilization < idleBelow) idle++; } }
  }
  return `${j.ref} ${j.name}, ${j.user}: ${count(cards, 'card')} on ${count(on, 'node')}` + (known ? `, ${Math.round(busy / known)} % busy` : '') + (idle ? `, ${idle} idle` : '') +
    (j.start_time ? `, runs for ${span(Date.now() / 1000 - j.start_time)}` : '');
}

// in steps: what nobody sees is not drawn again.
const steps = (percent) => 5 * Math.round(percent / 5);

function look(el, n, c) {
  const given = c.jobs.length > 0, idle = given && c.utilization >= 0 && c.utilization < idleBelow;
  const cls = 'c' + (away(n) ? ' off' : out(c) ? ' hatch' : '') + (given ? ' given' : '') + (idle ? ' idle' : '') + (c.jobs.length > 1 ? ' several' : '');
  if (el.className !== cls) el.className = cls;
  const v = String(c.vram_bytes ? Math.ceil(Math.min(100, 100 * (c.used_bytes + c.strangers_bytes) / c.vram_bytes) / 2) * 2 : 0), b = String(given ? c.utilization < 0 ? 0.5 : +(0.15 + steps(c.utilization) * 0.0075).toFixed(2) : 0.25);
  if (el.v !== v) { el.v = v; el.style.setProperty('--v', v); }
  if (el.b !== b) { el.b = b; el.style.setProperty('--b', b); }
}

// box is a node: its name, how it is, and its cards, those of one job together.
function box(n) {
  const el = h('li', { class: 'node' + (trouble(n) ? ' t' : ''), 'data-node': n.name }), segs = [];
  for (const c of n.cards) {
    const key = c.jobs.join(), last = segs.at(-1);
    if (last && last.key === key && last.out === out(c)) last.cards.push(c); else segs.push({ key, out: out(c), cards: [c] });
  }
  el.says = h('span', { class: 's cut' });
  el.at = [];
  const cards = segs.map((s) => {
    const id = s.cards[0].jobs[0], j = jobs.get(id), job = id !== undefined;
    const seg = h(job && !session.guest ? 'a' : 'span', { class: 'seg', href: job && !session.guest ? '/job/' + (j?.ref ?? id) : null, 'aria-label': job && !session.guest ? `Job ${j ? `${j.ref} ${j.name}` : id}: ${count(s.cards.length, 'card')} of ${n.name}` : null, '--j': job ? hueOf(id) : null, '--k': s.cards.length },
      h('b', { 'aria-hidden': 'true' }, job && (s.cards.length > 1 || n.cards.length < 5) ? (j?.ref ?? id) + (s.cards[0].jobs.length > 1 ? ` +${s.cards[0].jobs.length - 1}` : '') : ''), s.cards.map((c) => { const bit = h('span'); el.at[c.index] = bit; bit.index = c.index; look(bit, n, c); return bit; }));
    seg.job = job ? id : undefined;
    return seg;
  });
  el.append(h('p', null, h('b', null, nodeLink(n.name)), el.says), h('div', { class: 'cards', role: 'group', 'aria-label': 'Cards of ' + n.name }, cards));
  update(el, n);
  return el;
}

const trouble = (n) => n.state !== 'up' || n.cards.some(out);
const worst = (n) => ({ lost: 0, unknown: 0, suspect: 1, drained: 2, draining: 3 })[n.state] ?? (trouble(n) ? 4 : 9);

// update changes what is different of figures alone.
function update(el, n) {
  let busy = 0, known = 0, used = 0;
  for (const c of n.cards) {
    if (el.at[c.index]) look(el.at[c.index], n, c);
    if (c.jobs.length) { used++; if (c.utilization >= 0) { known++; busy += c.utilization; } }
  }
  const bad = n.cards.find(out);
  const says = n.state !== 'up' ? [h('span', { class: 'bad' }, n.state), n.reason ? ': ' + n.reason : ''] : bad ? [h('span', { class: 'bad' }, bad.strangers_bytes ? 'stranger' : `card ${bad.index} out`), bad.reason ? ': ' + bad.reason : bad.strangers_bytes ? ` holds ${bytes(bad.strangers_bytes)} on card ${bad.index}` : '']
    : [h('span', { class: 'soft' }, !n.cards.length ? `${n.cpus_used} of ${n.cpus} CPUs` : used ? known ? `${Math.round(busy / known)} % busy` : `${used} given` : 'free')];
  const text = says.map((s) => s.textContent ?? s).join('');
  if (el.told !== text) { el.told = text; el.says.replaceChildren(...says.filter(Boolean)); el.says.title = text; }
}

// shape is all of a node that says which elements there are; what else is different are figures.
const shape = (n) => [n.state, n.cpus, n.partitions?.join(), n.cards.map((c) => c.jobs.join('+') + (out(c) ? '!' : '')).join()].join(' ');

const byName = new Intl.Collator('en', { numeric: true });

// groups gives the nodes by the smallest partition that each is in: a site's `all` says nothing.
function groups() {
  const size = new Map();
  for (const n of nodes.values()) for (const p of n.partitions || []) size.set(p, (size.get(p) || 0) + 1);
  const by = new Map();
  for (const n of nodes.values()) {
    const p = [...n.partitions || []].sort((a, b) => size.get(a) - size.get(b))[0] || 'no partition';
    if (!by.has(p)) by.set(p, []);
    by.get(p).push(n);
  }
  for (const list of by.values()) list.sort((a, b) => worst(a) - worst(b) || byName.compare(a.name, b.name));
  return [...by].sort(([, a], [, b]) => Math.min(...a.map(worst)) - Math.min(...b.map(worst)) || b.length - a.length);
}

// slice is how long the grid may draw in one frame, in milliseconds, dozens how many nodes it shows at once, and most how many it changes.
const slice = 6, dozens = 24, most = 64;

export function now(view) {
  const top = h('div', { class: 'tiles', id: 'sum' }), band = h('div', { id: 'day' }), list = h('div', { id: 'next' }), grid = h('div', { id: 'grid' });
  const daySaid = h('small', { class: 'soft', id: 'day-said' }), dayRest = 'dashed: usable; pale: given; full: busy; below: waited for';
  const said = h('p', { class: 's soft', id: 'card-said', 'aria-live': 'polite' }), rest = 'Point at a card to see whose it is; its gang lights on all nodes. Nodes in trouble come first.';
  const key = (cls, text) => h('small', { class: 'key soft' }, h('span', { class: 'c ' + cls, '--v': 70, '--b': 0.8 }), text);
  daySaid.textContent = dayRest;
  said.textContent = rest;
  view.append(h('h1', { class: 'vh' }, 'Now'), top, h('div', { class: 'two wide-left even' },
    h('section', { class: 'box' }, h('div', { class: 'row titled' }, h('h2', null, 'Last 24 hours, in cards'), h('span', { class: 'grow' }), daySaid), band),
    h('section', { class: 'box' }, head2('Next to start', 'place, when; the line is the next 24 h'), list)),
  h('section', null, h('div', { class: 'row keys' }, h('h2', null, 'Nodes'), h('span', { class: 'row keys', id: 'legend' }, key('', 'free'), key('given', 'given: height is VRAM used, shade is busy'), key('given idle', 'held, idle'), key('hatch', 'out of service, or a stranger'), key('off', 'node away'))), said, grid));

  const drawn = new Map(); // nodes by name: {el, shape}
  const moved = new Set(); // names of nodes whose figures did
  let layout = null, building = [], fresh = [], due = false, over = false, drawing = null;

  // Nodes are drawn a slice at a time: five hundred at once would hold a browser up. New ones come to the page by the dozen, as it draws all of
  // what is in sight again for each.
  function work() {
    if (due || over) return;
    due = true;
    if (building.length) setTimeout(build); else requestAnimationFrame(change);
  }

  // build makes nodes out of sight, which asks for no frame; between two dozens there is one.
  function build() {
    if (over) return;
    const until = performance.now() + slice;
    while (building.length && fresh.length < dozens && performance.now() < until) {
      const [row, name] = building.shift(), n = nodes.get(name);
      if (!n) continue;
      const el = box(n);
      drawn.set(name, { el, shape: shape(n) });
      fresh.push([row, el]);
    }
    const whole = fresh.length >= dozens || !building.length;
    if (whole) for (const [row, el] of fresh.splice(0)) row.append(el);
    due = false;
    if (whole && (building.length || moved.size)) { due = true; requestAnimationFrame(() => { due = false; work(); }); } else if (!whole) work();
  }

  // change draws figures that moved.
  function change() {
    due = false;
    const until = performance.now() + slice;
    let n = 0;
    for (const name of moved) {
      if (n++ >= most || performance.now() >= until) break;
      moved.delete(name);
      if (nodes.has(name) && drawn.has(name)) place(nodes.get(name));
    }
    if (moved.size) work();
  }

  function place(n) {
    const is = drawn.get(n.name), now = shape(n);
    if (!is) return; // it is built as it is then
    if (is.shape === now) { update(is.el, n); return; }
    const el = box(n), unseen = fresh.find((f) => f[1] === is.el);
    if (unseen) unseen[1] = el; else is.el.replaceWith(el);
    drawn.set(n.name, { el, shape: now });
  }

  function arrange() {
    const all = groups(), want = state.nodes + all.map(([p, list]) => p + ':' + list.map((n) => n.name + worst(n))).join(' ');
    paint(all.flatMap(([, l]) => l));
    if (want === layout) return false;
    layout = want;
    building = [];
    fresh = [];
    moved.clear();
    grid.className = nodes.size > 60 ? 'dense' : nodes.size < 8 ? 'few' : '';
    grid.replaceChildren();
    drawn.clear();
    for (const el of [$('legend'), said]) el.hidden = !nodes.size;
    if (!nodes.size) grid.append(empty(state.nodes ? 'No node has joined yet.' : 'Loading.', state.nodes && ['On the controller: ', h('code', null, 'gangd token new'), '; on the node: ', h('code', null, 'gnoded join'), '.']));
    for (const [p, list] of all) {
      const most = Math.max(1, ...list.map((n) => n.cards.length)), row = h('ul', { class: 'nodes', '--n': most, 'aria-label': 'Nodes of ' + p }), title = h('p', { class: 'part', 'data-part': p });
      grid.append(title, row);
      building.push(...list.map((n) => [row, n.name]));
    }
    return true;
  }

  function titles() {
    for (const [p, list] of groups()) {
      const el = [...grid.querySelectorAll('.part')].find((x) => x.dataset.part === p);
      if (!el) continue;
      const cards = list.flatMap((n) => (n.state === 'up' ? n.cards : [])), given = cards.filter((c) => c.jobs.length).length, idle = cards.filter((c) => c.jobs.length && c.utilization >= 0 && c.utilization < idleBelow).length, bad = list.filter(trouble).length;
      el.replaceChildren(h('b', null, p), h('span', { class: 'soft' }, `${count(list.length, 'node')}; ${figure(given)} of ${figure(cards.length)} cards given, ${figure(cards.filter((c) => !c.jobs.length && !out(c)).length)} free`),
        idle ? h('span', { class: 'wait' }, count(idle, 'held card') + ' idle') : '', bad ? h('span', { class: 'bad' }, mark('trouble'), bad === 1 ? '1 node needs a look' : `${bad} nodes need a look`) : '');
    }
  }

  let slow = 0, tiled = 0;
  function draw(told) {
    const whole = !told || told.all || told.nodes.size > 0, other = whole && arrange(), at = performance.now();
    if (!other) {
      // What an event changed comes first; figures that moved are drawn when there is time.
      const all = told?.all ? [...nodes.keys()] : [];
      for (const name of [...told?.nodes || [], ...all]) if (nodes.has(name)) place(nodes.get(name));
      for (const name of told?.used || []) if (!told.nodes.has(name)) moved.add(name);
    }
    if (building.length || moved.size) work();
    if (whole || at - tiled > 250) { tiled = at; top.replaceChildren(...tiles(figures())); }
    if (!told || told.all || told.order || told.jobs.size) next(list);
    if (other || at - slow > 900) { slow = at; titles(); }
  }

  const light = (e) => {
    const seg = e.type === 'pointerleave' || e.type === 'focusout' ? null : e.target.closest?.('.seg');
    const id = seg?.job;
    for (const x of grid.querySelectorAll('.on')) x.classList.remove('on');
    grid.classList.toggle('lit', id !== undefined);
    if (id !== undefined) for (const x of grid.querySelectorAll('.seg')) if (x.job === id) { x.classList.add('on'); x.closest('.node').classList.add('on'); }
    const bit = e.target.closest?.('.c'), li = seg?.closest('.node'), n = li && nodes.get(li.dataset.node), c = n && bit && n.cards.find((x) => x.index === bit.index);
    said.textContent = id !== undefined ? gang(id) + (c ? `; ${words(n, c).split('; ').slice(1).join('; ')} on ${n.name} card ${c.index}` : '') : c ? words(n, c) : rest;
  };
  for (const t of ['pointerover', 'focusin', 'focusout', 'pointerleave']) grid.addEventListener(t, light);

  async function past() {
    try {
      const d = await call('/v1/day');
      if (over) return;
      drawing?.stop();
      if (!d.usable.some((v) => v)) { band.replaceChildren(empty('No figures yet.', 'A point is kept every few minutes; the first comes soon.')); return; }
      drawing = day(band, d, (text) => { daySaid.textContent = text || dayRest; });
    } catch (e) {
      if (!drawing) band.replaceChildren(empty(e.message));
    }
  }
  draw(null);
  past();
  const clock = setInterval(() => { if (!document.hidden) past(); }, 60000);
  const stop = onChange(draw);
  return () => { over = true; stop(); clearInterval(clock); drawing?.stop(); };
}
