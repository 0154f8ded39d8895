/**
 * What every editor extension of a cell needs: whose cell it is, which version of the text this is, the last analysis, and one
 * function to ask the kernel about it.
 */
import { ensureSyntaxTree, language, syntaxTree } from '@codemirror/language';
import { Facet, StateEffect, StateField, type EditorState, type Text } from '@codemirror/state';
import type { EditorView } from '@codemirror/view';
import { Tree, type SyntaxNode } from '@lezer/common';
import type { ISignal } from '@lumino/signaling';
import type { ISharedText } from '@jupyter/ydoc';
import { body, cellOffset, readCell, toPosition, wholeFile, type TcCell } from './cells.js';
import { cellLanguages, type LanguageName } from './grammar/language.js';
import { vocabularies } from './grammar/vocabulary.js';
import type { KernelLink, Subject } from './kernel.js';
import { MAX_SOURCE, type Analysis, type Kind, type Position } from './protocol.js';
import type { TcSession } from './session.js';

export interface CellContext {
  readonly session: TcSession;
  readonly shared: ISharedText;
  /** language of a `.tc` or `.sac` file; `null` for a cell, whose magic line decides */
  readonly file: LanguageName | null;
  /** emitted when `file` may have changed */
  readonly typeChanged: ISignal<unknown, unknown>;
}

export const cellContext = Facet.define<CellContext, CellContext | null>({ combine: values => values[0] ?? null });

let versions = 0;

/** Grows with every change of the text; no two texts of this page share a number. */
export const versionField = StateField.define<number>({
  create: () => ++versions,
  update: (version, tr) => (tr.docChanged ? ++versions : version)
});

/** The answer to the last `check`, and the version of the text it is about. */
export interface Known {
  readonly analysis: Analysis;
  readonly version: number;
}
export const setKnown = StateEffect.define<Known | null>();
export const knownField = StateField.define<Known | null>({
  create: () => null,
  update: (known, tr) => tr.effects.reduce((value, effect) => (effect.is(setKnown) ? effect.value : value), known)
});

/** Ask for a new check although the text is the same: the kernel came, went, or ran a cell. */
export const recheck = StateEffect.define<null>();

export function readState(state: EditorState): TcCell | null {
  const file = state.facet(cellContext)?.file ?? null;
  return file === null ? readCell(state.doc) : wholeFile(file);
}

export function linkOf(state: EditorState): KernelLink | null {
  const context = state.facet(cellContext);
  return context === null ? null : context.session.linkOf(context.session.panelOf(context.shared));
}

export function isLarge(state: EditorState): boolean {
  return state.doc.length > MAX_SOURCE;
}

/** The tree of the whole cell if it is ready within `milliseconds`, else what there is. */
export function treeOf(state: EditorState, milliseconds = 25): Tree {
  const own = readState(state)?.language ?? 'tc';
  if (state.facet(language) === cellLanguages[own]) {
    return ensureSyntaxTree(state, state.doc.length, milliseconds) ?? syntaxTree(state);
  }
  // highlighting is switched off: the editor has another language
  let tree = trees.get(state.doc);
  if (tree === undefined) {
    tree = isLarge(state) ? Tree.empty : cellLanguages[own].parser.parse(state.doc.toString());
    trees.set(state.doc, tree);
  }
  return tree;
}
const trees = new WeakMap<Text, Tree>();

const NAMES = new Set([
  'VariableName',
  'CalleeName',
  'TargetName',
  'ParamName',
  'ResultName',
  'DefName',
  'Iterator',
  'WhereName',
  'SizeOf',
  'TypeName',
  'ReductionName'
]);

/** The name at an offset, or just before it. */
export function nameAt(state: EditorState, offset: number): SyntaxNode | null {
  const tree = treeOf(state);
  for (const side of [1, -1] as const) {
    for (let node: SyntaxNode | null = tree.resolveInner(offset, side); node && node.to - node.from < 200; node = node.parent) {
      if (NAMES.has(node.name)) {
        return node;
      }
    }
  }
  return null;
}

export function textOf(state: EditorState, node: { from: number; to: number }): string {
  return state.sliceDoc(node.from, node.to);
}

/** Everything a request says about the cell. */
export function subjectOf(state: EditorState, cell: TcCell): Subject {
  const context = state.facet(cellContext)!;
  const id = context.file === null ? ((context.shared as { id?: string }).id ?? '') : 'file:';
  const base = { cell: id, version: state.field(versionField), magic: cell.magic, source: body(state.doc, cell) };
  const earlier = earlierCells(state, context, cell);
  return earlier.length > 0 ? { ...base, earlier } : base;
}

// cells above that define a name which this cell calls and does not define
function earlierCells(state: EditorState, context: CellContext, cell: TcCell): NonNullable<Subject['earlier']> {
  const panel = context.session.panelOf(context.shared);
  const open = panel === null ? [] : calledElsewhere(state, cell);
  if (panel === null || open.length === 0) {
    return [];
  }
  const cells = context.session.cellsOf(panel);
  const here = cells.findIndex(other => other.shared === context.shared);
  return cells
    .slice(0, Math.max(0, here))
    .filter(other => other.defs.some(name => open.includes(name)))
    .map(other => ({ cell: other.id, magic: other.magic, source: other.body }));
}

/** Names that a cell calls and does not define: what they are, the namespace and cells above say. */
export function calledElsewhere(state: EditorState, cell: TcCell): string[] {
  const builtin = new Set<string>([...vocabularies[cell.language].functions, ...vocabularies[cell.language].reductions]);
  const called = new Set<string>();
  const own = new Set<string>();
  treeOf(state).iterate({
    enter: node => {
      if (node.name === 'CalleeName') {
        called.add(textOf(state, node));
      } else if (node.name === 'DefName' || node.name === 'ParamName' || node.name === 'TargetName') {
        own.add(textOf(state, node));
      }
    }
  });
  return [...called].filter(name => !builtin.has(name) && !own.has(name));
}

export interface Asked {
  readonly reply: Readonly<Record<string, unknown>>;
  readonly cell: TcCell;
}

/**
 * Ask the kernel about a position of the cell. `null`: no kernel side, no answer, a failure, or the text has changed meanwhile.
 */
export async function ask(view: EditorView, kind: Kind, offset: number | null, extra: Readonly<Record<string, unknown>> = {}): Promise<Asked | null> {
  const { state } = view;
  const cell = readState(state);
  const link = linkOf(state);
  if (cell === null || link === null || !link.ready || isLarge(state)) {
    return null;
  }
  const position: { position?: Position } = offset === null ? {} : { position: toPosition(state.doc, cell, cellOffset(offset)) };
  const answer = await link.request(kind, subjectOf(state, cell), { ...position, ...extra });
  return answer.ok && view.state.doc.eq(state.doc) ? { reply: answer.reply, cell } : null;
}
