/** A notebook to begin with: load the extension, one def, one call. */
import type { JupyterFrontEnd } from '@jupyterlab/application';

const CELLS = [
  '%load_ext tc_jupyter\nimport numpy as np',
  '%%tc\ndef matmul(float(M, K) A, float(K, N) B) -> (C) {\n    C(i, j) +=! A(i, k) * B(k, j)\n}',
  'A = np.random.rand(4, 3).astype(np.float32)\nB = np.random.rand(3, 5).astype(np.float32)\nmatmul(A, B)'
];

/** Create the file in `folder`, write the cells, open it; returns its path. */
export async function newNotebook(app: JupyterFrontEnd, folder: string): Promise<string> {
  const { contents, kernelspecs } = app.serviceManager;
  await kernelspecs.ready;
  const specs = kernelspecs.specs;
  const python = (name: string | undefined): boolean => name !== undefined && specs?.kernelspecs[name]?.language.toLowerCase() === 'python';
  const name = python(specs?.default) ? specs!.default : Object.keys(specs?.kernelspecs ?? {}).find(python);
  const kernelspec = name === undefined ? {} : { kernelspec: { name, display_name: specs!.kernelspecs[name]!.display_name, language: 'python' } };
  const file = await contents.newUntitled({ path: folder, type: 'notebook' });
  const cells = CELLS.map((source, i) => ({ cell_type: 'code', id: `tc-start-${i}`, metadata: {}, source, outputs: [], execution_count: null }));
  const content = { nbformat: 4, nbformat_minor: 5, metadata: { ...kernelspec, language_info: { name: 'python' } }, cells };
  await contents.save(file.path, { ...file, type: 'notebook', format: 'json', content });
  await app.commands.execute('docmanager:open', { path: file.path });
  return file.path;
}
