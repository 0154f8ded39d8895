/** Numbers and names that start with a digit: a run is a number if it is a valid one, else a name. */
import { ExternalTokenizer, type InputStream } from '@lezer/lr';
import { DigitName, Number as NumberTerm } from './tc.parser.terms.js';

const FLOAT = /^(?:(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)[fF]?|0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+[fF]?)(?!\w)/;
const INTEGER = /^(?:0[xX][\da-fA-F]+|0[bB][01]+|0|[1-9]\d*)(?:[uU](?:[lL]{1,2})?|[lL]{1,2})?(?!\w)/;
const LONGEST = 256;

const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isWord = (code: number): boolean => isDigit(code) || code === 95 || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);

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
  let length = 0;
  while (isWord(input.peek(length))) {
    length++;
  }
  if (length > 0) {
    input.acceptToken(DigitName, length);
  }
});

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
