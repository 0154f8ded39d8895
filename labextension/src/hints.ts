/** Inlay hints at the end of each statement: the inferred ranges and the shape of the target. */
import { StateField, RangeSetBuilder, type EditorState, type Extension } from '@codemirror/state';
import { Decoration, EditorView, WidgetType, type DecorationSet } from '@codemirror/view';
import { toOffset } from './cells.js';
import { knownField, readState, setKnown, treeOf, versionField } from './document.js';
import { h } from './dom.js';
import type { Analysis, FunctionInfo, Statement } from './protocol.js';

class Hint extends WidgetType {
  constructor(private readonly text: string) {
    super();
  }
  override eq(other: Hint): boolean {
    return other.text === this.text;
  }
  override toDOM(): HTMLElement {
    return h('span', { class: 'tc-hint', 'aria-label': `inferred: ${this.text}` }, this.text);
  }
  override ignoreEvent(): boolean {
    return false;
  }
}

const hintField = StateField.define<DecorationSet>({
  create: state => draw(state),
  update: (hints, tr) => {
    if (tr.effects.some(effect => effect.is(setKnown))) {
      return draw(tr.state);
    }
    return tr.docChanged ? hints.map(tr.changes) : hints;
  },
  provide: field => EditorView.decorations.from(field)
});

export function inlayHints(): Extension {
  return hintField;
}

export function hintText(def: FunctionInfo, statement: Statement): string {
  const ranges = statement.indices
    .filter(index => index.lower !== null && index.upper !== null)
    .map(index => `${index.name} in ${index.lower}:${index.upper}`);
  const tensor = [...def.outputs, ...def.temporaries].find(item => item.name === statement.target);
  const shape = tensor?.shape ? `${tensor.name}(${tensor.shape.join(', ')})` : null;
  return [...ranges, ...(shape === null ? [] : [shape])].join('  ');
}

function draw(state: EditorState): DecorationSet {
  const known = state.field(knownField, false);
  const cell = readState(state);
  if (!known || cell === null || known.version !== state.field(versionField)) {
    return Decoration.none;
  }
  const places = ends(state, known.analysis, line => toOffset(state.doc, cell, { line, character: 0 }));
  const builder = new RangeSetBuilder<Decoration>();
  for (const [offset, text] of [...places].sort((a, b) => a[0] - b[0])) {
    builder.add(offset, offset, Decoration.widget({ widget: new Hint(text), side: 1 }));
  }
  return builder.finish();
}

// hints stand at the end of the line where a statement ends; several statements of one line share it
function ends(state: EditorState, analysis: Analysis, lineStart: (line: number) => number): Map<number, string> {
  const statements: { from: number; to: number }[] = [];
  treeOf(state).iterate({
    enter: node => {
      if (node.name === 'Statement' || node.name === 'CallStatement' || node.name === 'Assignment' || node.name === 'Return') {
        statements.push({ from: node.from, to: node.to });
      }
    }
  });
  const places = new Map<number, string>();
  for (const def of analysis.functions) {
    for (const statement of def.statements) {
      const text = hintText(def, statement);
      const line = state.doc.lineAt(Math.min(lineStart(statement.line), state.doc.length));
      const node = statements.find(item => item.from >= line.from && item.from <= line.to);
      const end = state.doc.lineAt(node?.to ?? line.to).to;
      if (text !== '') {
        places.set(end, places.has(end) ? `${places.get(end)}  ·  ${text}` : text);
      }
    }
  }
  return places;
}
