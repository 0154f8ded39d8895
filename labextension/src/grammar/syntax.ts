/**
 * Syntax problems of a text, without a kernel: the error nodes of the Lezer tree, and the rules of the languages that a
 * context-free grammar does not say (names that start with a digit, one `...` per pattern, the form of a generator).
 *
 * Offsets are UTF-16 units of the text that was parsed. The Python parser decides; this is its quick shadow.
 */
import type { SyntaxNode, Tree } from '@lezer/common';
import type { LanguageName } from './language.js';

export interface Problem {
  readonly from: number;
  readonly to: number;
  readonly code: string;
  readonly message: string;
}

/** Reads a slice of the text: `doc.sliceString` of an editor, `text.slice` of a string. */
export type Slice = (from: number, to: number) => string;

const LIMIT = 100;

export function syntaxProblems(tree: Tree, language: LanguageName, slice: Slice): Problem[] {
  const problems = errorNodes(tree, slice);
  tree.iterate({
    enter: ref => {
      if (problems.length >= LIMIT) {
        return false;
      }
      problems.push(...rules(ref.node, language, slice));
      return undefined;
    }
  });
  return problems.sort((a, b) => a.from - b.from).slice(0, LIMIT);
}

function errorNodes(tree: Tree, slice: Slice): Problem[] {
  const found: Problem[] = [];
  let last = -1;
  tree.iterate({
    enter: ref => {
      if (!(ref.type.isError || ref.name === 'Missing') || found.length >= LIMIT) {
        return;
      }
      // neighbouring error nodes of one broken place are one problem
      if (ref.from <= last) {
        last = Math.max(last, ref.to);
        return;
      }
      last = ref.to;
      found.push(unexpected(ref.node, slice, tree.length));
    }
  });
  return found;
}

function unexpected(node: SyntaxNode, slice: Slice, length: number): Problem {
  const { from, to } = node;
  const parent = node.parent?.name ?? 'Cell';
  if (to > from) {
    const text = slice(from, Math.min(to, from + 24)).split('\n', 1)[0];
    return { from, to, code: codeOf(text), message: `unexpected \`${text}\`${place(parent)}` };
  }
  const next = slice(from, Math.min(length, from + 80)).match(/^\s*(\w+|->|[^\s\w])/)?.[1];
  const start = next === undefined ? Math.max(0, from - 1) : from;
  const message = next === undefined ? `unexpected end of the text${place(parent)}` : `something is missing before \`${next}\`${place(parent)}`;
  return { from: start, to: Math.min(length, start + 1), code: 'TC101', message };
}

function codeOf(text: string): string {
  if (/^[;'"@$`\\]|^[^\x00-\x7f]/.test(text)) {
    return 'TC103';
  }
  return text.startsWith('//') || text.startsWith('/*') ? 'TC104' : 'TC101';
}

const PLACES: Readonly<Record<string, string>> = {
  Cell: ' outside a def',
  Params: ' in the parameters',
  Results: ' in the results',
  Block: ' in the body',
  Where: ' in `where`',
  ArgList: ' in the arguments',
  Partition: ' in the partition',
  Generator: ' in the generator'
};

function place(parent: string): string {
  return PLACES[parent] ?? '';
}

function rules(node: SyntaxNode, language: LanguageName, slice: Slice): Problem[] {
  switch (node.name) {
    case 'DigitName':
      return digitName(node, slice);
    case 'Number':
      return tooLarge(node, language, slice);
    case 'VariableName':
      return language === 'sac' ? pythonWord(node, slice) : isSize(node) ? pythonKeyword(node, slice) : [];
    case 'TargetName':
      if (language === 'sac') {
        return otherStatement(node, slice);
      }
      // the first statement may well write a tensor of this name
      return /^(and|or|not)$/.test(text(node, slice)) && node.parent?.parent?.prevSibling?.name.endsWith('Statement')
        ? [{ from: node.from, to: node.to, code: 'TC107', message: `\`${text(node, slice)}\` is an operator of Python; here it is \`&&\`, \`||\`, \`!\`` }]
        : [];
    case 'AssignOp':
    case 'UpdateOp':
      return language === 'tc' ? lastMark(node, slice) : [];
    case 'Results':
      return node.getChild('Result') || node.getChild('⚠') ? [] : [{ from: node.from, to: node.to, code: 'TC210', message: 'a def has at least one result' }];
    case 'Shape':
      return wholeDims(node, slice, 'TC154', 'an extent is `.` or an integer');
    case 'Return':
      return resultCount(node);
    case 'Pattern':
      return pattern(node, slice);
    case 'Generator':
      return generator(node, slice);
    case 'ArrayLiteral':
      return listedDots(node);
    case 'NamedType':
      return namedType(node, slice);
    case 'ModuleName':
      return MODULES.has(text(node, slice)) ? [] : [{ from: node.from, to: node.to, code: 'TC156', message: `there is no module \`${text(node, slice)}\`` }];
    default:
      return [];
  }
}

const SUFFIX = /[uU]?[lL]{0,2}$/;
const SAC_SUFFIX = /[uU]?(?:[lL]{0,2}|[bBsSiI])$/;
/** By suffix, how many bits a number has at most: one less where the type is signed. */
const BITS: Readonly<Record<string, bigint>> = { '': 64n, b: 7n, s: 15n, i: 31n, l: 63n, ll: 63n, ub: 8n, us: 16n, ui: 64n, u: 64n, ul: 64n, ull: 64n };

function tooLarge(node: SyntaxNode, language: LanguageName, slice: Slice): Problem[] {
  const literal = text(node, slice);
  const digits = literal.replace(/^0[xX]/.test(literal) ? /[uUlLsSiI]+$/ : language === 'sac' ? SAC_SUFFIX : SUFFIX, '');
  if (!/^(?:\d+|0[xX][\da-fA-F]+|0[bB][01]+)$/.test(digits)) {
    return [];
  }
  const suffix = language === 'sac' ? literal.slice(digits.length).toLowerCase() : '';
  return BigInt(digits) < 1n << BITS[suffix in BITS ? suffix : '']
    ? []
    : [{ from: node.from, to: node.to, code: 'TC102', message: 'the number is larger than every integer type' }];
}

function pythonWord(node: SyntaxNode, slice: Slice): Problem[] {
  const word = text(node, slice);
  const good = { and: '&&', or: '||', not: '!' }[word];
  return good === undefined ? [] : [{ from: node.from, to: node.to, code: 'TC107', message: `\`${word}\` is an operator of Python; here it is \`${good}\`` }];
}

const STATEMENTS = new Set(['goto', 'break', 'continue', 'switch', 'def']);

const MODULES = new Set(
  (
    'Array ArrayArith ArrayBasics ArrayFormat ArrayReduce ArrayTransform Bits Bool Constants Math MathArray Numerical ' +
    'ScalarArith Structures'
  ).split(' ')
);

// `a[[., j]]` is `a[., j]`: elsewhere an array has no dots
function listedDots(node: SyntaxNode): Problem[] {
  const dots = [...node.getChildren('Dot'), ...node.getChildren('Dots')];
  const alone = node.parent?.name === 'Selection' && node.prevSibling?.name === '[' && node.nextSibling?.name === ']';
  return alone ? [] : dots.map(({ from, to }) => ({ from, to, code: 'TC101', message: 'an array has no dots' }));
}

// the name of a type is that of a `typedef` above
function namedType(node: SyntaxNode, slice: Slice): Problem[] {
  let top = node;
  for (let up: SyntaxNode | null = node; up; up = up.parent) {
    top = up;
  }
  const known = top.getChildren('Line').some(line => {
    const name = line.getChild('NewType');
    return name !== null && name.from < node.from && text(name, slice) === text(node, slice);
  });
  return known ? [] : [{ from: node.from, to: node.to, code: 'TC154', message: `\`${text(node, slice)}\` is not a type` }];
}

function otherStatement(node: SyntaxNode, slice: Slice): Problem[] {
  const word = text(node, slice);
  return STATEMENTS.has(word) ? [{ from: node.from, to: node.to, code: 'TC101', message: `\`${word}\` is not part of the language` }] : [];
}

function text(node: SyntaxNode, slice: Slice): string {
  return slice(node.from, node.to);
}

// a name such as `2fc` may be declared as a def or a tensor, and used where such a one is declared
function digitName(node: SyntaxNode, slice: Slice): Problem[] {
  const name = text(node, slice);
  const { from, to } = node;
  if (/^\d+$|^0[xXbB]/.test(name)) {
    return [{ from, to, code: 'TC102', message: `\`${name}\` is not a number` }];
  }
  if (node.parent?.name !== 'VariableName' && node.parent?.name !== 'CalleeName') {
    return [];
  }
  if (declared(node, slice).has(name)) {
    return [];
  }
  return [{ from, to, code: 'TC109', message: `\`${name}\` is neither a number nor a tensor; a product is written with \`*\`` }];
}

const DECLARING = new Set(['DefName', 'ParamName', 'ResultName', 'TargetName']);

function declared(node: SyntaxNode, slice: Slice): Set<string> {
  const names = new Set<string>();
  let top = node;
  let def: SyntaxNode | null = null;
  for (let up: SyntaxNode | null = node; up; up = up.parent) {
    top = up;
    def = up.name === 'Definition' ? up : def;
  }
  (def ?? top).cursor().iterate(ref => {
    if (DECLARING.has(ref.name)) {
      names.add(slice(ref.from, ref.to));
    }
  });
  for (const other of top.getChildren('Definition')) {
    const name = other.getChild('DefName');
    if (name) {
      names.add(text(name, slice));
    }
  }
  return names;
}

const PYTHON_KEYWORDS = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for from global if ' +
    'import in is lambda nonlocal not or pass raise return try while with yield'
  ).split(' ')
);

/** Whether a name stands in a dimension of a type. */
export function isSize(node: SyntaxNode): boolean {
  for (let above = node.parent; above !== null; above = above.parent) {
    if (above.name === 'Dims' || above.name === 'Block') {
      return above.name === 'Dims';
    }
  }
  return false;
}

// the `!` of `Y(i) =! X(i)` belongs to the operator; in `Y(i) =!b` it negates `b`
function lastMark(node: SyntaxNode, slice: Slice): Problem[] {
  const op = text(node, slice);
  return /^!\s/.test(slice(node.to, node.to + 2)) ? [{ from: node.from, to: node.to + 1, code: 'TC101', message: `there is no operator \`${op}!\`` }] : [];
}

function pythonKeyword(node: SyntaxNode, slice: Slice): Problem[] {
  const name = text(node, slice);
  return PYTHON_KEYWORDS.has(name)
    ? [{ from: node.from, to: node.to, code: 'TC108', message: `\`${name}\` is a word of Python and cannot name a size` }]
    : [];
}

function wholeDims(node: SyntaxNode, slice: Slice, code: string, message: string): Problem[] {
  return node
    .getChildren('Number')
    .filter(child => /[.pP]|^\d+[eE]/.test(text(child, slice)))
    .map(({ from, to }) => ({ from, to, code, message }));
}

// `return a, b;` and `return (a, b);` give two results
function resultCount(node: SyntaxNode): Problem[] {
  const types = node.parent?.parent?.getChild('ResultTypes')?.getChildren('Type').length ?? 0;
  const values = node.getChild('Tuple') ?? node;
  let commas = 0;
  let broken = false;
  for (let child = values.firstChild; child; child = child.nextSibling) {
    commas += child.name === ',' ? 1 : 0;
    broken ||= child.type.isError;
  }
  return broken || types === 0 || types === commas + 1
    ? []
    : [{ from: node.from, to: node.to, code: 'TC155', message: `${types} results are declared, ${commas + 1} returned` }];
}

function pattern(node: SyntaxNode, slice: Slice): Problem[] {
  const dots = node.getChildren('Dots');
  const seen = new Set<string>();
  const found = dots.slice(1).map(({ from, to }) => ({ from, to, code: 'TC151', message: 'more than one `...` in a pattern' }));
  for (const name of node.getChildren('Iterator')) {
    if (seen.has(text(name, slice))) {
      found.push({ from: name.from, to: name.to, code: 'TC207', message: `\`${text(name, slice)}\` is bound twice in one pattern` });
    }
    seen.add(text(name, slice));
  }
  if (node.parent?.name === 'Generator' || node.getChild('AssignOp')) {
    found.push(...[...dots, ...node.getChildren('Dot')].map(({ from, to }) => ({ from, to, code: 'TC101', message: 'a with-loop has no dots between its names' })));
  }
  return found;
}

function generator(node: SyntaxNode, slice: Slice): Problem[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) {
    if (child.name === 'step') {
      break;
    }
    if (!child.type.isError && !child.name.endsWith('Comment') && child.name !== 'Whole') {
      children.push(child);
    }
  }
  if (node.parent?.name === 'WithPart') {
    return [];
  }
  const names = node.parent?.name === 'Partition' ? patternNames(node.parent, slice) : null;
  const relations = children.filter(child => child.name === 'CompareOp');
  if (names === null || children.length < 3 || children.length % 2 === 0) {
    return [];
  }
  if (children.length === 5) {
    return [...relation(relations[0], '<=', slice), ...relation(relations[1], '<', slice), ...sameNames(children[2], names, slice)];
  }
  // `lb <= iv` or `iv < ub`: the relation tells on which side the names stand
  const side = text(relations[0], slice) === '<=' ? children[2] : children[0];
  return sameNames(side, names, slice);
}

function relation(node: SyntaxNode, wanted: string, slice: Slice): Problem[] {
  return text(node, slice) === wanted
    ? []
    : [{ from: node.from, to: node.to, code: 'TC152', message: `a generator has the form \`lower <= index < upper\`; \`${wanted}\` is expected here` }];
}

function patternNames(partition: SyntaxNode, slice: Slice): string | null {
  const pattern = partition.getChild('Pattern');
  if (!pattern) {
    return null;
  }
  const names = pattern.getChildren('Iterator').map(item => text(item, slice));
  if (pattern.getChild('AssignOp')) {
    return `[${names.slice(1).join(',')}]`;
  }
  return pattern.firstChild?.name === 'Iterator' ? names[0] : `[${names.join(',')}]`;
}

function sameNames(node: SyntaxNode, wanted: string, slice: Slice): Problem[] {
  const got = text(node, slice).replace(/\s+|\/\*[^]*?\*\/|\/\/.*/g, '');
  const pattern = node.parent?.parent?.getChild('Pattern');
  const whole = pattern?.getChild('AssignOp') ? pattern.firstChild : null;
  return got === wanted || (whole && got === text(whole, slice))
    ? []
    : [{ from: node.from, to: node.to, code: 'TC153', message: `a generator repeats the names of its pattern: \`${wanted}\`` }];
}
