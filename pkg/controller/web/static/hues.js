// Which of the seven colours a running job has. It keeps it while it runs; those beside it on its nodes have others.
const hues = 7;
let of = new Map();

// paint gives every job of these nodes, in the order in which they are drawn, its colour.
export function paint(list) {
  const places = []; // of jobs, one after the other as they are drawn
  for (const n of list) for (const c of n.cards) if (c.jobs.length && places.at(-1) !== c.jobs[0]) places.push(c.jobs[0]);
  const beside = new Map();
  places.forEach((id, i) => {
    if (!beside.has(id)) beside.set(id, new Set());
    for (const k of [i - 2, i - 1, i + 1, i + 2]) if (k >= 0 && k < places.length && places[k] !== id) beside.get(id).add(places[k]);
  });
  const now = new Map(), used = Array(hues).fill(0);
  for (const id of beside.keys()) if (of.has(id)) { now.set(id, of.get(id)); used[of.get(id)]++; }
  for (const [id, near] of beside) {
    if (now.has(id)) continue;
    const taken = new Set([...near].map((n) => now.get(n)));
    let best = -1;
    for (let k = 0; k < hues; k++) if (!taken.has(k) && (best < 0 || used[k] < used[best])) best = k;
    if (best < 0) best = used.indexOf(Math.min(...used));
    now.set(id, best);
    used[best]++;
  }
  of = now;
}

export const hueOf = (id) => `var(--h${of.get(id) ?? 0})`;
