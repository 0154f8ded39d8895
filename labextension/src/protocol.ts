/**
 * The messages of PROTOCOL.md as types, and readers that never throw: whatever arrives, a reader returns a value of its type or
 * `null`. A malformed part of an answer is left out; the rest is kept.
 */
export const VERSION = 1;
export const TARGET = 'tc_jupyter';
export const MIME = 'application/vnd.tc-jupyter.v1+json';
/** Cells above this many UTF-16 units are not sent while typing. */
export const MAX_SOURCE = 200_000;
/** Diagnostics drawn of one answer. */
export const MAX_DIAGNOSTICS = 500;

export type Kind = 'check' | 'hover' | 'complete' | 'signature' | 'definition' | 'references' | 'rename' | 'format' | 'inspect' | 'keywords';

export interface Position {
  readonly line: number;
  readonly character: number;
}
export interface Span {
  readonly start: Position;
  readonly end: Position;
}
export interface Edit {
  readonly span: Span;
  readonly text: string;
}
export type Severity = 'error' | 'warning' | 'note';

export interface Diagnostic {
  readonly code: string;
  readonly name: string;
  readonly severity: Severity;
  readonly message: string;
  readonly help: string | null;
  readonly span: Span;
  /** `file`: it is in another file */
  readonly labels: readonly { readonly span: Span; readonly text: string; readonly file: string | null }[];
  readonly fix: { readonly title: string; readonly edits: readonly Edit[] } | null;
}

export interface IndexRange {
  readonly name: string;
  readonly kind: string;
  readonly lower: string | null;
  readonly upper: string | null;
  readonly round: number | null;
  readonly source: string;
  readonly because: readonly string[];
}
export interface Statement {
  readonly line: number;
  readonly target: string;
  readonly operator: string;
  readonly indices: readonly IndexRange[];
  readonly callee: string | null;
  readonly arguments: readonly string[];
  readonly targets: readonly string[];
}
export interface TensorInfo {
  readonly name: string;
  readonly dtype: string;
  /** extents as Python expressions; `null` when the rank is known only at the call */
  readonly shape: readonly string[] | null;
  readonly origin: readonly string[] | null;
}
export interface Precondition {
  readonly text: string;
  readonly status: string;
  readonly kind: string;
  readonly subject: string;
  readonly span: Span | null;
}
export interface FunctionInfo {
  readonly name: string;
  readonly sizes: readonly string[];
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  readonly temporaries: readonly TensorInfo[];
  readonly statements: readonly Statement[];
  readonly preconditions: readonly Precondition[];
}
export interface Analysis {
  readonly functions: readonly FunctionInfo[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface Hover {
  readonly span: Span;
  readonly kind: string;
  readonly title: string;
  readonly lines: readonly string[];
  readonly documentation: string | null;
}
export interface CompletionItem {
  readonly label: string;
  readonly type: string;
  readonly detail: string | null;
  readonly documentation: string | null;
  readonly apply: string | null;
}
export interface Completions {
  readonly span: Span;
  readonly items: readonly CompletionItem[];
}
export interface SignatureHelp {
  readonly label: string;
  readonly parameters: readonly (readonly [number, number])[];
  readonly active: number;
  readonly documentation: string | null;
  readonly span: Span;
}
export interface Definition {
  readonly name: string;
  readonly kind: string;
  readonly cell: string | null;
  readonly span: Span | null;
  /** path of the file that it is in, from the folder of the kernel, and the place there */
  readonly file: string | null;
  readonly inFile: Span | null;
}
export interface Rename {
  readonly span: Span | null;
  readonly name: string;
  readonly kind: string;
  readonly edits: readonly Edit[];
  readonly refused: string | null;
}
export interface Format {
  readonly text: string | null;
  readonly refused: string | null;
}
export interface DefState {
  readonly name: string;
  readonly span: Span | null;
  readonly state: string;
  readonly target: string | null;
  readonly errors: number;
  readonly warnings: number;
  readonly signature: string;
  readonly shapes: readonly string[];
  readonly calls: readonly string[];
}
export interface CellStates {
  readonly package: string;
  readonly engine: { readonly target: string; readonly device: string; readonly note: string | null } | null;
  readonly cells: readonly { readonly cell: string; readonly version: number; readonly defs: readonly DefState[] }[];
  readonly others: readonly { readonly name: string; readonly state: string; readonly signature: string }[];
}
export interface Code {
  readonly form: string;
  readonly forms: readonly string[];
  readonly text: string | null;
  readonly lines: readonly (number | null)[];
  readonly note: string | null;
}
export interface ScheduleView {
  readonly sizes: Readonly<Record<string, number>>;
  readonly primitives: readonly string[];
  readonly loops: string;
  readonly stages: readonly {
    readonly stage: string;
    readonly loops: readonly { readonly name: string; readonly min: string; readonly extent: string; readonly annotation: string | null }[];
  }[];
  readonly diagnostics: readonly string[];
  readonly note: string | null;
}
export interface Keywords {
  readonly package: string;
  readonly functions: readonly { readonly name: string; readonly parameters: readonly string[]; readonly documentation: string | null }[];
  readonly keywords: readonly string[];
  readonly types: readonly string[];
}
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly help: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}
const string = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const text = (value: unknown): string => string(value) ?? '';
/** Of one list, and characters of one condition or bound: as many as a reader looks at, whatever a saved notebook holds. */
const MOST_ITEMS = 5000;
const MOST_CHARACTERS = 2000;
const short = (value: unknown): string => (text(value).length > MOST_CHARACTERS ? `${text(value).slice(0, MOST_CHARACTERS)}…` : text(value));
function list<T>(value: unknown, read: (item: unknown) => T | null): T[] {
  return Array.isArray(value) ? value.slice(0, MOST_ITEMS).map(read).filter((item): item is T & {} => item !== null) : [];
}
const strings = (value: unknown): string[] => list(value, string);

/** A reader of objects that are nothing without the text under `key`. */
function named<T>(key: string, read: (name: string, v: Fields) => T): (value: unknown) => T | null {
  return value => {
    const v = fields(value);
    const name = string(v?.[key]);
    return v === null || name === null ? null : read(name, v);
  };
}

/** A reader of objects that are nothing without their place in the text. */
function placed<T>(read: (span: Span, v: Fields) => T | null): (value: unknown) => T | null {
  return value => {
    const v = fields(value);
    const span = readSpan(v?.span);
    return v === null || span === null ? null : read(span, v);
  };
}

export function readPosition(value: unknown): Position | null {
  const v = fields(value);
  const line = number(v?.line);
  const character = number(v?.character);
  return line === null || character === null ? null : { line: Math.trunc(line), character: Math.max(0, Math.trunc(character)) };
}

export function readSpan(value: unknown): Span | null {
  const v = fields(value);
  const start = readPosition(v?.start);
  const end = readPosition(v?.end);
  return start === null || end === null ? null : { start, end };
}

const readEdit = placed<Edit>((span, v) => (typeof v.text === 'string' ? { span, text: v.text } : null));

function readFix(value: unknown): Diagnostic['fix'] {
  const v = fields(value);
  const edits = list(v?.edits, readEdit);
  // an edit that cannot be read makes the whole fix unsafe
  return v === null || edits.length === 0 || edits.length !== (v.edits as unknown[]).length ? null : { title: text(v.title) || 'fix', edits };
}

const readDiagnostic = placed<Diagnostic>((span, v) => ({
  code: text(v.code),
  name: text(v.name),
  severity: v.severity === 'warning' || v.severity === 'note' ? v.severity : 'error',
  message: text(v.message),
  help: string(v.help),
  span,
  labels: list(v.labels, placed((at, label) => ({ span: at, text: text(label.text), file: string(label.file) }))),
  fix: readFix(v.fix)
}));

const readIndex = named<IndexRange>('name', (name, v) => ({
  name,
  kind: text(v.kind),
  lower: string(v.lower) === null ? null : short(v.lower),
  upper: string(v.upper) === null ? null : short(v.upper),
  round: number(v.round),
  source: text(v.source),
  because: strings(v.because).slice(0, 50).map(short)
}));

function readStatement(value: unknown): Statement | null {
  const v = fields(value);
  const line = number(v?.line);
  return v === null || line === null
    ? null
    : {
        line,
        target: text(v.target),
        operator: text(v.operator),
        indices: list(v.indices, readIndex),
        callee: string(v.callee),
        arguments: strings(v.arguments),
        targets: strings(v.targets)
      };
}

const words = (value: unknown): string[] | null => (Array.isArray(value) ? value.map(String) : null);

const readTensor = named<TensorInfo>('name', (name, v) => ({ name, dtype: text(v.dtype), shape: words(v.shape ?? v.dims), origin: words(v.origin) }));

const readPrecondition = named<Precondition>('text', (condition, v) => ({
  text: short(condition),
  status: text(v.status),
  kind: text(v.kind),
  subject: text(v.subject),
  span: readSpan(v.span)
}));

const readFunction = named<FunctionInfo>('name', (name, v) => ({
  name,
  sizes: strings(v.sizes),
  inputs: list(v.inputs, readTensor),
  outputs: list(v.outputs, readTensor),
  temporaries: list(v.temporaries, readTensor),
  statements: list(v.statements, readStatement),
  preconditions: list(v.preconditions, readPrecondition)
}));

export function readAnalysis(value: unknown): Analysis | null {
  const v = fields(value);
  if (v === null || !(Array.isArray(v.functions) || Array.isArray(v.diagnostics))) {
    return null;
  }
  return { functions: list(v.functions, readFunction), diagnostics: list(v.diagnostics, readDiagnostic) };
}

export const readHover = placed<Hover>((span, v) => ({
  span,
  kind: text(v.kind),
  title: text(v.title),
  lines: strings(v.lines),
  documentation: string(v.documentation)
}));

const readItem = named<CompletionItem>('label', (label, v) => ({
  label,
  type: text(v.type),
  detail: string(v.detail),
  documentation: string(v.documentation),
  apply: string(v.apply)
}));

export const readCompletions = placed<Completions>((span, v) => ({ span, items: list(v.items, readItem).slice(0, 500) }));

function readPair(value: unknown): readonly [number, number] | null {
  const [from, to] = Array.isArray(value) ? value.map(number) : [];
  return from == null || to == null ? null : [from, to];
}

export const readSignature = placed<SignatureHelp>((span, v) => {
  const label = string(v.label);
  return label === null ? null : { label, parameters: list(v.parameters, readPair), active: number(v.active) ?? 0, documentation: string(v.documentation), span };
});

export const readDefinition = named<Definition>('name', (name, v) => ({
  name,
  kind: text(v.kind),
  cell: string(v.cell),
  span: readSpan(v.span),
  file: string(v.file),
  inFile: readSpan(v.in_file)
}));

export const readReferences = (value: unknown): Span[] => list(value, item => readSpan(fields(item)?.span));

export function readRename(value: unknown): Rename | null {
  const v = fields(value);
  if (v === null) {
    return null;
  }
  const edits = list(v.edits, readEdit);
  const complete = edits.length === (Array.isArray(v.edits) ? v.edits.length : 0);
  return {
    span: readSpan(v.span),
    name: text(v.name),
    kind: text(v.kind),
    edits: complete ? edits : [],
    refused: complete ? string(v.refused) : 'the answer of the kernel could not be read'
  };
}

export function readFormat(value: unknown): Format | null {
  const v = fields(value);
  return v === null ? null : { text: string(v.text), refused: string(v.refused) };
}

const readDefState = named<DefState>('name', (name, v) => ({
  name,
  span: readSpan(v.span),
  state: text(v.state),
  target: string(v.target),
  errors: number(v.errors) ?? 0,
  warnings: number(v.warnings) ?? 0,
  signature: text(v.signature),
  shapes: strings(v.shapes),
  calls: strings(v.calls)
}));

export function readCellStates(value: unknown): CellStates | null {
  const v = fields(value);
  if (v === null) {
    return null;
  }
  const engine = fields(v.engine);
  return {
    package: text(v.package),
    engine: engine && { target: text(engine.target), device: text(engine.device), note: string(engine.note) },
    cells: list(v.cells, named('cell', (cell, item) => ({ cell, version: number(item.version) ?? 0, defs: list(item.defs, readDefState) }))),
    others: list(v.others, named('name', (name, other) => ({ name, state: text(other.state), signature: text(other.signature) })))
  };
}

export function readCode(value: unknown): Code | null {
  const v = fields(value);
  if (v === null) {
    return null;
  }
  return {
    form: text(v.form),
    forms: strings(v.forms),
    text: string(v.text),
    lines: Array.isArray(v.lines) ? v.lines.map(number) : [],
    note: string(v.note)
  };
}

export function readSchedule(value: unknown): ScheduleView | null {
  const v = fields(value);
  if (v === null) {
    return null;
  }
  const sizes = Object.entries(fields(v.sizes) ?? {}).flatMap(([name, size]) => (number(size) === null ? [] : [[name, number(size)!] as const]));
  return {
    sizes: Object.fromEntries(sizes),
    primitives: strings(v.primitives),
    loops: text(v.loops),
    stages: list(v.stages, item => {
      const stage = fields(item);
      return stage && { stage: text(stage.stage), loops: list(stage.loops, readLoop) };
    }),
    diagnostics: list(v.diagnostics, item => {
      const d = fields(item);
      return d && `${text(d.code)}: ${text(d.message)}`;
    }),
    note: string(v.note)
  };
}

function readLoop(value: unknown): ScheduleView['stages'][number]['loops'][number] | null {
  const v = fields(value);
  return v && { name: text(v.name), min: String(v.min ?? ''), extent: String(v.extent ?? ''), annotation: string(v.annotation) };
}

export function readKeywords(value: unknown): Keywords | null {
  const v = fields(value);
  if (v === null) {
    return null;
  }
  return {
    package: text(v.package),
    keywords: strings(v.keywords),
    types: strings(v.types),
    functions: list(v.functions, named('name', (name, f) => ({ name, parameters: strings(f.parameters), documentation: string(f.documentation) })))
  };
}

export function readFailure(value: unknown): Failure {
  const v = fields(value);
  return { code: text(v?.code) || 'internal', message: text(v?.message) || 'the kernel could not answer', help: string(v?.help) };
}
