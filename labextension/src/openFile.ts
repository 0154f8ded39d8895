/** Open a file beside the document of the shell, with the cursor at a place. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { PathExt } from '@jupyterlab/coreutils';
import { DocumentWidget } from '@jupyterlab/docregistry';
import type { Position } from './protocol.js';

/** `file` is a path from the folder of the document, which is that of its kernel. */
export async function openFile(app: JupyterFrontEnd, file: string, position: Position | null): Promise<void> {
  const here = app.shell.currentWidget;
  if (!(here instanceof DocumentWidget) || file.startsWith('/')) {
    Notification.warning(`tc_jupyter: ${file} is outside of the folder of this document`, { autoClose: 5000 });
    return;
  }
  const path = PathExt.join(PathExt.dirname(here.context.path), file);
  const widget: unknown = await app.commands.execute('docmanager:open', { path, factory: 'Editor' });
  if (!(widget instanceof DocumentWidget)) {
    return;
  }
  await widget.context.ready;
  const editor = (widget.content as { editor?: CodeEditor.IEditor }).editor;
  const at = { line: position?.line ?? 0, column: position?.character ?? 0 };
  editor?.setCursorPosition(at);
  editor?.revealPosition(at);
  editor?.focus();
}
