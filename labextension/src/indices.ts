/** Colours the indices of a statement wherever they are read, as they are coloured on its left side: names that nothing declares. */
import type { Extension } from '@codemirror/state';
import { RangeSetBuilder } from '@codemirror/state';
import { Decoration, ViewPlugin, type DecorationSet, type EditorView, type ViewUpdate } from '@codemirror/view';
import { syntaxTree } from '@codemirror/language';
import type { SyntaxNode, SyntaxNodeRef } from '@lezer/common';

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
          builder.add(ref.from, ref.to, INDEX);
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
  return builder.finish();
}

type Name = (node: SyntaxNodeRef) => string;

function namesOf(def: SyntaxNode, name: Name, known: Map<number, Set<string>>): Set<string> {
  let names = known.get(def.from);
  if (names === undefined) {
    names = new Set();
    known.set(def.from, names);
    const found = names;
    def.cursor().iterate(ref => {
      if (DECLARING.has(ref.name)) {
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
