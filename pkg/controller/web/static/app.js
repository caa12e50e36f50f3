// The page: who looks, which view, and the way between them.
import { h, $, session, call, say } from './dom.js';
import { connect, jobs, nodes } from './live.js';
import { queue } from './queue.js';
import { now, node } from './cluster.js';
import { job } from './job.js';
import { me, admin } from './people.js';

const views = { now, queue, job, node, me, admin };
const forGuests = ['now', 'queue'];
let leave = () => {};

function show(focus) {
  leave();
  const [, name, arg] = decodeURIComponent(location.pathname).split('/');
  const which = views[name] && (!session.guest || forGuests.includes(name)) ? name : 'now';
  const view = $('view');
  view.replaceChildren();
  for (const a of document.querySelectorAll('nav a')) {
    if (a.getAttribute('href') === '/' + which) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
    a.hidden = session.guest && !forGuests.includes(a.getAttribute('href').slice(1));
  }
  document.title = `${which}${arg ? ' ' + arg : ''} - gangd`;
  leave = views[which](view, arg) || (() => {});
  if (focus) view.focus();
}

function go(path) {
  history.pushState(null, '', path);
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
  go(nodes.has(text) ? '/node/' + text : '/job/' + encodeURIComponent(text));
});

document.addEventListener('keydown', (e) => {
  if (e.target.matches('input, select, textarea') || e.ctrlKey || e.metaKey || e.altKey || $('ask').open) return;
  if (e.key === '/') { e.preventDefault(); ($('filter') || $('go')).focus(); return; }
  const to = { n: '/now', q: '/queue', m: '/me', a: '/admin' }[e.key];
  if (to && !session.guest) go(to);
});

async function begin() {
  try {
    Object.assign(session, await call('/whoami'));
  } catch (e) {
    $('view').replaceChildren(h('h1', null, 'gangd'), h('p', { class: 'bad' }, e.message));
    setTimeout(begin, 2000);
    return;
  }
  if (!session.user) {
    $('line').textContent = '';
    $('view').replaceChildren(h('h1', null, 'Not logged in'), h('p', null, 'Run ', h('code', null, 'gctl web'), ' where you submit jobs, and open the link that it prints. It logs you in once, for 12 hours.'));
    return;
  }
  $('who').replaceChildren(session.guest ? 'guest' : session.user + (session.admin ? ' (admin)' : ''),
    session.guest || !session.csrf ? '' : h('button', { type: 'button', id: 'out', onclick: async () => {
      try { await call('/logout', {}); location.assign('/'); } catch (e) { say(e.message); }
    } }, 'Log out'));
  connect();
  show(false);
}

begin();
export { jobs };
