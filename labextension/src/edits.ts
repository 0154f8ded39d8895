/** Rename, go to definition and format: commands on an editor that need the kernel. */
import { EditorSelection } from '@codemirror/state';
import type { EditorView } from '@codemirror/view';
import { InputDialog, Notification } from '@jupyterlab/apputils';
import { body, cellOffset, toOffset, toRange } from './cells.js';
import { applyEdits } from './diagnostics.js';
import { ask, nameAt, readState, textOf } from './document.js';
import { readDefinition, readFormat, readReferences, readRename, type Position } from './protocol.js';
import { within } from './wait.js';

const PATIENCE = 3000;
const SILENT = 'tc_jupyter: the kernel did not answer. Load it with %load_ext tc_jupyter, or wait until it is free.';

function tell(text: string): void {
  Notification.warning(text, { autoClose: 5000 });
}

/** Rename the name at the cursor within its scope. `name` skips the question. */
export async function rename(view: EditorView, name?: string): Promise<void> {
  const head = view.state.selection.main.head;
  const node = nameAt(view.state, head);
  const start = node === null ? null : await within(ask(view, 'rename', head), PATIENCE);
  const found = start === null ? null : readRename(start.reply.rename);
  if (start === null || found === null) {
    tell(node === null || start !== null ? 'tc_jupyter: nothing to rename here' : SILENT);
    return;
  }
  if (found.refused !== null) {
    tell(`tc_jupyter: ${found.refused}`);
    return;
  }
  const wanted = name ?? (await askName(found.kind, found.name));
  if (wanted === null || wanted === found.name) {
    view.focus();
    return;
  }
  const asked = await within(ask(view, 'rename', head, { name: wanted }), PATIENCE);
  const answer = asked === null ? null : readRename(asked.reply.rename);
  if (asked === null || answer === null || answer.refused !== null) {
    tell(answer?.refused ? `tc_jupyter: ${answer.refused}` : SILENT);
    return;
  }
  applyEdits(view, asked.cell, answer.edits, 'input.rename');
  view.focus();
}

async function askName(kind: string, name: string): Promise<string | null> {
  const result = await InputDialog.getText({ title: `Rename ${kind} ${name}`, text: name, okLabel: 'Rename', selectionRange: name.length });
  return result.button.accept ? (result.value ?? '').trim() || null : null;
}

/** Replace the body by its canonical layout, changing only the part that differs. */
export async function format(view: EditorView): Promise<void> {
  const asked = await within(ask(view, 'format', null), PATIENCE);
  const answer = asked === null ? null : readFormat(asked.reply.format);
  if (asked === null || answer === null || answer.text === null) {
    tell(answer?.refused ? `tc_jupyter: ${answer.refused}` : SILENT);
    return;
  }
  const old = body(view.state.doc, asked.cell);
  const text = answer.text;
  if (old === text) {
    return;
  }
  let head = 0;
  while (head < old.length && old[head] === text[head]) {
    head++;
  }
  let tail = 0;
  while (tail < Math.min(old.length, text.length) - head && old[old.length - 1 - tail] === text[text.length - 1 - tail]) {
    tail++;
  }
  const start = asked.cell.bodyStart;
  view.dispatch({ changes: { from: start + head, to: start + old.length - tail, insert: text.slice(head, text.length - tail) }, userEvent: 'input.format' });
}

export interface Place {
  readonly name: string;
  /** id of another cell, if the kernel knows it */
  readonly cell: string | null;
  readonly position: Position | null;
  /** path of a file, from the folder of the kernel */
  readonly file: string | null;
}

/** Move to the definition if it is in this cell, else say where to look for it. */
export async function definition(view: EditorView): Promise<Place | null> {
  const head = view.state.selection.main.head;
  const node = nameAt(view.state, head);
  const asked = await within(ask(view, 'definition', head), PATIENCE);
  const answer = asked === null ? null : readDefinition(asked.reply.definition);
  if (answer === null && node !== null) {
    return { name: textOf(view.state, node), cell: null, position: null, file: null };
  }
  if (asked === null || answer === null) {
    return null;
  }
  if (answer.cell === null && answer.span !== null) {
    moveTo(view, toOffset(view.state.doc, asked.cell, answer.span.start));
    return null;
  }
  const position = answer.span?.start ?? answer.inFile?.start ?? null;
  return { name: answer.name, cell: answer.cell, position, file: answer.file };
}

/** Select all places that mean the same as the name at the cursor. */
export async function references(view: EditorView): Promise<void> {
  const head = view.state.selection.main.head;
  const asked = await within(ask(view, 'references', head), PATIENCE);
  const found = asked === null ? [] : readReferences(asked.reply.references).map(span => toRange(view.state.doc, asked.cell, span));
  if (found.length === 0) {
    tell(asked === null ? SILENT : 'tc_jupyter: no name here');
    return;
  }
  const here = found.findIndex(({ from, to }) => from <= head && head <= to);
  const ranges = found.map(({ from, to }) => EditorSelection.range(from, to));
  view.dispatch({ selection: EditorSelection.create(ranges, Math.max(0, here)), scrollIntoView: true });
  view.focus();
}

/** Put the cursor at a position of the body, or at the definition of `name`. */
export function reveal(view: EditorView, name: string, position: Position | null): void {
  const cell = readState(view.state);
  if (cell === null) {
    return;
  }
  const at = position === null ? body(view.state.doc, cell).search(new RegExp(`\\b${name.replace(/\W/g, '\\$&')}\\s*\\(`)) : -1;
  moveTo(view, position !== null ? toOffset(view.state.doc, cell, position) : cellOffset(cell.bodyStart + Math.max(0, at)));
}

function moveTo(view: EditorView, offset: number): void {
  view.dispatch({ selection: EditorSelection.cursor(offset), scrollIntoView: true });
  view.focus();
}
