/**
 * The views of an analysis as plain elements: ranges, preconditions, shapes, diagnostics, iteration space. The side panel and the
 * renderer of saved outputs draw with the same functions; none of them needs a kernel.
 */
import { h, prose, s, type Child } from './dom.js';
import { evaluate, evaluateInteger, namesIn, type Sizes } from './evaluate.js';
import type { Diagnostic, FunctionInfo, IndexRange, Statement, TensorInfo } from './protocol.js';

/** Marks above this number are drawn on a canvas. */
const SVG_LIMIT = 2000;
/** Characters of conditions that are evaluated to find sizes for which they hold. */
const MOST_EVALUATED = 200_000;
export const MAX_SIZE = 1_000_000_000;

/** Sizes of a def, including names that only its conditions mention. */
export function sizeNames(def: FunctionInfo): string[] {
  return [...new Set([...def.sizes, ...def.preconditions.filter(p => p.kind !== 'DATA').flatMap(p => namesIn(p.text))])].filter(name =>
    def.sizes.includes(name)
  );
}

/** Small sizes for which the conditions hold and no range is empty, found by trying. */
export function exampleSizes(def: FunctionInfo): Record<string, number> {
  const names = sizeNames(def);
  const choices = names.length <= 3 ? [8, 5, 3, 12, 2, 1] : [8, 4, 1];
  let best: Record<string, number> = Object.fromEntries(names.map(name => [name, 8]));
  const length = [...def.preconditions.map(p => p.text), ...def.statements.flatMap(st => st.indices.flatMap(i => [i.lower ?? '', i.upper ?? '']))].join('').length;
  const total = Math.min(choices.length ** names.length, 400, Math.floor(MOST_EVALUATED / (length + 1)));
  for (let trial = 0; trial < total; trial++) {
    const sizes: Record<string, number> = {};
    names.reduce((rest, name) => {
      sizes[name] = choices[rest % choices.length];
      return Math.floor(rest / choices.length);
    }, trial);
    if (fits(def, sizes)) {
      best = sizes;
      break;
    }
  }
  return best;
}

function fits(def: FunctionInfo, sizes: Sizes): boolean {
  const hold = def.preconditions.every(p => p.status !== 'checked_at_call' || evaluate(p.text, sizes) !== false);
  const full = def.statements.every(st => st.indices.every(i => extent(i, sizes) !== 0));
  return hold && full;
}

function extent(index: IndexRange, sizes: Sizes): number | null {
  const lower = evaluateInteger(index.lower, sizes);
  const upper = evaluateInteger(index.upper, sizes);
  return lower === null || upper === null ? null : Math.max(0, upper - lower);
}

// in a narrow panel the cells of a row `flow` below each other instead of leaving it; the roles say that it is still a table
export function table(head: readonly string[], rows: readonly (readonly Child[])[], label: string, flow = true): HTMLElement {
  return h(
    'div',
    { class: flow ? 'tc-scroll tc-flow' : 'tc-scroll' },
    h(
      'table',
      { class: 'tc-table', role: 'table', 'aria-label': label },
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ...head.map(text => h('th', { scope: 'col', role: 'columnheader' }, text)))),
      h('tbody', { role: 'rowgroup' }, ...rows.map(row => h('tr', { role: 'row' }, ...row.map((cell, i) => h('td', { role: 'cell', 'data-tc-head': head[i] }, cell)))))
    )
  );
}

const code = (text: string): HTMLElement => h('code', {}, text);

function interval(index: IndexRange): string {
  return index.lower === null || index.upper === null ? 'not known' : `${index.lower} <= ${index.name} < ${index.upper}`;
}

function numbers(index: IndexRange, sizes: Sizes): string {
  const lower = evaluateInteger(index.lower, sizes);
  const upper = evaluateInteger(index.upper, sizes);
  return lower === null || upper === null ? '-' : `${lower} .. ${upper - 1} (${Math.max(0, upper - lower)})`;
}

export function rangesView(def: FunctionInfo, sizes: Sizes): HTMLElement {
  const rows = def.statements.flatMap(statement =>
    statement.indices.map(index => [
      `${statement.target} (line ${statement.line + 1})`,
      code(interval(index)),
      numbers(index, sizes),
      index.kind,
      index.source === 'inferred' && index.round !== null ? `round ${index.round}` : index.source,
      index.because.length === 0 ? '' : h('span', {}, ...index.because.flatMap((reason, i) => [i > 0 && h('br'), code(reason)]))
    ])
  );
  if (rows.length === 0) {
    return h('p', { class: 'tc-empty' }, 'no index');
  }
  return table(['statement', 'range', 'at these sizes', 'kind', 'from', 'because'], rows, `ranges of ${def.name}`);
}

function tensorText(tensor: TensorInfo): string {
  return `${tensor.dtype} ${tensor.name}${tensor.shape === null ? '' : `(${tensor.shape.join(', ')})`}`;
}

export function shapesView(def: FunctionInfo, sizes: Sizes): HTMLElement {
  const rows = [
    ...def.inputs.map(tensor => ['input', tensor] as const),
    ...def.temporaries.map(tensor => ['temporary', tensor] as const),
    ...def.outputs.map(tensor => ['result', tensor] as const)
  ].map(([role, tensor]) => {
    const values = tensor.shape?.map(text => evaluateInteger(text, sizes) ?? '?');
    const moved = tensor.origin !== null && tensor.origin.some(text => text !== '0');
    return [role, code(tensorText(tensor)), values === undefined ? 'known at the call' : `(${values.join(', ')})`, moved ? code(tensor.origin!.join(', ')) : '0'];
  });
  return table(['', 'tensor', 'at these sizes', 'origin'], rows, `shapes of ${def.name}`);
}

const STATUS: Readonly<Record<string, string>> = {
  proved: '✓ proved',
  refuted: '✗ never holds',
  checked_at_call: 'checked at the call',
  data_dependent: 'depends on the data'
};

export function preconditionsView(def: FunctionInfo, sizes: Sizes): HTMLElement {
  if (def.preconditions.length === 0) {
    return h('p', { class: 'tc-empty' }, 'no precondition: every access stays inside for all sizes');
  }
  const rows = def.preconditions.map(condition => {
    const value = evaluate(condition.text, sizes);
    const now = value === null ? '-' : value ? '✓ holds' : '✗ fails';
    return [code(condition.text), STATUS[condition.status] ?? condition.status, now, condition.subject, condition.span === null ? '' : `line ${condition.span.start.line + 1}`];
  });
  return table(['condition', 'status', 'at these sizes', 'of', 'where'], rows, `preconditions of ${def.name}`);
}

const ICONS = { error: '✗', warning: '⚠', note: 'ℹ' } as const;

export function diagnosticsView(list: readonly Diagnostic[], go?: (diagnostic: Diagnostic) => void): HTMLElement | null {
  if (list.length === 0) {
    return null;
  }
  const shown = list.slice(0, 100);
  const items = shown.map(d => {
    const line = `line ${d.span.start.line + 1}`;
    const place = go === undefined ? line : h('button', { class: 'tc-link', type: 'button', click: () => go(d) }, line);
    return h(
      'li',
      { class: `tc-${d.severity}` },
      h('span', { 'aria-hidden': 'true' }, ICONS[d.severity] + ' '),
      h('b', {}, `${d.severity}[${d.code}] `),
      place,
      ': ',
      prose(d.message),
      d.help !== null && h('div', { class: 'tc-message-help' }, 'help: ', prose(d.help))
    );
  });
  const more = list.length - shown.length;
  return h('ul', { class: 'tc-diagnostics', 'aria-label': 'diagnostics' }, ...items, more > 0 && h('li', {}, `and ${more} more`));
}

/** Number fields for the sizes; `changed` gets all of them. */
export function sizeControls(def: FunctionInfo, sizes: Sizes, changed: (sizes: Record<string, number>) => void): HTMLElement {
  const current: Record<string, number> = { ...sizes };
  const error = h('span', { class: 'tc-error', role: 'status' });
  const fields = sizeNames(def).map(name => {
    const field = h('input', { type: 'number', min: 0, max: MAX_SIZE, step: 1, value: current[name] ?? 8, 'data-size': name });
    field.addEventListener('input', () => {
      const value = Number(field.value);
      const legal = field.value !== '' && Number.isInteger(value) && value >= 0 && value <= MAX_SIZE;
      field.setAttribute('aria-invalid', String(!legal));
      error.textContent = legal ? '' : ` ${name} is a whole number from 0 to ${MAX_SIZE}`;
      if (legal) {
        current[name] = value;
        changed({ ...current });
      }
    });
    return h('label', { class: 'tc-size' }, `${name} `, field);
  });
  return h('div', { class: 'tc-sizes', role: 'group', 'aria-label': 'sizes' }, ...fields, error);
}

interface Axis {
  readonly index: IndexRange;
  readonly lower: number;
  readonly count: number;
}

export interface SpaceChoice {
  statement: number;
  x: string | null;
  y: string | null;
}

/** The lattice of one statement over two of its indices, with a table that says the same. */
export function spaceView(def: FunctionInfo, sizes: Sizes, choice: SpaceChoice, changed: () => void): HTMLElement {
  const statements = def.statements.filter(st => st.indices.length > 0);
  const statement = statements[Math.min(choice.statement, statements.length - 1)];
  if (statement === undefined) {
    return h('p', { class: 'tc-empty' }, 'no statement with an index');
  }
  const axes = statement.indices.map((index): Axis | null => {
    const lower = evaluateInteger(index.lower, sizes);
    const count = extent(index, sizes);
    return lower === null || count === null ? null : { index, lower, count };
  });
  const known = axes.filter((axis): axis is Axis => axis !== null);
  if (known.length < axes.length) {
    return h('p', { class: 'tc-empty' }, 'the range of an index is not known for these sizes');
  }
  const pick = (name: string | null, fallback: number): Axis | undefined => known.find(axis => axis.index.name === name) ?? known[fallback];
  const x = pick(choice.x, Math.min(1, known.length - 1))!;
  const y = known.length > 1 ? pick(choice.y, x === known[0] ? 1 : 0) : undefined;
  const total = known.reduce((product, axis) => product * axis.count, 1);
  return h(
    'div',
    { class: 'tc-space' },
    h('div', { class: 'tc-sizes' }, ...choices(statements, statement, known, x, y, choice, changed)),
    picture(statement, x, y),
    h('p', { class: 'tc-caption' }, `${total.toLocaleString('en')} points in ${known.length} ${known.length === 1 ? 'index' : 'indices'}; `, legend()),
    table(
      ['index', 'kind', 'first', 'last', 'points'],
      known.map(axis => [code(axis.index.name), axis.index.kind, String(axis.lower), axis.count === 0 ? 'none' : String(axis.lower + axis.count - 1), String(axis.count)]),
      'the iteration space as a table',
      false
    )
  );
}

function legend(): HTMLElement {
  return h('span', {}, '● one point per visit; a dashed axis is a reduction');
}

function choices(all: readonly Statement[], chosen: Statement, axes: readonly Axis[], x: Axis, y: Axis | undefined, choice: SpaceChoice, changed: () => void): Child[] {
  const select = (label: string, options: readonly [string, string][], value: string, set: (value: string) => void): HTMLElement => {
    const field = h('select', { change: () => (set(field.value), changed()) }, ...options.map(([key, text]) => h('option', { value: key, selected: key === value }, text)));
    return h('label', { class: 'tc-size' }, `${label} `, field);
  };
  const names = axes.map(axis => [axis.index.name, axis.index.name] as [string, string]);
  return [
    all.length > 1 &&
      select(
        'statement',
        all.map((st, i) => [String(i), `${st.target} (line ${st.line + 1})`]),
        String(all.indexOf(chosen)),
        value => Object.assign(choice, { statement: Number(value), x: null, y: null })
      ),
    axes.length > 1 && select('across', names, x.index.name, value => Object.assign(choice, { x: value })),
    axes.length > 1 && y !== undefined && select('down', names, y.index.name, value => Object.assign(choice, { y: value }))
  ];
}

function picture(statement: Statement, x: Axis, y: Axis | undefined): HTMLElement {
  const rows = y === undefined || y === x ? 1 : y.count;
  const label = `iteration space of ${statement.target}: ${x.index.name} from ${x.lower}, ${x.count} values` + (y && y !== x ? `; ${y.index.name} from ${y.lower}, ${y.count} values` : '');
  if (x.count === 0 || rows === 0) {
    return h('p', { class: 'tc-empty' }, 'empty: no point is visited at these sizes');
  }
  return x.count * rows <= SVG_LIMIT ? svgPicture(x, y, rows, label) : canvasPicture(x.count, rows, label);
}

/** Pictures are drawn in units of which an em has 13, with letters of 12, so they are as large as the text around them. */
const EM = 13;
const LETTERS = 12;
const CELL = 16;
const LEFT = 14;
const LEADING = 15;
const em = (units: number): string => `${(units / EM).toFixed(2)}em`;
/** Units that a line of letters of a code font takes. */
const wide = (text: string): number => 0.63 * LETTERS * text.length;

function svgPicture(x: Axis, y: Axis | undefined, rows: number, label: string): HTMLElement {
  const axes = y === undefined || y === x ? [x] : [x, y];
  const names = axes.map((axis, k) => `${axis.index.name} ${'→↓'[k]} ${axis.lower} .. ${axis.lower + axis.count - 1}`);
  const step = Math.max(4, Math.min(CELL, 360 / x.count));
  const top = 8 + LEADING * names.length;
  const width = LEFT + Math.max(step * x.count + 10, ...names.map(wide));
  const height = top + step * rows + 10;
  const ends = [{ x2: LEFT + step * x.count, y2: top - 4 }, { x2: LEFT - 4, y2: top + step * rows }];
  const lines = axes.map((axis, k) => {
    const dash = axis.index.kind === 'reduction' ? '4 3' : null;
    return s('line', { x1: k === 0 ? LEFT : LEFT - 4, y1: k === 0 ? top - 4 : top, ...ends[k], class: 'tc-axis', 'stroke-dasharray': dash });
  });
  const texts = names.map((name, k) => s('text', { x: LEFT, y: LETTERS + LEADING * k, 'font-size': LETTERS, class: 'tc-axis-name' }, name));
  const points: SVGElement[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < x.count; column++) {
      const at = axes.map((axis, k) => `${axis.index.name} = ${axis.lower + (k === 0 ? column : row)}`).join(', ');
      const place = { cx: LEFT + step * (column + 0.5), cy: top + step * (row + 0.5), r: step * 0.3, class: 'tc-point' };
      points.push(s('circle', place, s('title', {}, at)));
    }
  }
  const size = { viewBox: `0 0 ${width} ${height}`, width: em(width), height: em(height) };
  return h('div', { class: 'tc-scroll' }, s('svg', { class: 'tc-picture', ...size, role: 'img', 'aria-label': label }, ...lines, ...texts, ...points));
}

function canvasPicture(columns: number, rows: number, label: string): HTMLElement {
  const height = Math.max(24, Math.min(360, Math.round((480 * rows) / columns)));
  const canvas = h('canvas', { class: 'tc-picture', width: 480, height, style: `width:${em(480)};max-width:100%`, role: 'img', 'aria-label': label });
  const drawn = { columns: Math.min(columns, 240), rows: Math.min(rows, Math.max(1, height >> 1)) };
  const context = canvas.getContext('2d');
  if (context !== null) {
    paint(context, drawn.columns, drawn.rows);
  }
  const thinned = drawn.columns < columns || drawn.rows < rows;
  return h('div', {}, canvas, thinned && h('p', { class: 'tc-caption' }, 'thinned: more points than can be drawn one by one'));
}

function paint(context: CanvasRenderingContext2D, columns: number, rows: number): void {
  context.fillStyle = getComputedStyle(document.body).getPropertyValue('--jp-brand-color1').trim() || '#1976d2';
  const dx = context.canvas.width / columns;
  const dy = context.canvas.height / rows;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      context.fillRect(column * dx + dx * 0.2, row * dy + dy * 0.2, Math.max(0.5, dx * 0.6), Math.max(0.5, dy * 0.6));
    }
  }
}

/** Heading of a def: its name and tensors. */
export function defTitle(def: FunctionInfo): HTMLElement {
  const inputs = def.inputs.map(tensorText).join(', ');
  const outputs = def.outputs.map(tensorText).join(', ');
  return h('div', { class: 'tc-title' }, h('b', {}, def.name), ' ', code(`(${inputs}) -> (${outputs})`));
}
