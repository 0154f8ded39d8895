/**
 * Numbers and names that start with a digit: a run is a number if it is a valid one, else a name.
 *
 * Names that are assigned to: they stand in no expression. So the parser knows where the next statement begins while a bracket of this
 * one is still open, and what a person types in one line changes no colour in the others. In `%%sac`, where statements end with `;`,
 * a line that begins with such a name, with `return` or with a pattern tells what the lines above lack: tokens without a text are put in.
 */
import { ExternalTokenizer, type InputStream } from '@lezer/lr';
import * as sac from './sac.parser.terms.js';
import { assignedName, blockAlong, DigitName, name, Number as NumberTerm, ReduceOp } from './tc.parser.terms.js';
import { vocabularies } from './vocabulary.js';

const FLOAT = /^(?:(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)[fF]?|0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+[fF]?)(?!\w)/;
const INTEGER = /^(?:0[xX][\da-fA-F]+|0[bB][01]+|0|[1-9]\d*)(?:[uU](?:[lL]{1,2})?|[lL]{1,2})?(?!\w)/;
const LONGEST = 256;

const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isWord = (code: number): boolean => isDigit(code) || code === 95 || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13);

export const numbers = new ExternalTokenizer(input => {
  if (!isDigit(input.next) && !(input.next === 46 && isDigit(input.peek(1)))) {
    return;
  }
  const text = ahead(input);
  const number = FLOAT.exec(text) ?? INTEGER.exec(text);
  if (number !== null) {
    input.acceptToken(NumberTerm, number[0].length);
    return;
  }
  const length = wordLength(input);
  if (length > 0) {
    input.acceptToken(DigitName, length);
  }
});

const RESERVED = new Set([...vocabularies.tc.keywords, ...vocabularies.tc.constants, ...vocabularies.tc.types, ...vocabularies.tc.reductions]);
/** Characters of the indices of a target at most. */
const WIDEST = 120;
const OPERATORS = new Set(['min', 'max', 'argmin', 'argmax', 'any', 'all', 'lse']);
const ASSIGNMENT = /^(?:[+*]?=(?!=)|(?:min|max)=(?!=)|(?:argmin|argmax|any|all|lse)=!|[A-Za-z_]\w*=!\s)/;
const BLOCK = /^\s*-?\s*[A-Za-z_]\w*\s+in\b/;
const DERIVED = /^(?:\.(?:vjp|jvp))+(?=[ \t]*\()/;
/** Characters in which an operator with `=!` is looked for. */
const LONGEST_OPERATOR = 64;

export const tcNames = new ExternalTokenizer((input, stack) => {
  if (!isWord(input.next) || isDigit(input.next)) {
    return;
  }
  const length = wordLength(input);
  // the extent of a dimension, `A.0`
  if (input.peek(length) === 46 && isDigit(input.peek(length + 1))) {
    return;
  }
  // the derivative of a def, `conv.vjp(`
  const derived = DERIVED.exec(word(input, length, LONGEST_OPERATOR));
  if (derived !== null) {
    input.acceptToken(name, length + derived[0].length);
    return;
  }
  const text = word(input, 0, length);
  if (OPERATORS.has(text) && ASSIGNMENT.test(word(input, 0, length + 3))) {
    return;
  }
  if (text === 'along' && BLOCK.test(word(input, length, LONGEST_OPERATOR))) {
    input.acceptToken(blockAlong, length);
    return;
  }
  // the operator of a reducer, where a left side stands before it; elsewhere `y=!b` is `y = !b`
  if (word(input, length, 2) === '=!' && input.peek(length + 2) !== 61 && !RESERVED.has(text) && stack.canShift(ReduceOp)) {
    input.acceptToken(ReduceOp, length + 2);
    return;
  }
  const after = afterIndices(input, afterSpace(input, length));
  const assigned = after !== null && !RESERVED.has(text) && ASSIGNMENT.test(word(input, after, LONGEST_OPERATOR));
  input.acceptToken(assigned ? assignedName : name, length);
}, { contextual: true });

/** Keywords in their places only, names elsewhere. */
const FREE = new Set(['use', 'import', 'step', 'width']);
const SAC_RESERVED = new Set([...vocabularies.sac.keywords.filter(each => !FREE.has(each)), ...vocabularies.sac.constants, ...vocabularies.sac.types]);
const LETTER = /\p{L}/u;
const isSacWord = (code: number): boolean => isWord(code) || (code > 127 && LETTER.test(String.fromCharCode(code)));

// in the midst of a line a token is a plain one: there the parser recovers by itself; what can be put in depends on its state
export const sacTokens = new ExternalTokenizer(
  (input, stack) => {
    const length = input.next === 91 ? 1 : isDigit(input.next) ? 0 : wordLength(input, isSacWord);
    if (length === 0) {
      return;
    }
    const plain: First = { token: input.next === 91 ? sac.open : sac.name, missing: [] };
    const { token, missing } = beginsLine(input) ? (first(input, length) ?? plain) : plain;
    const lacking = missing.find(term => stack.canShift(term));
    input.acceptToken(lacking ?? token, lacking === undefined ? length : 0);
  },
  { contextual: true }
);

/** A token that begins a line, and what may be put in before it. */
interface First {
  readonly token: number;
  readonly missing: readonly number[];
}

const BEFORE_STATEMENT = [sac.missingClose, sac.missingEnd, sac.missingOperand];
const BEFORE_PART = [sac.missingPart, sac.missingClose, sac.missingOperand];

function first(input: InputStream, length: number): First | null {
  if (input.next === 91) {
    return opensPattern(input) ? { token: sac.patternOpen, missing: BEFORE_PART } : null;
  }
  const text = word(input, 0, length);
  if (SAC_RESERVED.has(text)) {
    return text === 'return' ? { token: sac.name, missing: BEFORE_STATEMENT } : null;
  }
  const place = afterSpace(input, length);
  const after = word(input, place, 2);
  if (after === '->' || (after[0] === '=' && after[1] !== '=' && opensPattern(input, afterSpace(input, place + 1)))) {
    return { token: sac.patternName, missing: BEFORE_PART };
  }
  return (after[0] === '=' && after[1] !== '=') || /^[-+*/%]=$/.test(after) ? { token: sac.assignedName, missing: BEFORE_STATEMENT } : null;
}

function beginsLine(input: InputStream): boolean {
  let at = -1;
  while (input.peek(at) !== 10 && isSpace(input.peek(at))) {
    at--;
  }
  return input.peek(at) === 10;
}

// the `[` of `[i, .., k] ->`, in which no other bracket stands
function opensPattern(input: InputStream, start = 0): boolean {
  if (input.peek(start) !== 91) {
    return false;
  }
  let at = start + 1;
  while (at < WIDEST && (isSacWord(input.peek(at)) || isSpace(input.peek(at)) || input.peek(at) === 44 || input.peek(at) === 46)) {
    at++;
  }
  return input.peek(at) === 93 && word(input, afterSpace(input, at + 1), 2) === '->';
}

function wordLength(input: InputStream, isPart: (code: number) => boolean = isWord): number {
  let length = 0;
  while (isPart(input.peek(length))) {
    length++;
  }
  return length;
}

function afterSpace(input: InputStream, at: number): number {
  while (isSpace(input.peek(at))) {
    at++;
  }
  return at;
}

// behind `(i, j)` and the space after it; the same place if there is none, `null` if it has no end
function afterIndices(input: InputStream, start: number): number | null {
  if (input.peek(start) !== 40) {
    return start;
  }
  for (let at = start, depth = 0; at < start + WIDEST; at++) {
    const code = input.peek(at);
    depth += code === 40 ? 1 : code === 41 ? -1 : 0;
    if (depth === 0) {
      return afterSpace(input, at + 1);
    }
    if (code === 35 || code === 61 || code < 0) {
      return null; // a comment, an assignment, the end
    }
  }
  return null;
}

function word(input: InputStream, at: number, length: number): string {
  return String.fromCharCode(...Array.from({ length }, (_, i) => Math.max(0, input.peek(at + i))));
}

function ahead(input: InputStream): string {
  let text = '';
  for (let i = 0; i < LONGEST; i++) {
    const code = input.peek(i);
    if (!isWord(code) && code !== 46 && code !== 43 && code !== 45) {
      break;
    }
    text += String.fromCharCode(code);
  }
  return text;
}
