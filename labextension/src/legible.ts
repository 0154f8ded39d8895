/**
 * Limits of what a page is given to draw. Chromium takes time that grows with the square of a run of characters that it draws as one,
 * marks over one letter or Thai without a space, and one run may go on through any number of elements. So does the time in which it
 * looks for the pairs of brackets where some letter is written from right to left.
 */
export const OMITTED = 'the rest is left out: too large';
/** Characters beyond ASCII without one of ASCII between them. */
const LONGEST_RUN = 200;
/** Characters beyond ASCII in all. */
const MOST_FOREIGN = 100_000;
const FOREIGN = /[^\0-\x7f]+/g;
const ENDS_FOREIGN = /[^\0-\x7f]$/;
/** Brackets in all, where a letter is written from right to left. */
const MOST_BRACKETS = 1000;
const BRACKET = /[\p{Ps}\p{Pe}]/gu;
const FROM_RIGHT = /[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufeff]|[\ud802\ud803\ud83a\ud83b][\udc00-\udfff]/g;

/** Texts that follow each other in a page, without what takes the page too long to draw. */
export class Legible {
  private run = 0;
  private all = 0;
  private brackets = 0;
  private isFromRight = false;

  of(text: string): string {
    return this.withPairs(this.withRuns(text));
  }

  /** A text with so few brackets that their pairs are found soon: behind too many no letter is written from right to left. */
  private withPairs(text: string): string {
    let shown = text;
    if (!this.isFromRight && text.search(FROM_RIGHT) >= 0) {
      this.isFromRight = this.brackets <= MOST_BRACKETS;
      shown = this.isFromRight ? text : text.replace(FROM_RIGHT, '');
    }
    return shown.replace(BRACKET, found => (++this.brackets > MOST_BRACKETS && this.isFromRight ? '' : found));
  }

  private withRuns(text: string): string {
    const shown = text.replace(FOREIGN, (found, at: number) => {
      const before = at === 0 ? this.run : 0;
      this.run = before + found.length;
      const left = Math.max(0, Math.min(LONGEST_RUN - before, MOST_FOREIGN - this.all));
      this.all += Math.min(left, found.length);
      return found.length <= left ? found : `${found.slice(0, left)}${left > 0 ? '…' : ''}`;
    });
    this.run = text === '' || ENDS_FOREIGN.test(text) ? this.run : 0;
    return shown;
  }
}

/** Values that are read of one output, where an object, which becomes a row or more, counts as several; characters of one text, and of all. */
const MOST_VALUES = 10_000;
const OF_OBJECT = 5;
const LONGEST_TEXT = 2000;
const MOST_TEXT = 200_000;
const MOST_LEVELS = 20;

/** The beginning of data that is small enough to be read and drawn, and whether it is all. */
export function beginning(data: unknown): { data: unknown; whole: boolean } {
  const left = { values: MOST_VALUES, text: MOST_TEXT };
  const copied = (value: unknown, level: number): unknown => {
    left.values -= typeof value === 'object' && value !== null ? OF_OBJECT : 1;
    if (typeof value === 'string') {
      const most = Math.min(LONGEST_TEXT, left.text);
      left.text -= Math.min(most, value.length);
      return value.length <= most ? value : `${value.slice(0, most)}…`;
    }
    if (typeof value !== 'object' || value === null) {
      return value;
    }
    if (level >= MOST_LEVELS) {
      return null;
    }
    const some = <T>(items: readonly T[], copy: (item: T) => unknown): unknown[] => {
      const found: unknown[] = [];
      for (const item of items) {
        if (left.values <= 0 || left.text <= 0) {
          break;
        }
        found.push(copy(item));
      }
      return found;
    };
    if (Array.isArray(value)) {
      return some(value, item => copied(item, level + 1));
    }
    const entries = some(Object.keys(value), key => [key, copied((value as Record<string, unknown>)[key], level + 1)]);
    return Object.fromEntries(entries as [string, unknown][]);
  };
  const found = copied(data, 0);
  return { data: found, whole: left.values > 0 && left.text > 0 };
}
