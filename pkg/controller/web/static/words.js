// How figures, times and states are written. Everything that a person reads of them is made here.

const minute = 60, hour = 3600, day = 86400;

export const figure = new Intl.NumberFormat('en').format;
export const count = (n, one, more) => `${figure(n)} ${n === 1 ? one : more || one + 's'}`;
export const two = (n) => String(n).padStart(2, '0');

// span is a length of time: the two largest units of it. Seconds only where it is short.
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < minute) return `${s} s`;
  if (s < hour) return s < 10 * minute && s % minute ? `${Math.floor(s / minute)} min ${s % minute} s` : `${Math.floor(s / minute)} min`;
  if (s < day) return `${Math.floor(s / hour)} h` + (s % hour >= minute ? ` ${Math.floor(s % hour / minute)} min` : '');
  return `${Math.floor(s / day)} d` + (s % day >= hour ? ` ${Math.floor(s % day / hour)} h` : '');
}

// rough is span without what nobody reads in a list.
export function rough(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < minute) return `${s} s`;
  if (s < 3 * hour) return span(s - s % minute);
  return span(s < day ? s - s % (10 * minute) : s - s % hour);
}

export const ago = (t) => (t ? (Date.now() / 1000 - t < 1 ? 'now' : span(Date.now() / 1000 - t) + ' ago') : '–');

// seconds reads a time of JSON, 0 where there is none.
export const seconds = (t) => (!t || t.startsWith('0001') ? 0 : new Date(t).getTime() / 1000);

const date = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;

// clock is a time of today as 14:05, of any other day with its date. exact has seconds.
export function clock(t, exact) {
  if (!t) return '–';
  const d = new Date(t * 1000), text = `${two(d.getHours())}:${two(d.getMinutes())}` + (exact ? ':' + two(d.getSeconds()) : '');
  return date(d) === date(new Date()) ? text : `${date(d)} ${text}`;
}

export const iso = (t) => (t ? clockISO(new Date(t * 1000)) : '–');
const clockISO = (d) => `${date(d)} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;

// told is a text of gangd with its times as they are written here.
export const told = (text) => text.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, (s) => clock(new Date(s).getTime() / 1000, true));

// soon is when something is expected: a time within the next day, else with its day.
export function soon(t) {
  const d = new Date(t * 1000), text = `${two(d.getHours())}:${two(d.getMinutes())}`;
  return t - Date.now() / 1000 < 20 * hour ? text : `${['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][d.getDay()]} ${t - Date.now() / 1000 < 6 * day ? '' : date(d).slice(5) + ' '}${text}`;
}

export function bytes(n) {
  if (n === undefined || n === null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return `${n >= 10 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

export const percent = (v) => (v === undefined || v === null ? '–' : `${v > 0 && v < 10 ? v.toFixed(1) : Math.round(v)} %`);

// hours are those of cards, as many digits as say something.
export const hours = (s) => { const h = s / hour; return `${h >= 100 ? figure(Math.round(h)) : h >= 10 ? Math.round(h) : h ? h.toFixed(1) : 0} h`; };

export const ended = (state) => !['PENDING', 'RUNNING', 'COMPLETING', 'SUSPENDED', 'CONFIGURING', 'RESERVED'].includes(state);
export const waits = (state) => state === 'PENDING';

// mark is the shape that stands for a state beside its words: disc runs, ring waits, bars are held, diamond is trouble, square has ended.
export function markOf(j) {
  if (j.state === 'PENDING') return j.held ? 'held' : 'waits';
  if (!ended(j.state)) return 'runs';
  return j.state === 'COMPLETED' || j.state === 'CANCELLED' || j.state === 'PREEMPTED' || j.state === 'NODE_FAIL' ? 'over' : 'trouble';
}

export const toneOf = (j) => ({ held: 'soft', waits: 'wait', runs: 'run', over: 'soft', trouble: 'bad' })[markOf(j)];

const states = {
  PENDING: 'waits', RUNNING: 'runs', COMPLETING: 'is being stopped', CONFIGURING: 'is being started', RESERVED: 'is being started', SUSPENDED: 'suspended',
  COMPLETED: 'completed', CANCELLED: 'cancelled', FAILED: 'failed', TIMEOUT: 'ran into its time limit', OUT_OF_MEMORY: 'out of memory', NODE_FAIL: 'its node was lost',
  PREEMPTED: 'preempted', DEADLINE: 'missed its deadline', BOOT_FAIL: 'could not be started',
};
export const stateWords = (j) => (j.state === 'PENDING' && j.held ? 'held' : states[j.state] || j.state.toLowerCase().replaceAll('_', ' '));

// Why a job waits, in the field's word and in plain ones.
const reasons = {
  Resources: 'needs more than is free', Priority: 'others go first', JobHeldUser: 'held by its owner', JobHeldAdmin: 'held by an admin', BeginTime: 'not before its begin time',
  Dependency: 'waits for another job', DependencyNeverSatisfied: 'waits for a job that can never end as asked', JobArrayTaskLimit: 'as many of its array run as may at once', Reservation: 'waits for its reservation',
  PartitionDown: 'its partition starts nothing', PartitionInactive: 'its partition starts nothing', QOSMaxGRESPerUser: 'its owner has as many cards as one may', AssocGrpGRES: 'its account has as many cards as it may',
  NodeDown: 'a node that it ran on can not be asked', ReqNodeNotAvail: 'a node that it needs is out of service', BadConstraints: 'no node is as it asks for', None: 'not looked at yet', NotReady: 'its ranks are not ready yet',
};
export const reasonWords = (r) => reasons[r] || r;

// What kind of end an attempt had.
const causes = {
  crash: 'crashed', oom: 'out of memory', launch: 'could not be started', 'node-lost': 'its node was lost', preempted: 'preempted', requeued: 'requeued', stalled: 'stalled', 'gpu-hang': 'its cards hung', idle: 'its cards were idle',
  timeout: 'ran into its time limit', cancelled: 'cancelled', completed: 'completed', deadline: 'missed its deadline',
};
export const causeWords = (c) => causes[c] || c;
// What is nobody's fault but the job's own.
export const isOwnFault = (c) => ['crash', 'oom', 'timeout', 'stalled', 'gpu-hang', 'idle', 'launch'].includes(c);

// ranges writes numbers as 1-4,7.
export function ranges(list) {
  const out = [];
  for (const n of [...list].sort((a, b) => a - b)) {
    const last = out.at(-1);
    if (last && n === last[1] + 1) last[1] = n; else out.push([n, n]);
  }
  return out.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(',');
}

// members reads 1-4,7.
export function members(text) {
  const out = [];
  for (const part of text.split(',')) {
    const [a, b] = part.split('-').map(Number);
    for (let i = a; i <= (b ?? a); i++) out.push(i);
  }
  return text ? out : [];
}
