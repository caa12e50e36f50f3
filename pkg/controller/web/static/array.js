// A page of an array: how many elements do what, those that failed first.
import { h, session, lines, act, mark, meter, box, head2, facts, table, keep, nodeLink, listed } from './dom.js';
import { jobs, arrays, order, onChange } from './live.js';
import { arrayParts, arrayWords, counts } from './queue.js';
import { stops_ } from './job.js';
import { ago, clock, count, markOf, ranges, reasonWords, rough, seconds, soon, stateWords } from './words.js';

const most = 500; // rows of one kind that are listed one by one

export function array(view, first) {
  const id = first.array_job_id, head = h('section', { class: 'box head', id: 'array-head' }), bad = h('section', { class: 'box', id: 'array-bad', hidden: true }), runs = h('section', { class: 'box', id: 'array-runs', hidden: true }), rest = h('section', { class: 'box', id: 'array-rest' }), asked = box('What was asked');
  view.append(head, h('div', { class: 'two wide-left' }, h('div', null, bad, runs, rest), h('div', null, asked)));
  document.title = `${id} ${first.name} - gangd`;
  let past = new Map(), over = false;

  // Elements that have left memory are in history alone.
  async function older() {
    try {
      const all = await lines('/v1/history', { refs: [String(id)] });
      if (over) return;
      past = new Map(all.map(({ job: j }) => [j.job_id, { ...j, ref: `${id}_${j.array_index}`, array: id, start_time: seconds(j.start_time), end_time: seconds(j.end_time), submit_time: seconds(j.submit_time), nodes: (j.nodes || []).join(',') }]));
      draw();
    } catch { /* what is in memory is shown all the same */ }
  }

  function draw() {
    const known = new Map(past);
    for (const n of arrays.get(id) || []) if (jobs.has(n)) known.set(n, jobs.get(n));
    const list = [...known.values()].sort((a, b) => Number(a.array_index) - Number(b.array_index));
    if (!list.length) return;
    const n = counts(list), by = (m) => list.filter((j) => markOf(j) === m), now = Date.now() / 1000, live = n.runs + n.waits + n.held;
    const mine = session.admin || session.uid === first.uid;
    const next = list.map((j) => order.starts.get(j.job_id)).filter((x) => x?.at).sort((a, b) => a.at - b.at)[0];
    head.className = 'box head ' + (n.runs ? 'run' : live ? 'wait' : n.bad ? 'bad' : 'soft');
    keep(head, JSON.stringify([n, Math.floor(now / 10), next]), () => [
      h('div', { class: 'row' }, h('h1', null, `${id}_[${ranges(list.map((j) => Number(j.array_index)))}] ${first.name}`), h('span', { class: 'soft', id: 'state' }, live ? [mark(n.runs ? 'runs' : 'waits'), n.runs ? 'runs' : 'waits'] : [mark(n.bad ? 'trouble' : 'over'), 'has ended']), h('span', { class: 'grow' }),
        h('span', { class: 'tools', id: 'job-tools' }, mine && n.waits ? h('button', { type: 'button', onclick: () => act({ question: `Hold the ${count(n.waits, 'element')} of ${id} that wait?`, says: 'Those that run go on.', yes: 'Hold them' }, '/v1/hold', { refs: [String(id)] }) }, 'Hold') : '', mine && n.held ? h('button', { type: 'button', onclick: () => act({ question: `Release the held elements of ${id}?`, yes: 'Release them' }, '/v1/release', { refs: [String(id)] }) }, 'Release') : '',
          mine && live ? h('button', { type: 'button', id: 'do-cancel', onclick: () => act({ question: `Cancel array ${id}, ${first.name} (${count(live, 'element')})?`, says: `${n.waits + n.held ? `${n.waits + n.held} that wait give up their places. ` : ''}${n.runs ? `${n.runs} that run: ${stops_(first).replace('It gets', 'each gets')}` : ''}`, yes: 'Cancel the array', no: 'Keep it', harm: true }, '/v1/cancel', { refs: [String(id)] }) }, 'Cancel') : '')),
      meter(arrayParts(n), `${n.done} done, ${n.runs} run, ${n.bad} failed, ${n.waits + n.held} wait`),
      h('p', { id: 'array-counts' }, h('b', null, count(n.total, 'element')), ': ', arrayWords(n), first.array_limit ? `; at most ${first.array_limit} at once` : '', `; ${first.user}${first.account ? ', ' + first.account : ''}`, next && n.waits ? `; the next starts about ${next.at - now < 60 ? 'now' : soon(next.at)}` : ''),
    ]);
    const link = (j) => h('a', { href: '/job/' + j.ref }, j.ref), failed = by('trouble'), running = by('runs');
    bad.hidden = !failed.length;
    keep(bad, JSON.stringify(failed.map((j) => [j.ref, j.state])), () => [head2(`Failed: ${failed.length}`, ''), table('Elements that failed', ['element', 'how it ended', 'when|', 'ran|'], failed.slice(0, most).map((j) => [link(j), h('span', { class: 'bad' }, mark('trouble'), stateWords(j), j.verdict ? `: ${j.verdict}` : ''), clock(j.end_time), j.start_time ? rough(j.end_time - j.start_time) : '–'])),
      h('p', { class: 's' }, h('code', null, `gctl rerun --failed ${id}`), ' runs these again.')]);
    runs.hidden = !running.length;
    keep(runs, JSON.stringify([running.map((j) => [j.ref, j.state]), Math.floor(now / 15)]), () => [h('h2', null, `Running: ${running.length}`), table('Elements that run', ['element', 'on', 'for|', 'left|'], running.slice(0, most).map((j) => [link(j), listed(j.nodes.split(',').filter(Boolean), nodeLink), rough(now - j.start_time), j.time_limit_seconds ? rough(Math.max(0, j.start_time + j.time_limit_seconds - now)) : '–']))]);
    const kinds = new Map();
    for (const j of list) { const m = markOf(j); if (m === 'trouble' || m === 'runs') continue; const k = m === 'over' ? stateWords(j) : m === 'held' ? 'held' : 'wait: ' + reasonWords(j.reason); if (!kinds.has(k)) kinds.set(k, { m, list: [] }); kinds.get(k).list.push(j); }
    rest.hidden = !kinds.size;
    keep(rest, JSON.stringify([...kinds].map(([k, v]) => [k, v.list.length])), () => [h('h2', null, 'The others'), table('Other elements', ['what', 'how many|', 'which'], [...kinds].map(([k, v]) => [[mark(v.m), k], v.list.length, v.list.length <= 12 ? listed(v.list, link) : `${id}_[${ranges(v.list.map((j) => Number(j.array_index)))}]`]))]);
  }
  asked.append(facts([['submitted', `${clock(seconds(first.submit_time))} (${ago(seconds(first.submit_time))})`], ['of each element', `${count(first.size, 'rank')}${first.gpus_per_rank ? `, ${count(first.gpus_per_rank, 'card')} a rank` : ''}`], ['time limit', first.time_limit_seconds ? rough(first.time_limit_seconds) : 'none'], ['partition', first.partition], ['account', first.account], ['command', first.command && h('code', null, first.command)], ['directory', h('code', null, first.work_dir)], ['output', first.std_out && h('code', null, first.std_out)]]));
  draw();
  older();
  const clockwork = setInterval(draw, 5000), stop = onChange((told) => { if (told.all || told.order || [...told.jobs].some((n) => arrays.get(id)?.has(n))) draw(); });
  return () => { over = true; stop(); clearInterval(clockwork); };
}
