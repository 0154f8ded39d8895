/** The front end of tc_jupyter: the list of its plugins. */
import { launcherPlugin } from './launcher.js';
import { commandsPlugin, editorPlugin, languagesPlugin, outputPlugin, panelPlugin, statusPlugin } from './plugins.js';

export default [languagesPlugin, editorPlugin, panelPlugin, commandsPlugin, launcherPlugin, outputPlugin, statusPlugin];
