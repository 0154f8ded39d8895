import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChangeSet, RangeSet, Text } from '@codemirror/state';
import { NOTHING, redrawn, type Drawn, type Span } from '../src/colours.js';

const spans = (doc: Text): Span[] => [...doc.toString().matchAll(/\w+|"[^"]*"/g)].map(found => ({ from: found.index, to: found.index + found[0].length, look: /\d/.test(found[0]) ? 'number' : 'word' }));
const fresh = (doc: Text): Drawn => redrawn(NOTHING, ChangeSet.empty(doc.length), spans(doc), doc);

function marks({ marks }: Drawn): unknown[] {
  const found: unknown[] = [];
  for (const at = marks.iter(); at.value !== null; at.next()) {
    found.push([at.from, at.to, at.value.spec]);
  }
  return found;
}

// lines of names and numbers, and a text of two lines
const START = Text.of([...Array.from({ length: 30 }, (_, i) => `  T${i}(i) = A(i + ${i}) * 2`), 'x "two', 'lines" y', '']);

test('after any change the marks are those of the new text', () => {
  let doc = START;
  let drawn = fresh(doc);
  for (let step = 0; step < 300; step++) {
    const from = (step * 7919) % (doc.length + 1);
    const to = Math.min(doc.length, from + (step % 3));
    const changes = ChangeSet.of({ from, to, insert: ['', 'a', ' ', '\n', '"', '12 b'][step % 6] }, doc.length);
    doc = changes.apply(doc);
    drawn = redrawn(drawn, changes, spans(doc), doc);
    assert.deepEqual(marks(drawn), marks(fresh(doc)), `step ${step}`);
    assert.equal(spans(doc).length, marks(drawn).length);
  }
});

test('a character that is typed or deleted changes marks of its line only', () => {
  const line = START.line(10);
  for (const change of [{ from: line.from + 8, to: line.from + 9 }, { from: line.from + 8, insert: '3' }]) {
    const changes = ChangeSet.of(change, START.length);
    const before = fresh(START);
    const doc = changes.apply(START);
    const after = redrawn(before, changes, spans(doc), doc);
    const changed: number[] = [];
    RangeSet.compare([before.marks], [after.marks], changes, {
      compareRange: from => void changed.push(from),
      comparePoint: from => void changed.push(from),
      boundChange: from => void changed.push(from)
    });
    assert.deepEqual(changed.filter(place => doc.lineAt(place).number !== 10), []);
    assert.notDeepEqual(marks(before), marks(after));
  }
});
