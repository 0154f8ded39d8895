/**
 * Which cells are `%%tc` or `%%sac`, and the three coordinate systems of a position.
 *
 * - `CellOffset`: UTF-16 units from the start of the cell, what CodeMirror counts;
 * - `BodyOffset`: the same from the start of the body (the text after the magic line);
 * - `Position`: line of the body and Unicode code points in that line, what the kernel counts.
 *
 * This is the only file that converts between them.
 */
import type { Text } from '@codemirror/state';
import type { LanguageName } from './grammar/language.js';
import type { Position, Span } from './protocol.js';

export type CellOffset = number & { readonly unit: 'cell' };
export type BodyOffset = number & { readonly unit: 'body' };

export interface CellRange {
  readonly from: CellOffset;
  readonly to: CellOffset;
}

/** The part of CodeMirror's `Text` that is needed here. */
export type Doc = Pick<Text, 'line' | 'lineAt' | 'lines' | 'length' | 'sliceString'>;

/** A cell taken apart: `magic` is `""` in a file, where the body is the whole text. */
export interface TcCell {
  readonly language: LanguageName;
  readonly magic: string;
  /** number of the first line of the body, counted from 1 as CodeMirror does; may be one past the last line */
  readonly firstLine: number;
  readonly bodyStart: CellOffset;
}

/** Cell magics that may stand above `%%tc` or `%%sac`. */
const TRANSPARENT = /^%%(time|timeit|capture|prun)(\s|$)/;
const MAGIC = /^%%(tc|sac)(?=\s|$)/;

export const cellOffset = (offset: number): CellOffset => offset as CellOffset;

/** Take a cell apart, or `null` if it is in another language. Looks at the first lines only. */
export function readCell(doc: Doc): TcCell | null {
  for (let number = 1; number <= doc.lines; number++) {
    const line = doc.line(number);
    const magic = MAGIC.exec(line.text);
    if (magic) {
      const language = magic[1] as LanguageName;
      const start = Math.min(line.to + 1, doc.length);
      return { language, magic: line.text.trimEnd(), firstLine: number + 1, bodyStart: cellOffset(start) };
    }
    if (!TRANSPARENT.test(line.text) && line.text.trim() !== '') {
      return null;
    }
  }
  return null;
}

/** The language of a cell from its plain text; cheap for every other cell. */
export function languageOf(source: string): LanguageName | null {
  for (let start = 0; start <= source.length; ) {
    const end = source.indexOf('\n', start);
    const line = source.slice(start, end < 0 ? undefined : end);
    const magic = MAGIC.exec(line);
    if (magic) {
      return magic[1] as LanguageName;
    }
    if ((!TRANSPARENT.test(line) && line.trim() !== '') || end < 0) {
      return null;
    }
    start = end + 1;
  }
  return null;
}

/** Magic line and body of a plain text; `null` for a cell in another language. */
export function splitSource(source: string): { language: LanguageName; magic: string; body: string; firstLine: number } | null {
  const language = languageOf(source);
  if (language === null) {
    return null;
  }
  const lines = source.split('\n');
  const at = lines.findIndex(line => MAGIC.test(line));
  return { language, magic: lines[at].trimEnd(), body: lines.slice(at + 1).join('\n'), firstLine: at + 1 };
}

/** A whole file as a "cell" whose body is everything. */
export function wholeFile(language: LanguageName): TcCell {
  return { language, magic: language === 'sac' ? '%%sac' : '', firstLine: 1, bodyStart: cellOffset(0) };
}

export function body(doc: Doc, cell: TcCell): string {
  return cell.firstLine > doc.lines ? '' : doc.sliceString(cell.bodyStart);
}

export function toBody(cell: TcCell, offset: CellOffset): BodyOffset {
  return Math.max(0, offset - cell.bodyStart) as BodyOffset;
}

export function toCell(cell: TcCell, offset: BodyOffset): CellOffset {
  return cellOffset(offset + cell.bodyStart);
}

/** UTF-16 offset -> position for the kernel. Offsets in the magic line become the start of the body. */
export function toPosition(doc: Doc, cell: TcCell, offset: CellOffset): Position {
  if (offset < cell.bodyStart || cell.firstLine > doc.lines) {
    return { line: 0, character: 0 };
  }
  const line = doc.lineAt(Math.min(offset, doc.length));
  return { line: line.number - cell.firstLine, character: codePoints(line.text.slice(0, offset - line.from)) };
}

/** Position of the kernel -> UTF-16 offset; positions beyond the text are moved to its nearest end. */
export function toOffset(doc: Doc, cell: TcCell, position: Position): CellOffset {
  const number = cell.firstLine + position.line;
  if (position.line < 0) {
    return cell.bodyStart;
  }
  if (number > doc.lines) {
    return cellOffset(doc.length);
  }
  const line = doc.line(number);
  return cellOffset(line.from + units(line.text, position.character));
}

export function toRange(doc: Doc, cell: TcCell, span: Span): CellRange {
  const from = toOffset(doc, cell, span.start);
  const to = toOffset(doc, cell, span.end);
  return { from, to: cellOffset(Math.max(from, to)) };
}

export function toSpan(doc: Doc, cell: TcCell, range: CellRange): Span {
  return { start: toPosition(doc, cell, range.from), end: toPosition(doc, cell, range.to) };
}

function codePoints(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; count++) {
    i += wide(text, i) ? 2 : 1;
  }
  return count;
}

function units(text: string, points: number): number {
  let i = 0;
  for (let count = 0; count < points && i < text.length; count++) {
    i += wide(text, i) ? 2 : 1;
  }
  return i;
}

// a lone half of a surrogate pair counts as one code point, as in Python
function wide(text: string, i: number): boolean {
  return text.codePointAt(i)! > 0xffff;
}
