// Pointer and keys over the lattice: the point under the cursor, every element it touches lit in the pictures of the tensors.
const NAMES = { '-1': 'skipped by its condition', '-2': 'outside', '-3': 'depends on data' };

function enliven(body, view) {
  const data = view.data;
  const box = body.querySelector('[data-lattice]');
  if (box === null || !data.layout) return;
  const layout = data.layout;
  const width = data.axes.length, columns = width + data.columns.length;
  const bytes = view.points;
  const at = (point, column) => bytes.getInt32(4 * (point * columns + column), true);
  const readout = body.querySelector('[data-readout]');
  box.style.position = 'relative';
  box.style.width = `${box.querySelector('svg')?.getAttribute('width') ?? layout.width}px`; // with arrows it is wider than the lattice
  if (data.canvas) box.replaceChildren(paint(data, layout, bytes, columns, width));
  const cover = svgElement('svg', { width: layout.width, height: layout.height, viewBox: `0 0 ${layout.width} ${layout.height}`, 'aria-hidden': 'true' });
  cover.style.cssText = 'position:absolute;left:0;top:0;pointer-events:none;overflow:visible';
  const ring = svgElement('circle', { class: 'tcw-cursor', r: Math.max(3, layout.step * 0.48), fill: 'none', stroke: 'currentColor', 'stroke-width': 2, visibility: 'hidden' });
  cover.append(ring);
  box.append(cover);
  let cell = null, asked = 0;

  const extents = [layout.columns, layout.rows, layout.panels];
  const index = ([c, r, p]) => {
    // points are in row-major order of the shown axes
    const place = [c, r, p].slice(0, width);
    return place.reduce((n, v, k) => n * extents[k] + v, 0);
  };
  function show(where) {
    cell = where;
    for (const lit of body.querySelectorAll('[data-lit]')) lit.remove();
    if (where === null) { ring.setAttribute('visibility', 'hidden'); readout.textContent = ''; return; }
    const [c, r, p] = where;
    const x = layout.left + (p % layout.across) * layout.panelWidth + (c + 0.5) * layout.step;
    const y = layout.top + Math.floor(p / layout.across) * layout.panelHeight + (r + 0.5) * layout.step;
    ring.setAttribute('cx', x); ring.setAttribute('cy', y); ring.setAttribute('visibility', 'visible');
    const point = index(where);
    const values = data.axes.map((axis, k) => axis[2] + where[k] * data.strides[k]);
    const name = data.axes.map((axis, k) => `${axis[0]} = ${values[k]}`).concat(Object.entries(data.fixed).map(([n, v]) => `${n} = ${v}`)).join(', ');
    if (data.columns.length === data.touches.length) tell(name, data.touches.map((_, k) => at(point, width + k)));
    else {
      const mine = ++asked;
      readout.textContent = name;
      view.ask({ point: values }).then(numbers => { if (mine === asked && numbers !== null) tell(name, numbers); });
    }
  }
  function tell(name, numbers) {
    const parts = data.touches.map(([text, tensor, write], k) => {
      const n = numbers[k];
      if (n >= 0) light(tensor, n, write);
      return `${write ? 'writes' : 'reads'} ${n >= 0 ? elementName(tensor, n) : `${text}: ${NAMES[n] ?? '?'}`}`;
    });
    readout.textContent = `${name}: ${parts.join('; ')}`;
  }
  function elementName(tensor, number) {
    const [origin, shape] = data.tensors[tensor];
    const place = [];
    for (let k = shape.length - 1; k >= 0; k--) { place.unshift((number % shape[k]) + origin[k]); number = Math.floor(number / shape[k]); }
    return `${tensor}(${place.join(', ')})`;
  }
  function light(tensor, number, write) {
    const picture = body.querySelector(`svg[data-tensor="${CSS.escape(tensor)}"]`);
    if (picture === null) return;
    const step = Number(picture.dataset.step), down = Number(picture.dataset.down), across = Number(picture.dataset.columns);
    const size = Math.max(down, 5), x = (number % across) * step + (step - size) / 2, y = Math.floor(number / across) * down + (down - size) / 2;
    const lit = svgElement('g', { 'data-lit': number });
    lit.append(svgElement('rect', { x, y, width: size, height: size, fill: 'none', stroke: 'currentColor', 'stroke-width': 2.5 }));
    lit.append(svgElement('rect', { x: x + 2, y: y + 2, width: Math.max(1, size - 4), height: Math.max(1, size - 4), fill: 'none', stroke: 'var(--jp-layout-color1, #fff)', 'stroke-width': 1, 'stroke-dasharray': write ? '' : '2 1.5' }));
    picture.append(lit);
  }
  function under(event) {
    const bounds = box.getBoundingClientRect();
    const x = event.clientX - bounds.left - layout.left, y = event.clientY - bounds.top - layout.top;
    const pc = Math.floor(x / layout.panelWidth), pr = Math.floor(y / layout.panelHeight);
    const panel = pr * layout.across + pc;
    const c = Math.floor((x - pc * layout.panelWidth) / layout.step), r = Math.floor((y - pr * layout.panelHeight) / layout.step);
    const inside = pc >= 0 && pc < layout.across && pr >= 0 && panel < layout.panels && c >= 0 && c < layout.columns && r >= 0 && r < layout.rows;
    return inside ? [c, r, panel] : null;
  }
  box.addEventListener('pointermove', event => {
    if (event.movementX === 0 && event.movementY === 0) return; // the page moved, not the pointer
    const found = under(event); if (String(found) !== String(cell)) show(found); });
  box.addEventListener('pointerleave', () => { if (document.activeElement !== box) show(null); });
  box.addEventListener('focus', () => { if (cell === null) show([0, 0, 0]); });
  box.ownKeys = event => {
    const moves = { ArrowRight: [1, 0, 0], ArrowLeft: [-1, 0, 0], ArrowDown: [0, 1, 0], ArrowUp: [0, -1, 0], PageDown: [0, 0, 1], PageUp: [0, 0, -1] };
    const from = cell ?? [0, 0, 0];
    let to = null;
    if (event.key in moves) to = from.map((v, k) => Math.min(extents[k] - 1, Math.max(0, v + moves[event.key][k])));
    else if (event.key === 'Home') to = [0, from[1], from[2]];
    else if (event.key === 'End') to = [extents[0] - 1, from[1], from[2]];
    else return;
    event.preventDefault();
    show(to);
  };
}

/** Many points: a block of pixels for each, in the colour of its element. */
function paint(data, layout, bytes, columns, width) {
  const scale = 1;
  const canvas = element('canvas', { width: Math.ceil(layout.width), height: Math.ceil(layout.height), 'aria-hidden': 'true', 'data-points': data.count });
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const palette = new Uint32Array(360);
  for (let hue = 0; hue < 360; hue++) palette[hue] = hsl(hue, 0.62, 0.52);
  const grey = 0x88888888;
  const column = width + data.coloured;
  const dot = Math.max(1, layout.step < 5 ? Math.ceil(layout.step) : Math.floor(layout.step * 0.8)); // gaps between small dots make patterns of their own
  const strides = data.strides, lows = data.axes.map(axis => axis[2]);
  for (let n = 0; n < data.count; n++) {
    const base = 4 * n * columns;
    const c = (bytes.getInt32(base, true) - lows[0]) / strides[0];
    const r = width > 1 ? (bytes.getInt32(base + 4, true) - lows[1]) / strides[1] : 0;
    const p = width > 2 ? (bytes.getInt32(base + 8, true) - lows[2]) / strides[2] : 0;
    const number = bytes.getInt32(base + 4 * column, true);
    const x = Math.floor(layout.left + (p % layout.across) * layout.panelWidth + c * layout.step);
    const y = Math.floor(layout.top + Math.floor(p / layout.across) * layout.panelHeight + r * layout.step);
    const colour = number >= 0 ? palette[Math.floor(number * data.turn) % 360] : grey;
    for (let dy = 0; dy < dot; dy++) {
      const row = (y + dy) * canvas.width + x;
      if (number < 0 && dot > 2 && dy % 2) continue; // striped: not by colour alone
      for (let dx = 0; dx < dot; dx++) pixels[row + dx] = colour;
    }
  }
  context.putImageData(image, 0, 0);
  context.fillStyle = getComputedStyle(document.body).getPropertyValue('--jp-ui-font-color1').trim() || '#777';
  context.font = '11px sans-serif';
  const name = k => `${data.axes[k][0]} (${data.axes[k][1]}) ${data.axes[k][2]} .. ${data.axes[k][2] + data.axes[k][3] - 1}`;
  context.fillText(`${name(0)} →`, layout.left, 12);
  if (width > 1) { context.save(); context.translate(14, layout.top + 4); context.rotate(Math.PI / 2); context.fillText(`${name(1)} →`, 0, 0); context.restore(); }
  return canvas;
}

function hsl(h, s, l) {
  const f = n => { const k = (n + h / 30) % 12; return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)))); };
  return (255 << 24 | f(4) << 16 | f(8) << 8 | f(0)) >>> 0;
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
