// Pointer and keys over the lattice: the point under the cursor, every element it touches lit in the pictures of the tensors.
const NAMES = { '-1': 'skipped by its condition', '-2': 'outside', '-3': 'depends on data' };

function enliven(body, view) {
  const data = view.data;
  const box = body.querySelector('[data-lattice]');
  if (box === null || !data.layout || !data.count) return;
  const layout = data.layout;
  const width = data.axes.length;
  const numbers = (data.wide ? doubles : integers)(view.points); // of the elements: one access after the other, each in row-major order of the shown axes
  const readout = body.querySelector('[data-readout]');
  box.style.position = 'relative';
  const em = units => `${units / layout.em}em`;
  box.style.width = box.querySelector('svg')?.getAttribute('width') ?? em(layout.width); // with arrows it is wider than the lattice
  if (data.canvas) box.replaceChildren(paint(data, layout, numbers));
  const cover = svgElement('svg', { width: em(layout.width), height: em(layout.height), viewBox: `0 0 ${layout.width} ${layout.height}`, 'aria-hidden': 'true' });
  cover.style.cssText = 'position:absolute;left:0;top:0;pointer-events:none;overflow:visible';
  const ring = svgElement('circle', { class: 'tcw-cursor', r: Math.max(3, layout.step * 0.48), fill: 'none', stroke: 'currentColor', 'stroke-width': 2, visibility: 'hidden' });
  cover.append(ring);
  if (data.canvas) cover.append(...axisNames(data, layout));
  box.append(cover);
  let cell = null, asked = 0;
  const hint = readout.innerHTML;

  const extents = [layout.columns, layout.rows, layout.panels];
  const index = ([c, r, p]) => {
    const place = [c, r, p].slice(0, width);
    return place.reduce((n, v, k) => n * extents[k] + v, 0);
  };
  function show(where) {
    cell = where;
    for (const lit of body.querySelectorAll('[data-lit]')) lit.remove();
    if (where === null) { ring.setAttribute('visibility', 'hidden'); readout.innerHTML = hint; return; }
    const [c, r, p] = where;
    const x = layout.left + (p % layout.across) * layout.panelWidth + (c + 0.5) * layout.step;
    const y = layout.top + Math.floor(p / layout.across) * layout.panelHeight + (r + 0.5) * layout.step;
    ring.setAttribute('cx', x); ring.setAttribute('cy', y); ring.setAttribute('visibility', 'visible');
    const point = index(where);
    const values = data.axes.map((axis, k) => axis[2] + where[k] * data.strides[k]);
    const name = data.axes.map((axis, k) => `${axis[0]} = ${values[k]}`).concat(Object.entries(data.fixed).map(([n, v]) => `${n} = ${v}`)).join(', ');
    if (data.columns.length === data.touches.length) tell(name, data.touches.map((_, k) => numbers[k * data.count + point]));
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
    const [origin, shape, [open, close]] = data.tensors[tensor];
    const place = [];
    for (let k = shape.length - 1; k >= 0; k--) { place.unshift((number % shape[k]) + origin[k]); number = Math.floor(number / shape[k]); }
    return `${tensor}${open}${place.join(', ')}${close}`;
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
    const bounds = box.getBoundingClientRect(), unit = parseFloat(getComputedStyle(box).fontSize) / layout.em;
    const x = (event.clientX - bounds.left) / unit - layout.left, y = (event.clientY - bounds.top) / unit - layout.top;
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

/** Little-endian integers of four bytes, without a copy where they lie well. */
function integers(bytes) {
  const from = bytes.byteOffset;
  return from % 4 === 0 ? new Int32Array(bytes.buffer, from, bytes.byteLength >> 2) : new Int32Array(bytes.buffer.slice(from, from + bytes.byteLength));
}

/** Numbers of eight bytes, in the same way. */
function doubles(bytes) {
  const from = bytes.byteOffset;
  return from % 8 === 0 ? new Float64Array(bytes.buffer, from, bytes.byteLength >> 3) : new Float64Array(bytes.buffer.slice(from, from + bytes.byteLength));
}

const GREY = 0x88888888;

/** Many points: a block of pixels for each, in the colour of its element. */
function paint(data, layout, numbers) {
  const canvas = element('canvas', { width: Math.ceil(layout.width), height: Math.ceil(layout.height), 'aria-hidden': 'true', 'data-points': data.count });
  canvas.style.cssText = `display:block;width:${canvas.width / layout.em}em;height:${canvas.height / layout.em}em;image-rendering:pixelated`;
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const dot = Math.max(1, layout.step < 5 ? Math.ceil(layout.step) : Math.floor(layout.step * 0.8)); // gaps between small dots make patterns of their own
  const { step, rows, panels, across } = layout;
  const colourOf = pixelsOf(data.colours);
  let n = data.coloured * data.count;
  for (let c = 0; c < layout.columns; c++) for (let r = 0; r < rows; r++) for (let p = 0; p < panels; p++) {
    const number = numbers[n++];
    const x = Math.floor(layout.left + (p % across) * layout.panelWidth + c * step);
    const y = Math.floor(layout.top + Math.floor(p / across) * layout.panelHeight + r * step);
    const colour = number >= 0 ? colourOf(number) : GREY;
    for (let dy = 0; dy < dot; dy++) {
      if (number < 0 && dot > 2 && dy % 2) continue; // striped: not by colour alone
      const row = (y + dy) * canvas.width + x;
      for (let dx = 0; dx < dot; dx++) pixels[row + dx] = colour;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Above the points; as text of the page they have its colour, whatever the theme becomes. */
function axisNames(data, layout) {
  return data.axes.slice(0, 2).map(([name, kind, low, extent], k) => {
    const text = svgElement('text', { x: layout.left, y: layout.letters * (1 + 1.25 * k), 'font-size': layout.letters, fill: 'currentColor' });
    text.textContent = `${name} (${kind}) ${low} .. ${low + extent - 1} ${'→↓'[k]}`;
    return text;
  });
}

/** The colours that Python chose, as pixels: the hue says the row, the tone the column. */
function pixelsOf({ rows, columns, hues, tones, palette }) {
  const pixels = Uint32Array.from(palette, css => {
    const [r, g, b] = [1, 3, 5].map(at => parseInt(css.slice(at, at + 2), 16));
    return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  });
  return number => {
    const row = Math.floor(number / columns), column = number % columns;
    return pixels[Math.floor(row * hues / rows) * tones + Math.floor(column * tones / columns)];
  };
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
