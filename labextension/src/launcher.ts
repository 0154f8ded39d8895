/** The card in the launcher, where the application has one. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ILauncher } from '@jupyterlab/launcher';

export const launcherPlugin: JupyterFrontEndPlugin<void> = {
  id: 'tc-jupyter:launcher',
  description: 'Launcher card of a new notebook',
  autoStart: true,
  optional: [ILauncher],
  activate: (_: JupyterFrontEnd, launcher: ILauncher | null) => {
    launcher?.add({ command: 'tc-jupyter:new-notebook', category: 'Notebook', rank: 50 });
  }
};
