/**
 * Colours of a cell: those of the grammar, and the indices of a statement wherever they are read, as they are coloured on its left
 * side: names that nothing declares.
 *
 * The marks of every line are a chunk of their own in the set, which stays the same object while the line does. So the editor sees at
 * once what is unchanged; else it compares, and with a character that is deleted `RangeSet.compare` of @codemirror/state 6.7 takes
 * every mark below for changed (it asks the old side for open ranges at places of the new one), and lines are drawn anew for nothing.
 */
import { highlightingFor, syntaxTree } from '@codemirror/language';
import { ChangeSet, Prec, type ChangeDesc, type EditorState, type Extension, type Text } from '@codemirror/state';
import { Decoration, ViewPlugin, type DecorationSet, type EditorView, type ViewUpdate } from '@codemirror/view';
import { highlightTree, tags, type Highlighter } from '@lezer/highlight';
import type { SyntaxNode, SyntaxNodeRef } from '@lezer/common';
import { cellHighlighter } from './grammar/highlight.js';
import type { LanguageName } from './grammar/language.js';
import { isSize } from './grammar/syntax.js';

const INDEX = 'tok-variableName2 tc-index';
const DECLARING = new Set(['DefName', 'ParamName', 'ResultName', 'TargetName']);

/** A text with one look. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly look: string;
}

/** The texts that begin in one line, as one: `key` says them relative to the first. */
interface Piece {
  readonly from: number;
  readonly to: number;
  readonly key: string;
  readonly spans: readonly Span[];
}

/** What is drawn: the marks of each piece are a chunk of their own in the set. */
export interface Drawn {
  readonly pieces: readonly Piece[];
  readonly marks: DecorationSet;
}

export const NOTHING: Drawn = { pieces: [], marks: Decoration.none };

export function colours(language: LanguageName): Extension {
  return Prec.high(ViewPlugin.define(view => new Colours(view, language), { decorations: plugin => plugin.drawn.marks }));
}

class Colours {
  drawn = NOTHING;
  private end = 0;
  private theme: string | null = null;
  private highlighter: Highlighter | null = null;

  constructor(
    view: EditorView,
    private readonly language: LanguageName
  ) {
    this.draw(view, ChangeSet.empty(view.state.doc.length));
  }

  update(update: ViewUpdate): void {
    const { state, startState, view } = update;
    if (update.docChanged || update.viewportChanged || syntaxTree(startState) !== syntaxTree(state) || this.theme !== themeOf(state)) {
      this.draw(view, update.changes);
    }
  }

  private draw(view: EditorView, changes: ChangeDesc): void {
    const { state } = view;
    if (this.highlighter === null || this.theme !== themeOf(state)) {
      this.theme = themeOf(state);
      this.highlighter = cellHighlighter(found => highlightingFor(state, found));
    }
    const end = changes.mapPos(this.end, 1);
    if (syntaxTree(state).length < view.viewport.to && end >= view.viewport.to) {
      // what is not parsed yet keeps its colours
      this.drawn = { pieces: [], marks: this.drawn.marks.map(changes) };
      this.end = end;
      return;
    }
    this.end = view.viewport.to;
    this.drawn = redrawn(this.drawn, changes, this.spans(view, this.highlighter), state.doc);
  }

  private spans(view: EditorView, highlighter: Highlighter): Span[] {
    const spans: Span[] = [];
    for (const { from, to } of view.visibleRanges) {
      highlightTree(syntaxTree(view.state), highlighter, (start, end, look) => spans.push({ from: start, to: end, look }), from, to);
    }
    const found = this.language === 'tc' ? [...spans, ...indices(view)] : spans;
    return found.sort((a, b) => a.from - b.from || a.to - b.to);
  }
}

// a class that every theme has, to see that there is another theme
const themeOf = (state: EditorState): string | null => highlightingFor(state, [tags.keyword]);

/** The marks of a changed text: the chunks of lines that look as before stay what they are. */
export function redrawn(before: Drawn, changes: ChangeDesc, spans: readonly Span[], doc: Text): Drawn {
  const old = before.pieces.map(piece => moved(piece, changes));
  const pieces = split(spans, doc);
  const most = Math.min(old.length, pieces.length);
  const same = (a: Piece | null | undefined, b: Piece): boolean => a?.from === b.from && a.key === b.key;
  let head = 0;
  while (head < most && same(old[head], pieces[head])) {
    head++;
  }
  let tail = 0;
  while (tail < most - head && same(old.at(-1 - tail), pieces[pieces.length - 1 - tail])) {
    tail++;
  }
  const end = pieces.length - tail;
  let marks = before.marks.map(changes).update({
    filter: () => false,
    filterFrom: head > 0 ? pieces[head - 1].to + 1 : 0,
    filterTo: tail > 0 ? pieces[end].from - 1 : doc.length
  });
  // from the last to the first: marks that are added before a chunk become one of their own
  for (const piece of pieces.slice(head, end).reverse()) {
    marks = marks.update({ add: piece.spans.map(({ from, to, look }) => mark(look).range(from, to)) });
  }
  return { pieces, marks };
}

function moved(piece: Piece, changes: ChangeDesc): Piece | null {
  return changes.touchesRange(piece.from, piece.to) ? null : { ...piece, from: changes.mapPos(piece.from) };
}

function split(spans: readonly Span[], doc: Text): Piece[] {
  const pieces: Piece[] = [];
  for (let first = 0; first < spans.length; ) {
    const { from } = spans[first];
    const end = doc.lineAt(from).to;
    let next = first;
    let key = '';
    for (; next < spans.length && spans[next].from <= end; next++) {
      key += `${spans[next].from - from} ${spans[next].to - from} ${spans[next].look};`;
    }
    pieces.push({ from, to: spans[next - 1].to, key, spans: spans.slice(first, next) });
    first = next;
  }
  return pieces;
}

const marks = new Map<string, Decoration>();
function mark(look: string): Decoration {
  const found = marks.get(look) ?? Decoration.mark({ class: look });
  marks.set(look, found);
  return found;
}

function indices(view: EditorView): Span[] {
  const found: Span[] = [];
  const name = (node: SyntaxNodeRef): string => view.state.sliceDoc(node.from, node.to);
  const declared = new Map<number, Set<string>>();
  let names = new Set<string>();
  let lets = new Set<string>();
  let inside = 0;
  for (const { from, to } of view.visibleRanges) {
    syntaxTree(view.state).iterate({
      from,
      to,
      enter: ref => {
        if (ref.name === 'Definition') {
          inside++;
          names = namesOf(ref.node, name, declared);
        } else if (ref.name === 'Statement') {
          lets = letsOf(ref.node, name);
        } else if (ref.name === 'Target') {
          return false;
        } else if (ref.name === 'VariableName' && inside > 0 && !names.has(name(ref)) && !lets.has(name(ref))) {
          found.push({ from: ref.from, to: ref.to, look: INDEX });
        }
        return undefined;
      },
      leave: ref => {
        if (ref.name === 'Definition') {
          inside--;
        } else if (ref.name === 'Statement') {
          lets = new Set();
        }
      }
    });
  }
  return found;
}

type Name = (node: SyntaxNodeRef) => string;

function namesOf(def: SyntaxNode, name: Name, known: Map<number, Set<string>>): Set<string> {
  let names = known.get(def.from);
  if (names === undefined) {
    names = new Set();
    known.set(def.from, names);
    const found = names;
    def.cursor().iterate(ref => {
      if (DECLARING.has(ref.name) || (ref.name === 'VariableName' && isSize(ref.node))) {
        found.add(name(ref));
      }
    });
  }
  return names;
}

function letsOf(statement: SyntaxNode, name: Name): Set<string> {
  const lets = statement.getChild('Where')?.getChildren('LetClause') ?? [];
  return new Set(lets.flatMap(clause => (clause.firstChild ? [name(clause.firstChild)] : [])));
}
