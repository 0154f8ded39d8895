/** Colours the indices of a statement wherever they are read, as they are coloured on its left side: names that nothing declares. */
import type { Extension } from '@codemirror/state';
import { RangeSetBuilder } from '@codemirror/state';
import { Decoration, ViewPlugin, type DecorationSet, type EditorView, type ViewUpdate } from '@codemirror/view';
import { syntaxTree } from '@codemirror/language';
import type { SyntaxNode } from '@lezer/common';

const INDEX = Decoration.mark({ class: 'tok-variableName2 tc-index' });
const DECLARING = new Set(['DefName', 'ParamName', 'ResultName', 'TargetName', 'SizeName']);

export function indexColours(): Extension {
  return ViewPlugin.fromClass(
    class {
      decorations: DecorationSet;
      constructor(view: EditorView) {
        this.decorations = draw(view);
      }
      update(update: ViewUpdate): void {
        if (update.docChanged || update.viewportChanged || syntaxTree(update.startState) !== syntaxTree(update.state)) {
          this.decorations = draw(update.view);
        }
      }
    },
    { decorations: plugin => plugin.decorations }
  );
}

function draw(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const declared = new Map<number, Set<string>>();
  for (const { from, to } of view.visibleRanges) {
    syntaxTree(view.state).iterate({
      from,
      to,
      enter: ref => {
        if (ref.name !== 'VariableName' || ref.matchContext(['Iterators'])) {
          return;
        }
        const def = enclosing(ref.node);
        const name = view.state.sliceDoc(ref.from, ref.to);
        if (def !== null && !namesOf(view, def, declared).has(name) && !letsOf(view, ref.node).has(name)) {
          builder.add(ref.from, ref.to, INDEX);
        }
      }
    });
  }
  return builder.finish();
}

function enclosing(node: SyntaxNode): SyntaxNode | null {
  let up: SyntaxNode | null = node;
  while (up !== null && up.name !== 'Definition') {
    up = up.parent;
  }
  return up;
}

function namesOf(view: EditorView, def: SyntaxNode, known: Map<number, Set<string>>): Set<string> {
  let names = known.get(def.from);
  if (names === undefined) {
    names = new Set();
    known.set(def.from, names);
    const found = names;
    def.cursor().iterate(ref => {
      if (DECLARING.has(ref.name)) {
        found.add(view.state.sliceDoc(ref.from, ref.to));
      }
    });
  }
  return names;
}

function letsOf(view: EditorView, node: SyntaxNode): Set<string> {
  let up: SyntaxNode | null = node;
  while (up !== null && up.name !== 'Statement') {
    up = up.parent;
  }
  const lets = up?.getChild('Where')?.getChildren('LetClause') ?? [];
  return new Set(lets.flatMap(clause => (clause.firstChild ? [view.state.sliceDoc(clause.firstChild.from, clause.firstChild.to)] : [])));
}
