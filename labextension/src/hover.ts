/** Hover: what the kernel says about a name; while it is silent, what the last analysis says. */
import { StateEffect, StateField, type Extension } from '@codemirror/state';
import { hoverTooltip, type EditorView, type Tooltip } from '@codemirror/view';
import type { SyntaxNode } from '@lezer/common';
import { cellOffset, toPosition, toRange } from './cells.js';
import { ask, knownField, linkOf, nameAt, readState, textOf } from './document.js';
import { h, prose } from './dom.js';
import { readHover, type FunctionInfo, type Hover, type IndexRange } from './protocol.js';
import { within } from './wait.js';

/** Milliseconds that the kernel has for an answer, while it is not known to be busy. */
const PATIENCE = 1500;

interface Remembered {
  readonly from: number;
  readonly to: number;
  readonly hover: Hover;
}
const remember = StateEffect.define<Remembered>();
const memory = StateField.define<readonly Remembered[]>({
  create: () => [],
  update: (known, tr) => tr.effects.reduce((list, effect) => (effect.is(remember) ? [...list, effect.value] : list), tr.docChanged ? [] : known)
});

export function hover(): Extension {
  return [memory, hoverTooltip(source, { hideOnChange: true, hoverTime: 300 })];
}

async function source(view: EditorView, offset: number): Promise<Tooltip | null> {
  const node = wordAt(view, offset);
  if (node === null) {
    return null;
  }
  const known = view.state.field(memory).find(item => item.from <= offset && offset <= item.to);
  if (known !== undefined) {
    return tooltip(known.from, known.to, known.hover);
  }
  const asked = learn(view, offset);
  const busy = linkOf(view.state)?.state === 'busy';
  const answer = await within(asked, busy ? 0 : PATIENCE);
  if (answer !== null) {
    return answer.tooltip;
  }
  const local = fromAnalysis(view, node);
  // with nothing to show meanwhile a late answer is better than none; one that comes after the pointer has gone is for the next time
  return local === null ? ((await asked)?.tooltip ?? null) : tooltip(node.from, node.to, local);
}

/** What the kernel answers, kept for the next time; `null`: no answer. */
async function learn(view: EditorView, offset: number): Promise<{ readonly tooltip: Tooltip | null } | null> {
  const asked = await ask(view, 'hover', offset);
  const told = asked === null ? null : readHover(asked.reply.hover);
  if (asked === null || told === null) {
    return asked === null ? null : { tooltip: null };
  }
  const { from, to } = toRange(view.state.doc, asked.cell, told.span);
  view.dispatch({ effects: remember.of({ from, to, hover: told }) });
  return { tooltip: tooltip(from, to, told) };
}

const SILENT = new Set(['MagicLine', 'Comment', 'LineComment', 'BlockComment', 'Number']);

function wordAt(view: EditorView, offset: number): { name: string; from: number; to: number } | null {
  const node = nameAt(view.state, offset);
  if (node !== null) {
    return node;
  }
  const word = view.state.wordAt(offset);
  const cell = readState(view.state);
  if (word === null || cell === null || offset < cell.bodyStart || SILENT.has(view.state.sliceDoc(word.from, word.to))) {
    return null;
  }
  return { name: 'word', from: word.from, to: word.to };
}

function tooltip(from: number, to: number, told: Hover): Tooltip {
  return { pos: from, end: to, above: true, create: () => ({ dom: card(told) }) };
}

function card(told: Hover): HTMLElement {
  return h(
    'div',
    { class: 'tc-hover', 'data-tc-hover': told.kind },
    h('code', { class: 'tc-hover-title' }, told.title),
    ...told.lines.map(line => h('div', {}, prose(line))),
    told.documentation !== null && h('div', { class: 'tc-hover-doc' }, prose(told.documentation))
  );
}

export function rangeText(index: IndexRange): string {
  return index.lower === null || index.upper === null ? `${index.name}: range not known` : `${index.lower} <= ${index.name} < ${index.upper}`;
}

export function whyLines(index: IndexRange): string[] {
  const source = index.source === 'inferred' && index.round !== null ? `inferred in round ${index.round}` : index.source === 'where' ? 'given by `where`' : index.source;
  return [`${index.kind} index, ${source}`, ...index.because.map(reason => `because ${reason}`)];
}

function fromAnalysis(view: EditorView, node: { from: number; to: number }): Hover | null {
  const { state } = view;
  const known = state.field(knownField);
  const cell = readState(state);
  if (known === null || cell === null) {
    return null;
  }
  const name = textOf(state, node);
  const span = { start: toPosition(state.doc, cell, cellOffset(node.from)), end: toPosition(state.doc, cell, cellOffset(node.to)) };
  const def = known.analysis.functions.find(f => f.name === enclosing(view, node.from)) ?? null;
  const statement = def?.statements.filter(item => item.line <= span.start.line).at(-1);
  const index = statement?.indices.find(item => item.name === name);
  const stale = ['from the last analysis; the kernel does not answer now'];
  if (index !== undefined) {
    return { span, kind: 'index', title: rangeText(index), lines: [...whyLines(index), ...stale], documentation: null };
  }
  const text = def === null ? null : tensorText(def, name);
  return text === null ? null : { span, kind: 'tensor', title: text, lines: stale, documentation: null };
}

function tensorText(def: FunctionInfo, name: string): string | null {
  const tensor = [...def.inputs, ...def.outputs, ...def.temporaries].find(item => item.name === name);
  if (tensor !== undefined) {
    return `${tensor.dtype} ${name}(${tensor.shape?.join(', ') ?? 'known at the call'})`;
  }
  return def.sizes.includes(name) ? `size ${name}` : null;
}

function enclosing(view: EditorView, offset: number): string | null {
  let node: SyntaxNode | null = nameAt(view.state, offset);
  while (node !== null && node.name !== 'Definition') {
    node = node.parent;
  }
  const name = node?.getChild('DefName');
  return name ? textOf(view.state, name) : null;
}
