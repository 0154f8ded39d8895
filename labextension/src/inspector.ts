/** Notebook inspector: every def of the notebook with its state, engine and shapes; a click scrolls to the cell. */
import { Widget } from '@lumino/widgets';
import type { Message } from '@lumino/messaging';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { h } from './dom.js';
import { describe } from './kernel.js';
import { readCellStates, type CellStates, type DefState, type Position } from './protocol.js';
import type { NotebookCell, TcSession } from './session.js';

const STATES: Readonly<Record<string, { icon: string; text: string }>> = {
  failing: { icon: '✗', text: 'failing' },
  analysed: { icon: '○', text: 'analysed' },
  stale: { icon: '↻', text: 'stale' },
  bound: { icon: '◐', text: 'bound' },
  compiled: { icon: '●', text: 'compiled' },
  unknown: { icon: '·', text: 'not checked' }
};

export class Inspector extends Widget {
  private readonly head = h('div', { class: 'tc-status', role: 'status' });
  private readonly list = h('ul', { class: 'tc-tree', 'aria-label': 'defs of the notebook' });
  private timer: ReturnType<typeof setTimeout> | null = null;
  private states: { readonly panel: NotebookPanel; readonly told: CellStates } | null = null;
  private followed: NotebookPanel | null = null;
  private look = '';

  constructor(
    private readonly session: TcSession,
    private readonly go: (panel: NotebookPanel, cell: NotebookCell, name: string, position: Position | null) => void
  ) {
    super();
    this.id = 'tc-jupyter-inspector';
    this.title.caption = 'Tensor comprehensions: all defs of the notebook';
    this.addClass('tc-panel');
    this.node.setAttribute('data-tc-inspector', '');
    this.node.append(h('h2', { class: 'tc-heading' }, 'Defs of the notebook'), this.head, this.list);
    session.tracker?.currentChanged.connect(this.onCurrent, this);
    session.resultChanged.connect(() => this.schedule());
    session.linkChanged.connect(() => this.schedule());
    this.onCurrent();
  }

  protected override onAfterShow(_: Message): void {
    this.schedule(0);
  }
  protected override onAfterAttach(_: Message): void {
    this.schedule(0);
  }

  schedule(delay = 300): void {
    if (this.isVisible && this.timer === null) {
      this.timer = setTimeout(() => {
        this.timer = null;
        void this.refresh();
      }, delay);
    }
  }

  private onCurrent(): void {
    const panel = this.session.tracker?.currentWidget ?? null;
    if (panel === this.followed) {
      return;
    }
    this.followed?.content.modelContentChanged.disconnect(this.onContent, this);
    this.followed = panel;
    panel?.content.modelContentChanged.connect(this.onContent, this);
    panel?.disposed.connect(() => (this.followed = this.followed === panel ? null : this.followed));
    this.schedule(0);
  }

  // not on every change of the kernel's status: our own question makes it busy and idle again
  private onContent(): void {
    this.schedule();
  }

  private async refresh(): Promise<void> {
    const panel = this.session.tracker?.currentWidget ?? null;
    if (panel === null) {
      this.head.replaceChildren('No notebook.');
      this.list.replaceChildren();
      return;
    }
    const cells = this.session.cellsOf(panel);
    const link = this.session.linkOf(panel);
    if (link === null || !link.ready) {
      // what was bound is gone with the kernel
      this.states = null;
    }
    this.draw(panel, cells);
    if (link === null || link.state !== 'ready' || cells.length === 0) {
      return;
    }
    const sent = cells.filter(cell => cell.body.length <= 200_000).map(cell => ({ cell: cell.id, version: 0, magic: cell.magic, source: cell.body }));
    const answer = await link.request('inspect', { cell: '', version: 0, magic: '', source: '' }, { what: 'cells', cells: sent });
    const told = answer.ok ? readCellStates(answer.reply.inspect) : null;
    if (told !== null && !this.isDisposed && this.session.tracker?.currentWidget === panel) {
      this.states = { panel, told };
      this.draw(panel, this.session.cellsOf(panel));
    }
  }

  private draw(panel: NotebookPanel, cells: readonly NotebookCell[]): void {
    const link = this.session.linkOf(panel);
    const told = this.states?.panel === panel ? this.states.told : null;
    const engine = told?.engine ? `${told.engine.target}: ${told.engine.device}` : '';
    const count = cells.reduce((sum, cell) => sum + cell.defs.length, 0);
    this.head.replaceChildren(`${count} ${count === 1 ? 'def' : 'defs'} in ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}. `, describe(link).text, ...(engine === '' ? [] : [h('div', {}, engine)]));
    const entries = cells.flatMap(cell => this.entries(panel, cell, told));
    const drawn = count === 0 ? [h('li', { class: 'tc-empty' }, 'No %%tc or %%sac cell defines anything yet.')] : entries;
    // the same list stays in place, with the focus and the pointer on it; its buttons look their cell up when they are clicked
    const look = `${panel.id}:${drawn.map(item => item.outerHTML).join('')}`;
    if (look !== this.look) {
      this.look = look;
      this.list.replaceChildren(...drawn);
    }
  }

  private entries(panel: NotebookPanel, cell: NotebookCell, told: CellStates | null): HTMLElement[] {
    const states = told?.cells.find(item => item.cell === cell.id)?.defs ?? [];
    const result = this.session.result(cell.shared);
    return cell.defs.map(name => {
      const state = states.find(item => item.name === name);
      const local = result?.analysis?.functions.find(item => item.name === name);
      const failing = (result?.syntaxErrors ?? 0) > 0;
      const key = failing ? 'failing' : (state?.state ?? (local === undefined ? 'unknown' : 'analysed'));
      const { icon, text } = STATES[key] ?? { icon: '·', text: key };
      const shapes = state?.shapes.join(', ') ?? local?.outputs.map(o => `${o.name} (${o.shape?.join(', ') ?? 'known at the call'})`).join(', ') ?? '';
      return h(
        'li',
        { class: `tc-entry tc-state-${key}`, 'data-tc-def': name, 'data-tc-state': key, 'data-tc-cell': cell.id },
        h(
          'button',
          { type: 'button', class: 'tc-entry-button', title: state?.signature ?? name, click: () => this.go(panel, cell, name, state?.span?.start ?? null) },
          h('span', { class: 'tc-entry-icon', 'aria-hidden': 'true' }, icon),
          h('b', {}, name),
          h('span', { class: 'tc-entry-state' }, ` ${text}`),
          h('span', { class: 'tc-entry-info' }, details(cell, state, shapes))
        )
      );
    });
  }
}

function details(cell: NotebookCell, state: DefState | undefined, shapes: string): string {
  const parts = [`%%${cell.language}`, state?.target ?? '', shapes, state && state.calls.length > 0 ? `called with ${state.calls[0]}` : ''];
  return parts.filter(part => part !== '').join(' · ');
}
