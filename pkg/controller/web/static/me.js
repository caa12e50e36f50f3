// Me: what I may use, what I used, what of it was wasted, and what to ask for next time.
import { h, session, call, lines, head2, table, mark, meter, keep, jobLink, empty, say } from './dom.js';
import { jobs, order, onChange } from './live.js';
import { days } from './charts.js';
import { arrayWords, counts, refOf } from './queue.js';
import { causeWords, clock, count, ended, hours, markOf, percent, reasonWords, rough, seconds, soon, stateWords, toneOf } from './words.js';

const dayOf = (back) => new Date(Date.now() - back * 86400e3).toISOString().slice(0, 10);
export const bar = (name, v, most, text, kind) => h('div', null, h('span', { class: 'cut', title: name }, name), meter([[most ? 100 * v / most : 0, kind]], text), h('span', { class: 'r' }, text));

// grouped gives jobs, and arrays as one.
export function grouped(list) {
  const out = [], of = new Map();
  for (const j of list) {
    if (!j.array) { out.push({ j, all: [j] }); continue; }
    if (!of.has(j.array)) { const a = { j, all: [], array: j.array }; of.set(j.array, a); out.push(a); }
    of.get(j.array).all.push(j);
  }
  return out;
}

export function me(view) {
  const says = h('span', { class: 'soft', id: 'mine-says' }), used = h('section', { class: 'box' }), chart = h('div', { id: 'days' }), mine = h('section', { class: 'box', id: 'mine-now' }), past = h('section', { class: 'box', id: 'used' }, h('h2', null, 'Ended in the last 7 days'), h('p', { class: 'soft' }, 'loading'));
  const caps = h('section', { class: 'box', id: 'caps', hidden: true }), waste = h('section', { class: 'box', id: 'waste', hidden: true }), advice = h('section', { class: 'box', id: 'advice', hidden: true });
  used.append(head2('Card hours by day', 'full: busy; pale: held and not busy; days are of UTC'), chart);
  const out = session.csrf ? h('button', { type: 'button', class: 'only-phone', onclick: () => call('/logout', {}).then(() => location.assign('/'), (e) => say(e.message)) }, 'Log out') : '';
  view.append(h('div', { class: 'row' }, h('h1', null, session.user), says, h('span', { class: 'grow' }), out), h('div', { class: 'two wide-left' }, h('div', null, used, mine, past), h('div', null, caps, waste, advice)));
  let over = false, drawing = null;

  function draw() {
    const list = [...jobs.values()].filter((j) => j.user === session.user && !ended(j.state)), now = Date.now() / 1000;
    const place = (j) => (j.state === 'PENDING' ? order.place.get(j.job_id) ?? 1e9 : 0), runs = list.filter((j) => j.state !== 'PENDING').length;
    const next = list.map((j) => order.starts.get(j.job_id)).filter((s) => s?.at).sort((a, b) => a.at - b.at)[0];
    says.textContent = `${count(runs, 'job')} run${runs === 1 ? 's' : ''}, ${list.length - runs} wait${list.length - runs === 1 ? 's' : ''}` + (next ? `; the next starts about ${next.at - now < 60 ? 'now' : soon(next.at)}` : '');
    list.sort((a, b) => place(a) - place(b) || a.job_id - b.job_id);
    const rows = grouped(list).slice(0, 100).map(({ j, all, array }) => {
      const s = order.starts.get(j.job_id), what = array ? arrayWords(counts(all)) : j.state === 'PENDING' ? [order.place.get(j.job_id) ? `place ${order.place.get(j.job_id)}` : '', s?.at ? `${order.place.get(j.job_id) ? ', ' : ''}starts about ${s.at - now < 60 ? 'now' : soon(s.at)}` : '', order.place.get(j.job_id) || s?.at ? ': ' : '', order.whys.get(j.job_id) || reasonWords(j.reason)]
        : [stateWords(j), j.time_limit_seconds ? `, ${rough(Math.max(0, j.start_time + j.time_limit_seconds - now))} left` : ''];
      return [[jobLink({ ref: array || j.ref }, `${array ? refOf(array, all) : j.ref} ${j.name}`)], [mark(markOf(j)), what], String(all.reduce((n, x) => n + (x.cards || 0), 0)), rough(now - (j.start_time || j.submit_time))];
    });
    keep(mine, JSON.stringify([list.map((j) => [j.job_id, j.state, j.reason, place(j), order.whys.get(j.job_id)]), Math.floor(now / 30)]), () => [h('h2', null, 'Mine now'), rows.length ? table('My jobs', ['job', 'state~', 'cards|', 'ran, waited|^'], rows) : empty('Nothing of yours runs or waits.', h('code', null, 'gsubmit job.sh'), ' submits a job.')]);
  }

  async function ledger() {
    const from = dayOf(13), user = encodeURIComponent(session.user);
    const { rows } = await call(`/v1/ledger?from=${from}&by=day,cause&user=${user}`);
    if (over) return;
    const list = Array.from({ length: 14 }, (_, i) => ({ day: dayOf(13 - i), held: 0, busy: 0 })), by = new Map(list.map((d) => [d.day, d])), lost = new Map();
    let idle = 0, week = 0;
    for (const r of rows) {
      const d = by.get(r.day);
      if (d) { d.held += r.card_ms / 1000; d.busy += r.busy_card_ms / 1000; }
      if (r.day >= dayOf(6)) { week += r.card_ms / 1000; idle += r.idle_card_ms / 1000; if (r.cause && r.lost_card_ms) lost.set(r.cause, (lost.get(r.cause) || 0) + r.lost_card_ms / 1000); }
    }
    drawing?.stop();
    if (list.some((d) => d.held)) drawing = days(chart, list); else chart.replaceChildren(empty('No card was held in the last 14 days.'));
    const all = [['held, idle', idle, 'wait'], ...[...lost].sort((a, b) => b[1] - a[1]).map(([c, s]) => [causeWords(c), s, 'bad'])].filter(([, s]) => s > 0), most = Math.max(...all.map(([, s]) => s), 1);
    waste.hidden = false;
    waste.replaceChildren(h('h2', null, `Wasted in 7 days: ${hours(all.reduce((s, [, v]) => s + v, 0))} of ${hours(week)} of card time`), all.length ? h('div', { class: 'bars' }, all.map(([name, v, kind]) => bar(name, v, most, hours(v), kind))) : h('p', { class: 'soft' }, 'Nothing was.'),
      h('p', { class: 'soft s' }, 'Idle is time in which nothing ran on a held card; the others are work that did not last, less what a checkpoint saved.'));
  }

  async function limits() {
    const l = await call('/v1/limits');
    if (over) return;
    const rows = [];
    if (l.user_cards) rows.push(bar('cards of mine', l.cards_held, l.user_cards, `${l.cards_held} of ${l.user_cards}`));
    for (const a of l.accounts || []) {
      if (a.cards) rows.push(bar(`cards of ${a.name}`, a.cards_held, a.cards, `${a.cards_held} of ${a.cards}`));
      if (a.quota) rows.push(bar(`own cards of ${a.name}`, Math.min(a.cards_held, a.quota), a.quota, `${Math.min(a.cards_held, a.quota)} of ${a.quota}`));
      if (a.share_percent) rows.push(bar(`share of ${a.name}`, a.used_percent, 100, `${Math.round(a.used_percent)} of ${Math.round(a.share_percent)} %`, a.used_percent > a.share_percent ? 'wait' : ''));
    }
    caps.hidden = false;
    caps.replaceChildren(h('h2', null, 'Share and caps'), rows.length ? h('div', { class: 'bars' }, rows) : h('p', { class: 'soft' }, 'This site sets none for you.'));
  }

  async function history() {
    const all = (await lines('/v1/history', { users: [session.user], since: new Date(Date.now() - 7 * 86400e3).toISOString() })).filter((d) => ended(d.job.state));
    if (over) return;
    let total = 0;
    const told = new Map();
    for (const d of all) {
      d.cards = d.attempts.reduce((s, a) => s + a.gpu_seconds, 0);
      total += d.cards;
      for (const x of d.attempts.at(-1)?.efficiency?.advice || []) if (!told.has(x.rule) || told.get(x.rule).cards < d.cards) told.set(x.rule, { ...x, d, cards: d.cards, n: (told.get(x.rule)?.n || 0) + 1 });
    }
    const list = grouped(all.sort((a, b) => seconds(b.job.end_time) - seconds(a.job.end_time)).map((d) => ({ ...d.job, cards: d.cards, busy: d.attempts.at(-1)?.efficiency?.gpu_percent, array: d.job.array_job_id || 0, ref: d.job.array_job_id ? `${d.job.array_job_id}_${d.job.array_index}` : String(d.job.job_id) })));
    past.replaceChildren(head2('Ended in the last 7 days', ''), h('p', { class: 'soft s', id: 'week' }, `${count(all.length, 'job')}, ${hours(total)} of card time`),
      list.length ? table('My jobs of 7 days', ['job', 'how it ended~', 'card time|', 'busy|^'], list.slice(0, 10).map(({ j, all: e, array }) => [jobLink({ ref: array || j.ref }, `${array ? refOf(array, e) : j.ref} ${j.name}`), array ? arrayWords(counts(e)) : h('span', { class: toneOf(j) === 'bad' ? 'bad' : null }, mark(markOf(j)), j.verdict || stateWords(j), `, ${clock(seconds(j.end_time))}`),
        hours(e.reduce((s, x) => s + x.cards, 0)), array ? '' : percent(j.busy)])) : empty('None.'), list.length > 10 ? h('p', { class: 'soft s' }, `The last 10 of ${list.length}; `, h('code', null, 'gacct --me --since=7d'), ' has them all.') : '');
    advice.hidden = !told.size;
    advice.replaceChildren(h('h2', null, 'Advice'), h('ul', null, [...told.values()].sort((a, b) => b.cards - a.cards).slice(0, 5).map((x) => h('li', null, jobLink({ ref: String(x.d.job.job_id) }, x.d.job.name), `: ${x.text}`, x.n > 1 ? ` (and ${x.n - 1} like it)` : ''))));
  }

  draw();
  for (const [el, f] of [[chart, ledger], [caps, limits], [past, history]]) f().catch((e) => { el.hidden = false; el.replaceChildren(h('p', { class: 'bad' }, e.message)); });
  const stop = onChange((told) => { if (told.all || told.order || told.jobs.size) draw(); });
  return () => { over = true; stop(); drawing?.stop(); };
}
