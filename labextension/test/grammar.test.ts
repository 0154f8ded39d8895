import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EditorState } from '@codemirror/state';
import { foldable, indentUnit, getIndentation, syntaxTree } from '@codemirror/language';
import { highlightTree, classHighlighter } from '@lezer/highlight';
import { languages, support, type LanguageName } from '../src/grammar/language.js';
import { corpus, names, problems } from './support.js';

for (const language of ['tc', 'sac'] as const) {
  for (const example of corpus(language)) {
    test(`${language} ${example.accept ? 'accepts' : 'rejects'} ${example.title}`, () => {
      const found = problems(language, example.text);
      assert.equal(found.length === 0, example.accept, JSON.stringify(found));
      if (example.outline !== null) {
        assert.deepEqual(names(language, example.text), example.outline);
      }
    });
  }
}

function classes(language: LanguageName, text: string): Record<string, string> {
  const found: Record<string, string> = {};
  highlightTree(languages[language].parser.parse(text), classHighlighter, (from, to, name) => {
    found[text.slice(from, to)] = name;
  });
  return found;
}

test('token classes of tc', () => {
  const found = classes('tc', '%%tc --strict\ndef f(float(N) X) -> (Y) { Y(i) +=! X(i) + 1.5 where i in 0:N } # end');
  assert.equal(found['%%tc --strict'], 'tok-meta');
  assert.equal(found['def'], 'tok-keyword');
  assert.equal(found['f'], 'tok-variableName tok-definition');
  assert.equal(found['i'], 'tok-variableName2');
  assert.equal(found['+=!'], 'tok-operator');
  assert.equal(found['1.5'], 'tok-number');
  assert.equal(found['# end'], 'tok-comment');
});

// what a person types in one line, half done, changes no colour in the others: each would be drawn anew with every key
test('a statement that is not finished leaves the colours of the other lines as they are', () => {
  const lines = [
    'def f(float(N,M) A, float(M) B) -> (C, D, E) {',
    '  C(i) +=! A(i,k) * (B(k) + 1) where k in 0:M',
    '  D(i,j) = max(A(i,j), C(i)) where x = i + j',
    '  E = 0',
    '  T(i) min=! A(i,k) * 2.5',
    '}'
  ];
  const at = 2;
  const colours = (changed: string): string[] => {
    const found: string[] = [];
    const text = lines.map((line, n) => (n === at ? changed : line)).join('\n');
    highlightTree(languages.tc.parser.parse(text), classHighlighter, (from, to, name) => {
      if (text.slice(0, from).split('\n').length - 1 !== at) {
        found.push(`${text.slice(from, to)}: ${name}`);
      }
    });
    return found;
  };
  const before = colours(lines[at]);
  for (let end = 0; end <= lines[at].length; end++) {
    assert.deepEqual(colours(lines[at].slice(0, end)), before, lines[at].slice(0, end));
  }
  // but not its first name: `0:M (i,j)` reads an element of `M`
  for (const token of [...lines[at].matchAll(/\w+|[^\w\s]/g)].slice(1)) {
    const rest = lines[at].slice(0, token.index) + lines[at].slice(token.index + token[0].length);
    assert.deepEqual(colours(rest), before, rest);
  }
});

const half = (line: string): string[] => Array.from(line, (_, end) => line.slice(0, end));
const without = (line: string): string[] =>
  [...line.matchAll(/\w+|[^\w\s]/g)].map(found => line.slice(0, found.index) + line.slice(found.index + found[0].length));

// as above: what a line lacks is put in before the next one that begins with `name =`, `return` or `pattern ->`
test('a line of sac that is not finished leaves the colours of the other lines as they are', () => {
  const lines = [
    'double[.], double[.] f(double[.] a, double[.] b) {',
    '  x = a + b;',
    '  y = x * (b[[1]] + 1.0) + { [i] -> a[i] | [i] < [3] };',
    '  größe = take([3], y) - with { ([0] <= iv < [3]) : a[iv]; } : genarray([3], 0.0);',
    '  z = {',
    '    [i, j] -> x[i] * y[j] | [1,1] <= [i,j] < [3,4];',
    '    iv -> largest(size, (a[iv] + 1)) | iv < [5,6]',
    '  };',
    '  return (z, x);',
    '}'
  ];
  const colours = (at: number, changed: string): string[] => {
    const found: string[] = [];
    const text = lines.map((line, n) => (n === at ? changed : line)).join('\n');
    highlightTree(languages.sac.parser.parse(text), classHighlighter, (from, to, name) => {
      if (text.slice(0, from).split('\n').length - 1 !== at) {
        found.push(`${text.slice(from, to)}: ${name}`);
      }
    });
    return found;
  };
  for (const at of [1, 2, 3]) {
    for (const changed of [...half(lines[at]), ...without(lines[at])]) {
      assert.deepEqual(colours(at, changed), colours(at, lines[at]), changed);
    }
  }
  const part = lines[5];
  for (const changed of half(part).slice(part.indexOf('->') + 2)) {
    assert.deepEqual(colours(5, changed), colours(5, part), changed);
  }
});

test('what is put in is a problem, one for every place', () => {
  const found = (text: string): string[][] => problems('sac', text).map(p => [p.code, text.slice(p.from)]);
  assert.deepEqual(found('int f(int a) {\n  x = a\n  y = x;\n  return y;\n}'), [['TC101', 'y = x;\n  return y;\n}']]);
  assert.deepEqual(found('int f(int a) {\n  x = g((a +\n  return x;\n}'), [['TC101', 'return x;\n}']]);
  assert.deepEqual(found('int[*] f() { return {\n iv -> 1 | iv < [3]\n [i] -> 2 | [i] < [5] };\n}'), [['TC101', '[i] -> 2 | [i] < [5] };\n}']]);
});

test('token classes of sac', () => {
  const found = classes('sac', '%%sac\nfloat[*] f(float[*] A) { return { iv -> A[iv] + 1 }; } // end');
  assert.equal(found['%%sac'], 'tok-meta');
  assert.equal(found['return'], 'tok-keyword');
  assert.equal(found['iv'], 'tok-variableName');
  assert.equal(found['// end'], 'tok-comment');
});

test('a problem is where the mistake is, with its code', () => {
  const text = '%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(3i); }';
  const found = problems('tc', text).map(p => [p.code, text.slice(p.from, p.to)]);
  assert.deepEqual(found, [
    ['TC109', '3i'],
    ['TC103', ';']
  ]);
});

test('stacked magics and blank lines may stand above', () => {
  assert.deepEqual(problems('tc', '\n%%time\n%%tc\ndef f() -> (Y) { Y(i) = i where i in 0:3 }'), []);
});

test('a text of nonsense gives a bounded list', () => {
  assert.ok(problems('tc', '; '.repeat(100_000)).length <= 100);
  assert.ok(problems('sac', '{'.repeat(20_000)).length <= 100);
});

test('folding, indentation and comment tokens', () => {
  const doc = '%%tc\ndef f(float(N) X) -> (Y) {\nY(i) = X(i)\n}\n';
  const state = EditorState.create({ doc, extensions: [support('tc'), indentUnit.of('    ')] });
  assert.ok(syntaxTree(state).length > 0);
  const header = state.doc.line(2);
  assert.deepEqual(foldable(state, header.from, header.to), { from: header.to, to: doc.lastIndexOf('}') });
  assert.equal(getIndentation(state, state.doc.line(3).from), 4);
  assert.equal(getIndentation(state, state.doc.line(4).from), 0);
  assert.deepEqual(state.languageDataAt('commentTokens', 10)[0], { line: '#' });
});
