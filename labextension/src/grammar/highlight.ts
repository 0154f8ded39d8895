/** Node names -> highlight tags. JupyterLab's style has no colour for `typeName`: types are standard variables. */
import { classHighlighter, styleTags, Tag, tags as t, type Highlighter } from '@lezer/highlight';

const shared = {
  MagicLine: t.meta,
  DefName: t.function(t.definition(t.variableName)),
  ParamName: t.definition(t.variableName),
  TargetName: t.definition(t.variableName),
  CalleeName: t.function(t.variableName),
  VariableName: t.variableName,
  Iterator: t.special(t.variableName),
  TypeName: t.standard(t.variableName),
  Number: t.number,
  String: t.string,
  Boolean: t.bool,
  Constant: t.atom,
  ReductionName: t.standard(t.variableName),
  AssignOp: t.definitionOperator,
  LogicOp: t.logicOperator,
  CompareOp: t.compareOperator,
  ArithOp: t.arithmeticOperator,
  BitOp: t.bitwiseOperator,
  '->': t.operator,
  '?': t.controlOperator,
  '( )': t.paren,
  '[ ]': t.squareBracket,
  '{ }': t.brace,
  ', :': t.separator
};

const tc = {
  ...shared,
  Comment: t.lineComment,
  ResultName: t.definition(t.variableName),
  'Iterators/VariableName': t.special(t.variableName),
  SizeOf: t.variableName,
  'RangeClause/WhereName BracketRange/WhereName': t.special(t.variableName),
  'LetClause/WhereName': t.definition(t.variableName),
  UpdateOp: t.updateOperator,
  '<=>': t.operator,
  'Direction/WhereName': t.special(t.variableName),
  GivenName: t.definition(t.variableName),
  'def reduce from with where in exists else unique const at along use': t.keyword
};

const sac = {
  ...shared,
  LineComment: t.lineComment,
  BlockComment: t.blockComment,
  OperatorName: t.function(t.definition(t.variableName)),
  'Fold/OperatorName': t.operator,
  ShapeOp: t.operator,
  Bar: t.operator,
  'Dot Dots': t.atom,
  'UpdateOp StepOp': t.definitionOperator,
  'NamedType NewType': t.standard(t.variableName),
  'Whole ModuleName': t.variableName,
  '::': t.operator,
  ';': t.separator,
  'return with genarray modarray fold inline typedef use all except if else for while do step width': t.keyword
};

export const tcHighlight = styleTags(tc);
export const sacHighlight = styleTags(sac);

// The highlighter of the editor draws every mark anew with every key. It knows nothing of these tags, and `colours.ts` draws instead.
const known = new Map<Tag, readonly Tag[]>();

function hide(tag: Tag): Tag {
  const own = Tag.define();
  known.set(own, [tag]);
  return own;
}

const hideAll = (rules: Readonly<Record<string, Tag>>): ReturnType<typeof styleTags> =>
  styleTags(Object.fromEntries(Object.entries(rules).map(([names, tag]) => [names, hide(tag)])));

/** Rules for cells, by language, which only `cellHighlighter` understands. */
export const hiddenHighlight = { tc: hideAll(tc), sac: hideAll(sac) };

/** The classes of `classHighlighter` (none for plain names, which have no colour) and those that `theme` gives. */
export function cellHighlighter(theme: (tags: readonly Tag[]) => string | null): Highlighter {
  const found = new Map<readonly Tag[], string | null>();
  const classOf = (tags: readonly Tag[]): string | null => {
    const standard = known.get(tags[0]) ?? tags;
    const own = classHighlighter.style(standard);
    return [theme(standard), own === 'tok-variableName' ? null : own].filter(name => name).join(' ') || null;
  };
  return {
    style: tags => {
      if (!found.has(tags)) {
        found.set(tags, classOf(tags));
      }
      return found.get(tags)!;
    }
  };
}
