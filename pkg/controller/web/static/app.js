// The page: who looks, which view, and the way between them.
import { h, $, session, call, say, whileSeen } from './dom.js';
import { connect, nodes, rest } from './live.js';
import { now } from './now.js';
import { queue } from './queue.js';
import { job } from './job.js';
import { node } from './node.js';
import { me } from './me.js';
import { admin } from './admin.js';

const views = { now, queue, job, node, me, admin };
const names = { now: 'Now', queue: 'Queue', job: 'Queue', node: 'Now', me: 'Me', admin: 'Admin' };
const forGuests = ['now', 'queue'];
let leave = () => {};
// Who has two clusters open tells them by their hosts; a tunnel ends at this one.
if (!/^(localhost|[\d.]+|\[.*)$/.test(location.hostname)) $('site').textContent = location.hostname.split('.')[0];

function unknown(view) {
  view.append(h('h1', null, 'There is no such page'), h('p', null, 'Nothing is at ', h('code', null, location.pathname), '. There are ', h('a', { href: '/now' }, 'Now'), ', ', h('a', { href: '/queue' }, 'Queue'), session.guest ? '' : [', ', h('a', { href: '/me' }, 'Me'), ' and ', h('a', { href: '/admin' }, 'Admin')], '.'));
}

function path() {
  try { return decodeURIComponent(location.pathname).split('/'); } catch { return ['', 'nothing']; }
}

function show(focus) {
  leave();
  const [, name, arg, more] = path(), known = name === '' || views[name] && !more && (arg === undefined || name === 'job' || name === 'node' || arg === '');
  const which = name === '' || session.guest && known && !forGuests.includes(name) ? 'now' : name, view = $('view');
  view.replaceChildren();
  for (const a of document.querySelectorAll('nav a')) {
    if (known && a.textContent === names[which]) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
    a.hidden = session.guest && !forGuests.includes(a.getAttribute('href').slice(1));
  }
  document.title = known ? `${names[which]}${arg ? ' ' + arg : ''} - gangd` : 'no such page - gangd';
  view.className = ['now', 'queue'].includes(which) ? '' : 'page';
  leave = (known ? views[which] : unknown)(view, arg) || (() => {});
  if (focus) { view.focus(); scrollTo(0, 0); }
}

function go(to) {
  history.pushState(null, '', to);
  show(true);
}

document.addEventListener('click', (e) => {
  const a = e.target.closest('a[href^="/"]');
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  go(a.getAttribute('href'));
});
document.addEventListener('go', (e) => go(e.detail));
window.addEventListener('popstate', () => show(true));

$('goto').addEventListener('submit', (e) => {
  e.preventDefault();
  const text = $('go').value.trim();
  if (!text) return;
  $('go').value = '';
  go((nodes.has(text) ? '/node/' : '/job/') + encodeURIComponent(text));
});

const keys = [['n', 'Now', '/now'], ['q', 'Queue', '/queue'], ['m', 'Me', '/me'], ['a', 'Admin', '/admin']];
$('key-list').append(...[...keys.map(([k, name]) => [k, name]), ['/', 'find a job or a node; in the queue, filter it'], ['j k', 'up and down in the queue'], ['Enter', 'open the job'], ['o', 'unfold an array, and fold it'], ['?', 'these keys'], ['Esc', 'close what is open']].flatMap(([k, text]) => [h('dt', null, k.split(' ').map((x) => h('kbd', null, x))), h('dd', null, text)]));

document.addEventListener('keydown', (e) => {
  if (e.target.matches('input, select, textarea') || e.ctrlKey || e.metaKey || e.altKey || $('ask').open) return;
  if (e.key === '?') { e.preventDefault(); if ($('keys').open) $('keys').close(); else $('keys').showModal(); return; }
  if ($('keys').open) return;
  if (e.key === '/') { e.preventDefault(); ($('filter') || $('go')).focus(); return; }
  const to = keys.find(([k]) => k === e.key);
  if (to && (!session.guest || forGuests.includes(to[2].slice(1)))) go(to[2]);
});
$('help').addEventListener('click', () => $('keys').showModal());

async function begin() {
  try {
    Object.assign(session, await call('/whoami'));
  } catch (e) {
    $('view').replaceChildren(h('h1', null, 'gangd'), h('p', { class: 'bad' }, e.message));
    setTimeout(begin, 2000);
    return;
  }
  if (!session.user) {
    $('line').hidden = true;
    $('view').replaceChildren(h('h1', null, 'Not logged in'), h('p', null, 'Run ', h('code', null, 'gctl web'), ' where you submit jobs, and open the link that it prints. It logs you in once, for 12 hours.'));
    return;
  }
  $('who').replaceChildren(h('span', null, session.guest ? 'guest' : session.user + (session.admin ? ' (admin)' : '')),
    session.guest || !session.csrf ? '' : h('button', { type: 'button', id: 'out', onclick: async () => {
      try { await call('/logout', {}); location.assign('/'); } catch (e) { say(e.message); }
    } }, 'Log out'));
  whileSeen(connect, rest);
  show(false);
}

begin();
