/** Completion and signature help: words without a kernel, everything else from it. */
import { acceptCompletion, autocompletion, closeCompletion, completionStatus, moveCompletionSelection, startCompletion, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { Prec, StateEffect, StateField, type Extension } from '@codemirror/state';
import { EditorView, showTooltip, ViewPlugin, type PluginValue, type Tooltip, type ViewUpdate } from '@codemirror/view';
import type { SyntaxNode } from '@lezer/common';
import { toRange } from './cells.js';
import { ask, linkOf, readState, textOf, treeOf } from './document.js';
import { h, prose } from './dom.js';
import type { LanguageName } from './grammar/language.js';
import { isSize } from './grammar/syntax.js';
import { vocabularies } from './grammar/vocabulary.js';
import { readCompletions, readSignature, type CompletionItem, type SignatureHelp } from './protocol.js';
import { within } from './wait.js';

const PATIENCE = 400;
/** How long typing rests before a list or a help opens: every question makes the kernel busy for a moment, which the whole page draws. */
const REST = 200;
/** Options that are drawn at once; the list draws others when the choice moves there. Every key draws them anew. */
const DRAWN = 24;

export function completion(language: LanguageName, enabled: boolean): Extension {
  return [
    autocompletion({ override: [context => complete(context, language)], activateOnTyping: enabled, activateOnTypingDelay: REST, maxRenderedOptions: DRAWN, icons: true }),
    // JupyterLab moves to the next cell on these keys before the keymap of the list sees them
    Prec.highest(EditorView.domEventHandlers({ keydown: (event, view) => moveInList(event, view) }))
  ];
}

function moveInList(event: KeyboardEvent, view: EditorView): boolean {
  if (completionStatus(view.state) !== 'active' || event.ctrlKey || event.altKey || event.metaKey) {
    return false;
  }
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') {
    return false;
  }
  // in its first moments the list does not move; the key is not for the next cell all the same
  moveCompletionSelection(event.key === 'ArrowDown')(view);
  return true;
}

/** Tab in a cell: take the selected completion, or ask for a list after a name. */
export function tab(view: EditorView): boolean {
  if (completionStatus(view.state) === 'active') {
    // in its first moments the list takes nothing; the key asked for the list, it indents nothing
    acceptCompletion(view);
    return true;
  }
  const { main } = view.state.selection;
  const cell = readState(view.state);
  if (!main.empty || cell === null || main.head < cell.bodyStart || !/[\w.]$/.test(view.state.sliceDoc(Math.max(0, main.head - 1), main.head))) {
    return false;
  }
  return startCompletion(view);
}

/**
 * Give Tab and Escape to the list of a cell before the shortcuts of the application see them. Notebook listens on the document while
 * the event goes down, so only the window comes earlier.
 */
export function listenForKeys(): void {
  window.addEventListener(
    'keydown',
    event => {
      const editor = event.target instanceof Element && !event.isComposing ? event.target.closest<HTMLElement>('.tc-editor') : null;
      const plain = !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
      const run = event.key === 'Tab' ? tab : event.key === 'Escape' ? closeCompletion : null;
      const view = editor === null || run === null || !plain ? null : EditorView.findFromDOM(editor);
      if (view !== null && run!(view)) {
        event.preventDefault();
        event.stopImmediatePropagation();
      }
    },
    true
  );
}

export { startCompletion };

async function complete(context: CompletionContext, language: LanguageName): Promise<CompletionResult | null> {
  const view = context.view;
  const word = context.matchBefore(/[A-Za-z_]\w*/);
  const cell = readState(context.state);
  if (cell === null || context.pos < cell.bodyStart || (word === null && !context.explicit) || inComment(context)) {
    return null;
  }
  const local = words(context, language);
  const asked = view ? await within(ask(view, 'complete', context.pos, { explicit: context.explicit }), PATIENCE) : null;
  const told = asked === null ? null : readCompletions(asked.reply.completions);
  if (asked === null || told === null) {
    return { from: word?.from ?? context.pos, options: local, validFor: /^\w*$/ };
  }
  const { from } = toRange(context.state.doc, asked.cell, told.span);
  const known = new Set(told.items.map(item => item.label));
  return { from, options: [...told.items.map(option), ...local.filter(item => !known.has(item.label))], validFor: /^\w*$/ };
}

function inComment(context: CompletionContext): boolean {
  return treeOf(context.state).resolveInner(context.pos, -1).name.endsWith('Comment');
}

const TYPES: Readonly<Record<string, string>> = { index: 'variable', tensor: 'property', size: 'constant', scalar: 'variable', let: 'variable', def: 'function' };

function option(item: CompletionItem): Completion {
  return {
    label: item.label,
    type: TYPES[item.type] ?? item.type,
    boost: item.type === 'function' || item.type === 'type' || item.type === 'keyword' ? 0 : 20,
    ...(item.detail === null ? {} : { detail: item.detail }),
    ...(item.apply === null ? {} : { apply: item.apply }),
    ...(item.documentation === null ? {} : { info: () => h('div', { class: 'tc-hover' }, prose(item.documentation!)) })
  };
}

// names of the cell and words of the language
function words(context: CompletionContext, language: LanguageName): Completion[] {
  const { keywords, constants, types, reductions, functions } = vocabularies[language];
  const learned = linkOf(context.state)?.keywords(language)?.functions ?? [];
  const help = new Map(learned.map(f => [f.name, f] as const));
  const named = (labels: readonly string[], type: string): Completion[] => labels.map(label => ({ label, type }));
  return [
    ...named(ownNames(context), 'variable').map(item => ({ ...item, boost: 10 })),
    ...named(keywords, 'keyword'),
    ...named(constants, 'constant'),
    ...named(types, 'type'),
    ...[...reductions, ...functions].map(label => {
      const parameters = help.get(label)?.parameters;
      return { label, type: 'function', ...(parameters === undefined ? {} : { detail: `(${parameters.join(', ')})` }) };
    })
  ];
}

const OWN = new Set(['ParamName', 'ResultName', 'TargetName', 'DefName', 'Iterator', 'WhereName']);

function ownNames(context: CompletionContext): string[] {
  const names = new Set<string>();
  treeOf(context.state).iterate({
    enter: node => {
      const own = OWN.has(node.name) || (node.name === 'VariableName' && (node.node.parent?.name === 'Iterators' || isSize(node.node)));
      if (own && !(node.from <= context.pos && context.pos <= node.to)) {
        names.add(textOf(context.state, node));
      }
    }
  });
  return [...names].filter(name => name !== '');
}

const setHelp = StateEffect.define<{ help: SignatureHelp; from: number; to: number } | null>();
const helpField = StateField.define<Tooltip | null>({
  create: () => null,
  update: (shown, tr) => {
    for (const effect of tr.effects) {
      if (effect.is(setHelp)) {
        return effect.value === null ? null : { pos: effect.value.from, above: true, create: () => ({ dom: helpCard(effect.value!.help) }) };
      }
    }
    return shown === null || !tr.docChanged ? shown : { ...shown, pos: tr.changes.mapPos(shown.pos) };
  },
  provide: field => showTooltip.from(field)
});

export function signatureHelp(): Extension {
  return [helpField, ViewPlugin.fromClass(SignaturePlugin)];
}

class SignaturePlugin implements PluginValue {
  private timer: ReturnType<typeof setTimeout> | null = null;
  /** the parameter that the last answer was about */
  private told: string | null = null;

  constructor(private readonly view: EditorView) {}

  update(update: ViewUpdate): void {
    if (update.docChanged || update.selectionSet || update.focusChanged) {
      this.cancel();
      this.timer = setTimeout(() => void this.refresh(), REST);
    }
  }

  destroy(): void {
    this.cancel();
  }

  private cancel(): void {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.timer = null;
    }
  }

  private async refresh(): Promise<void> {
    const { view } = this;
    const head = view.state.selection.main.head;
    const place = view.hasFocus ? parameterAt(view, head) : null;
    if (place !== null && place === this.told) {
      return;
    }
    const asked = place === null ? null : await within(ask(view, 'signature', head), PATIENCE);
    this.told = asked === null ? null : place;
    const help = asked === null ? null : readSignature(asked.reply.signature);
    if (this.timer === null || (help === null && view.state.field(helpField) === null)) {
      return;
    }
    const at = help === null || asked === null ? null : { help, ...toRange(view.state.doc, asked.cell, help.span) };
    view.dispatch({ effects: setHelp.of(at) });
  }
}

/** The calls around an offset, each with the number of the argument; `null` outside of calls. */
function parameterAt(view: EditorView, offset: number): string | null {
  const { state } = view;
  const calls: string[] = [];
  for (let node: SyntaxNode | null = treeOf(state).resolveInner(offset, -1); node !== null && node.name !== 'Block'; node = node.parent) {
    if (node.name === 'ArgList' || node.name === 'Arguments' || node.name === 'Reduction') {
      calls.push(`${state.sliceDoc(node.parent?.from ?? node.from, node.from)}${commas(state.sliceDoc(node.from, offset))}`);
    }
  }
  return calls.length > 0 ? calls.join(' ') : null;
}

// of the outermost bracket
function commas(text: string): number {
  let depth = 0;
  let count = 0;
  for (const char of text) {
    depth += char === '(' || char === '[' ? 1 : char === ')' || char === ']' ? -1 : 0;
    count += char === ',' && depth === 1 ? 1 : 0;
  }
  return count;
}

function helpCard(help: SignatureHelp): HTMLElement {
  const points = [...help.label];
  const [from, to] = help.parameters[Math.min(help.active, help.parameters.length - 1)] ?? [0, 0];
  const part = (a: number, b?: number): string => points.slice(a, b).join('');
  return h(
    'div',
    { class: 'tc-hover tc-signature' },
    h('code', {}, part(0, from), h('b', {}, part(from, to)), part(to)),
    help.documentation !== null && h('div', { class: 'tc-hover-doc' }, prose(help.documentation))
  );
}
