/** The names of a text by their role, as both grammars must see them: the corpus compares this with the Python parser. */
import type { Tree } from '@lezer/common';
import { isSize, type Slice } from './syntax.js';

const ROLES: Readonly<Record<string, string>> = {
  DefName: 'def',
  ParamName: 'param',
  ResultName: 'result',
  TargetName: 'target',
  Iterator: 'index',
  WhereName: 'where',
  TypeName: 'type',
  CalleeName: 'call'
};

/** Lines `role name`, in text order. */
export function outline(tree: Tree, slice: Slice): string[] {
  const lines: string[] = [];
  tree.iterate({
    enter: ({ name, from, to, node }) => {
      const role = name !== 'VariableName' ? ROLES[name] : node.parent?.name === 'Iterators' ? 'index' : isSize(node) ? 'size' : undefined;
      if (role !== undefined) {
        lines.push(`${role} ${slice(from, to)}`);
      }
    }
  });
  return lines;
}
