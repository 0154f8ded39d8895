/**
 * Squiggles, gutter marks, quick fixes and the honest state of both.
 *
 * Tier 1, without a kernel: syntax problems of the Lezer tree. Tier 2: the kernel's diagnostics, which replace tier 1 when they
 * come, since the Python parser decides. Old diagnostics stay, drawn as stale, while an answer is missing.
 */
import { forceLinting, forEachDiagnostic, linter, lintGutter, nextDiagnostic, previousDiagnostic, setDiagnostics, type Action, type Diagnostic as Mark } from '@codemirror/lint';
import { Prec, type EditorState, type Extension } from '@codemirror/state';
import { EditorView, keymap, ViewPlugin, type PluginValue } from '@codemirror/view';
import { body, toRange, type TcCell } from './cells.js';
import { cellContext, isLarge, knownField, linkOf, readState, recheck, setKnown, subjectOf, treeOf, versionField } from './document.js';
import { h, prose } from './dom.js';
import { syntaxProblems, type Problem } from './grammar/syntax.js';
import { MAX_DIAGNOSTICS, readAnalysis, type Analysis, type Diagnostic, type Edit } from './protocol.js';
import type { Freshness } from './session.js';
import { within } from './wait.js';

/** How long a check may take before the provisional marks are drawn. */
const PATIENCE = 150;

export function diagnostics(delay: number, gutter: boolean): Extension {
  return [
    linter(view => view.plugin(checker)?.check() ?? [], {
      delay,
      needsRefresh: update => update.transactions.some(tr => tr.effects.some(effect => effect.is(recheck)))
    }),
    checker,
    gutter ? lintGutter() : [],
    Prec.high(
      keymap.of([
        { key: 'F8', run: nextDiagnostic },
        { key: 'Shift-F8', run: previousDiagnostic },
        { key: 'Mod-.', run: quickFix }
      ])
    )
  ];
}

class Checker implements PluginValue {
  private running = false;
  private wasReady: boolean;
  private destroyed = false;

  constructor(private readonly view: EditorView) {
    this.wasReady = this.ready;
    const context = view.state.facet(cellContext);
    context?.session.linkChanged.connect(this.onLink, this);
  }

  destroy(): void {
    this.destroyed = true;
    const context = this.view.state.facet(cellContext);
    context?.session.linkChanged.disconnect(this.onLink, this);
    context?.session.setResult(context.shared, null);
  }

  private get ready(): boolean {
    return linkOf(this.view.state)?.ready ?? false;
  }

  private onLink(): void {
    const ready = this.ready;
    if (ready !== this.wasReady) {
      this.wasReady = ready;
      // not from inside an update of the editor
      setTimeout(() => {
        if (!this.destroyed) {
          this.view.dispatch({ effects: recheck.of(null) });
        }
      });
    }
  }

  async check(): Promise<readonly Mark[]> {
    const { state } = this.view;
    const cell = readState(state);
    if (cell === null) {
      return [];
    }
    if (isLarge(state)) {
      this.publish(cell, 'too-large', null, 0);
      return [tooLarge(cell)];
    }
    const problems = emptyBody(state, cell) ? [] : syntaxProblems(treeOf(state, 40), cell.language, (from, to) => state.sliceDoc(from, to));
    const syntax = problems.map(syntaxMark);
    if (!this.ready) {
      this.publish(cell, 'offline', null, syntax.length);
      return syntax;
    }
    if (this.running) {
      return this.provisional(syntax);
    }
    const answer = this.ask(cell, syntax);
    const marks = await within(answer, PATIENCE);
    return marks ?? this.provisional(syntax);
  }

  // one unanswered check per cell; a late answer for this very text is drawn when it comes
  private async ask(cell: TcCell, syntax: readonly Mark[]): Promise<readonly Mark[]> {
    const { state } = this.view;
    const version = state.field(versionField);
    this.running = true;
    const busy = setTimeout(() => this.publish(cell, 'busy', state.field(knownField)?.analysis ?? null, syntax.length), 2000);
    const asked = Date.now();
    const answer = await linkOf(state)!.request('check', subjectOf(state, cell));
    clearTimeout(busy);
    this.running = false;
    if (this.destroyed) {
      return [];
    }
    const current = this.view.state.field(versionField, false);
    // another text meanwhile, or another comm
    if (current !== version || (!answer.ok && answer.failure.code === 'gone' && this.ready)) {
      setTimeout(() => !this.destroyed && this.view.dispatch({ effects: recheck.of(null) }));
      return [];
    }
    const analysis = answer.ok ? readAnalysis(answer.reply.analysis) : null;
    if (analysis === null) {
      const message = answer.ok ? 'the answer of the kernel could not be read' : answer.failure.message;
      this.publish(cell, 'stale', this.view.state.field(knownField)?.analysis ?? null, syntax.length);
      const marks = answer.ok || answer.failure.code !== 'gone' ? [...syntax, failureMark(cell, message)] : syntax;
      return this.draw(marks, asked);
    }
    this.view.dispatch({ effects: setKnown.of({ analysis, version }) });
    this.publish(cell, 'fresh', analysis, 0);
    return this.draw(kernelMarks(this.view.state, cell, analysis, version), asked);
  }

  private draw(marks: readonly Mark[], asked: number): readonly Mark[] {
    if (Date.now() - asked >= PATIENCE) {
      setTimeout(() => !this.destroyed && this.view.dispatch(setDiagnostics(this.view.state, marks)));
    }
    return marks;
  }

  private provisional(syntax: readonly Mark[]): readonly Mark[] {
    if (syntax.length > 0) {
      return syntax;
    }
    const old: Mark[] = [];
    forEachDiagnostic(this.view.state, (mark, from, to) => old.push({ ...mark, from, to, markClass: 'tc-stale' }));
    return old;
  }

  private publish(cell: TcCell, freshness: Freshness, analysis: Analysis | null, syntaxErrors: number): void {
    const { state } = this.view;
    const context = state.facet(cellContext);
    const source = freshness === 'too-large' ? '' : body(state.doc, cell);
    context?.session.setResult(context.shared, { analysis, freshness, syntaxErrors, source, language: cell.language });
  }
}

const checker = ViewPlugin.fromClass(Checker);

// while only the magic line is there, an empty body is no mistake
function emptyBody(state: EditorState, cell: TcCell): boolean {
  return body(state.doc, cell).trim() === '';
}

function syntaxMark(problem: Problem): Mark {
  const { from, to, code, message } = problem;
  return { from, to, severity: 'error', source: code, message, renderMessage: () => h('div', { class: 'tc-message' }, h('b', {}, `error[${code}] `), prose(message)) };
}

function tooLarge(cell: TcCell): Mark {
  return { from: 0, to: Math.max(0, cell.bodyStart - 1), severity: 'info', source: 'tc_jupyter', message: 'this cell is too large to be checked while typing; it is checked when it runs' };
}

function failureMark(cell: TcCell, message: string): Mark {
  return { from: 0, to: Math.max(0, cell.bodyStart - 1), severity: 'info', source: 'tc_jupyter', message: `the check failed: ${message}` };
}

const SEVERITY = { error: 'error', warning: 'warning', note: 'info' } as const;

export function kernelMarks(state: EditorState, cell: TcCell, analysis: Analysis, version: number): Mark[] {
  const all = analysis.diagnostics;
  // errors first, so that a flood of notes hides no error
  const order = { error: 0, warning: 1, note: 2 };
  const chosen = all.length > MAX_DIAGNOSTICS ? [...all].sort((a, b) => order[a.severity] - order[b.severity]).slice(0, MAX_DIAGNOSTICS) : all;
  const marks = chosen.map(diagnostic => kernelMark(state, cell, diagnostic, version));
  if (all.length > chosen.length) {
    const more = all.length - chosen.length;
    marks.push({ from: 0, to: Math.max(0, cell.bodyStart - 1), severity: 'info', source: 'tc_jupyter', message: `${more} more diagnostics are not drawn` });
  }
  return marks.sort((a, b) => a.from - b.from || a.to - b.to);
}

function kernelMark(state: EditorState, cell: TcCell, diagnostic: Diagnostic, version: number): Mark {
  const { from, to } = visible(state, toRange(state.doc, cell, diagnostic.span));
  return {
    from,
    to,
    severity: SEVERITY[diagnostic.severity],
    source: diagnostic.code,
    message: `${diagnostic.message}${diagnostic.help ? `\nhelp: ${diagnostic.help}` : ''}`,
    renderMessage: () => message(diagnostic),
    actions: diagnostic.fix === null ? [] : [fix(diagnostic.fix, version)]
  };
}

// a mark of no width would be invisible
function visible(state: EditorState, range: { from: number; to: number }): { from: number; to: number } {
  if (range.to > range.from) {
    return range;
  }
  const line = state.doc.lineAt(range.from);
  return range.from < line.to ? { from: range.from, to: range.from + 1 } : { from: Math.max(line.from, range.from - 1), to: range.from };
}

function message(diagnostic: Diagnostic): HTMLElement {
  const { severity, code, name, labels, help } = diagnostic;
  return h(
    'div',
    { class: 'tc-message' },
    h('div', {}, h('b', {}, `${severity}[${code}]${name ? ` ${name}` : ''}: `), prose(diagnostic.message)),
    ...labels.map(label => h('div', { class: 'tc-message-label' }, `${label.file === null ? '' : `${label.file}, `}line ${label.span.start.line + 1}: `, prose(label.text))),
    help !== null && h('div', { class: 'tc-message-help' }, 'help: ', prose(help))
  );
}

function fix(proposed: { title: string; edits: readonly Edit[] }, version: number): Action {
  return {
    name: proposed.title,
    apply: view => {
      const cell = readState(view.state);
      // the edits are about one text; on another they could destroy something
      if (cell === null || view.state.field(versionField) !== version) {
        view.dispatch({ effects: recheck.of(null) });
        return;
      }
      applyEdits(view, cell, proposed.edits, 'input.fix');
    }
  };
}

export function applyEdits(view: EditorView, cell: TcCell, edits: readonly Edit[], event: string): void {
  const changes = edits.map(edit => ({ ...toRange(view.state.doc, cell, edit.span), insert: edit.text }));
  view.dispatch({ changes, userEvent: event, scrollIntoView: true });
}

/** Apply the first fix at the cursor. */
export function quickFix(view: EditorView): boolean {
  const head = view.state.selection.main.head;
  const line = view.state.doc.lineAt(head);
  let best: { action: Action; from: number; to: number; away: number } | null = null;
  forEachDiagnostic(view.state, (mark, from, to) => {
    const action = mark.actions?.[0];
    const away = head < from ? from - head : Math.max(0, head - to);
    if (action !== undefined && from <= line.to && to >= line.from && (best === null || away < best.away)) {
      best = { action, from, to, away };
    }
  });
  const found = best as { action: Action; from: number; to: number } | null;
  found?.action.apply(view, found.from, found.to);
  return found !== null;
}

export { forceLinting, nextDiagnostic, previousDiagnostic };
