// Draws each figure into its box. Colours are those of the page, in the order in which neighbours differ; from the eighth line on they are dashed.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const lengths = [[1, '1 s'], [10, '10 s'], [60, '1 min'], [600, '10 min'], [3600, '1 h'], [36000, '10 h'], [86400, '1 d'], [864000, '10 d'], [8640000, '100 d']];
const span = (s) => (s < 60 ? `${Math.round(s)} s` : s < 3600 ? `${(s / 60).toFixed(1)} min` : s < 86400 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`);
const day = (t) => new Date(t * 1000).toISOString().slice(0, 10);
function drawAll() {
  figures.forEach((f, n) => {
    const lines = f.lines.filter((l) => l.x), box = document.getElementById('plot' + n);
    if (!lines.length) { box.textContent = 'Nothing is known.'; return; }
    const first = Math.min(...lines.flatMap((l) => l.x)), last = Math.max(...lines.flatMap((l) => l.x)), length = f.unit === 'length', days = f.unit === 'day';
    const x = { time: days, distr: length ? 3 : 1 };
    if (days) x.range = () => [first - 43200, last + 43200]; // half a day around: one day alone would be three years wide
    if (length) x.range = () => [1, Math.max(10, last * 1.2)];
    const axis = { stroke: colour('soft'), grid: { stroke: colour('edge'), width: 1 }, ticks: { stroke: colour('edge'), width: 1 }, font: '12px sans-serif', labelFont: '12px sans-serif', labelSize: 20 };
    const across = { ...axis, label: f.x };
    if (length) {
      across.splits = (u, i, min, max) => lengths.map(([s]) => s).filter((s) => s >= min && s <= max);
      across.filter = (u, splits) => splits; // all of them: uPlot would leave out what is no power of ten
      across.values = (u, splits) => splits.map((s) => lengths.find(([k]) => k === s)[1]);
    }
    if (days) {
      across.splits = () => { const every = 86400 * Math.max(1, Math.ceil((last - first) / 86400 / Math.max(2, box.clientWidth / 88))), out = []; for (let t = first; t <= last; t += every) out.push(t); return out; };
      across.values = (u, splits) => splits.map((t) => day(t).slice(5));
    }
    box.replaceChildren();
    new uPlot({
      width: box.clientWidth, height: 260, tzDate: (t) => uPlot.tzDate(new Date(t * 1e3), 'Etc/UTC'),
      scales: { x, y: { range: (u, min, max) => [0, f.whole ? 100 : Math.max(max, 1e-9) * 1.05] } },
      axes: [across, { ...axis, label: f.y, size: 64 }],
      series: [{ label: f.x.split(',')[0], value: (u, v) => (v === null || v === undefined ? '' : length ? span(v) : days ? day(v) : v) }].concat(lines.map((l, i) => ({
        label: l.name, stroke: colour('h' + i % 7), width: 1.5, spanGaps: true, dash: i < 7 ? [] : [8, 4], points: { show: l.x.length < 40, size: 5, fill: colour('h' + i % 7) },
      }))),
    }, uPlot.join(lines.map((l) => [l.x, l.y])), box);
  });
}
drawAll();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
let sized = 0;
addEventListener('resize', () => { clearTimeout(sized); sized = setTimeout(drawAll, 200); });
