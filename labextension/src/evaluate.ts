/**
 * Values of the Python expressions of an analysis (bounds, shapes, conditions) for given sizes.
 *
 * Grammar: integers, names, `+ - * // %`, `min(..)`, `max(..)`, comparisons (they may chain), `and or not`, `a if c else b`,
 * parentheses. Division and remainder floor, as in Python. Values are exact below 2**53; beyond it, and for anything that cannot
 * be read, the answer is `null`.
 */
type Value = number | boolean;
export type Sizes = Readonly<Record<string, number>>;

export function evaluate(expression: string, sizes: Sizes): Value | null {
  try {
    return new Parser(expression, sizes).whole();
  } catch (error) {
    if (error instanceof Unreadable) {
      return null;
    }
    throw error;
  }
}

export function evaluateInteger(expression: string | null, sizes: Sizes): number | null {
  const value = expression === null ? null : evaluate(expression, sizes);
  return typeof value === 'number' ? value : null;
}

export function namesIn(expression: string): string[] {
  const names = expression.match(/[A-Za-z_]\w*/g) ?? [];
  return [...new Set(names)].filter(name => !WORDS.has(name));
}

const WORDS = new Set(['min', 'max', 'and', 'or', 'not', 'if', 'else', 'True', 'False']);
const TOKEN = /\s*(\d+|[A-Za-z_]\w*|\/\/|<=|>=|==|!=|[-+*%<>(),])/y;

class Unreadable extends Error {}

class Parser {
  private readonly tokens: string[] = [];
  private at = 0;

  constructor(
    source: string,
    private readonly sizes: Sizes
  ) {
    const text = source.trimEnd();
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < text.length) {
      const match = TOKEN.exec(text);
      if (match === null || this.tokens.length > 10_000) {
        throw new Unreadable();
      }
      this.tokens.push(match[1]);
    }
  }

  whole(): Value {
    const value = this.choice();
    if (this.at !== this.tokens.length) {
      throw new Unreadable();
    }
    return value;
  }

  private take(...wanted: string[]): string | null {
    const token = this.tokens[this.at];
    if (token === undefined || !wanted.includes(token)) {
      return null;
    }
    this.at++;
    return token;
  }

  private need(token: string): void {
    if (this.take(token) === null) {
      throw new Unreadable();
    }
  }

  private choice(): Value {
    const value = this.or();
    if (this.take('if') === null) {
      return value;
    }
    const condition = this.or();
    this.need('else');
    const other = this.choice();
    return condition ? value : other;
  }

  private or(): Value {
    let value = this.and();
    while (this.take('or') !== null) {
      const right = this.and();
      value = value || right;
    }
    return value;
  }

  private and(): Value {
    let value = this.not();
    while (this.take('and') !== null) {
      const right = this.not();
      value = value && right;
    }
    return value;
  }

  private not(): Value {
    return this.take('not') === null ? this.comparison() : !this.not();
  }

  private comparison(): Value {
    let left = this.sum();
    let value: Value = left;
    let chained = false;
    for (let op = this.take(...COMPARE); op !== null; op = this.take(...COMPARE)) {
      const right = this.sum();
      const holds = compare(op, Number(left), Number(right));
      value = chained ? Boolean(value) && holds : holds;
      chained = true;
      left = right;
    }
    return value;
  }

  private sum(): Value {
    let value = this.term();
    for (let op = this.take('+', '-'); op !== null; op = this.take('+', '-')) {
      const right = Number(this.term());
      value = exact(op === '+' ? Number(value) + right : Number(value) - right);
    }
    return value;
  }

  private term(): Value {
    let value = this.unary();
    for (let op = this.take('*', '//', '%'); op !== null; op = this.take('*', '//', '%')) {
      value = exact(arithmetic(op, Number(value), Number(this.unary())));
    }
    return value;
  }

  private unary(): Value {
    if (this.take('-') !== null) {
      return exact(-Number(this.unary()));
    }
    return this.take('+') === null ? this.atom() : this.unary();
  }

  private atom(): Value {
    const token = this.tokens[this.at++];
    if (token === undefined) {
      throw new Unreadable();
    }
    if (token === '(') {
      const value = this.choice();
      this.need(')');
      return value;
    }
    if (/^\d/.test(token)) {
      return exact(Number(token));
    }
    if (token === 'True' || token === 'False') {
      return token === 'True';
    }
    if (token === 'min' || token === 'max') {
      return this.extreme(token);
    }
    if (!Object.hasOwn(this.sizes, token)) {
      throw new Unreadable();
    }
    return exact(this.sizes[token]);
  }

  private extreme(name: 'min' | 'max'): Value {
    this.need('(');
    const values = [Number(this.choice())];
    while (this.take(',') !== null) {
      values.push(Number(this.choice()));
    }
    this.need(')');
    return Math[name](...values);
  }
}

const COMPARE = ['<', '<=', '>', '>=', '==', '!='];

function compare(op: string, a: number, b: number): boolean {
  switch (op) {
    case '<':
      return a < b;
    case '<=':
      return a <= b;
    case '>':
      return a > b;
    case '>=':
      return a >= b;
    case '==':
      return a === b;
    default:
      return a !== b;
  }
}

function arithmetic(op: string, a: number, b: number): number {
  if (op === '*') {
    return a * b;
  }
  if (b === 0) {
    throw new Unreadable();
  }
  const quotient = Math.floor(a / b);
  // a / b may round up to an integer: the remainder decides
  const floor = a - quotient * b < 0 === b > 0 && a !== quotient * b ? quotient - 1 : quotient;
  return op === '//' ? floor : a - floor * b;
}

function exact(value: number): number {
  if (!Number.isSafeInteger(value)) {
    throw new Unreadable();
  }
  return value === 0 ? 0 : value;
}
