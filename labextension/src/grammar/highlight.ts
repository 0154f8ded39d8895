/** Node names -> highlight tags. JupyterLab's style has no colour for `typeName`: types are standard variables. */
import { classHighlighter, styleTags, tags as t, type Highlighter } from '@lezer/highlight';

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
  Boolean: t.bool,
  Constant: t.atom,
  ReductionName: t.standard(t.variableName),
  AssignOp: t.definitionOperator,
  LogicOp: t.logicOperator,
  CompareOp: t.compareOperator,
  ArithOp: t.arithmeticOperator,
  '->': t.operator,
  '?': t.controlOperator,
  '( )': t.paren,
  '[ ]': t.squareBracket,
  '{ }': t.brace,
  ', :': t.separator
};

export const tcHighlight = styleTags({
  ...shared,
  Comment: t.lineComment,
  ResultName: t.definition(t.variableName),
  SizeName: t.variableName,
  'Iterators/VariableName': t.special(t.variableName),
  SizeOf: t.variableName,
  'RangeClause/WhereName BracketRange/WhereName': t.special(t.variableName),
  'LetClause/WhereName': t.definition(t.variableName),
  UpdateOp: t.updateOperator,
  '<=>': t.operator,
  'def where in exists': t.keyword
});

export const sacHighlight = styleTags({
  ...shared,
  LineComment: t.lineComment,
  BlockComment: t.blockComment,
  OperatorName: t.function(t.definition(t.variableName)),
  'Fold/OperatorName': t.operator,
  ShapeOp: t.operator,
  Bar: t.operator,
  'Dot Dots': t.atom,
  ';': t.separator,
  'return with genarray modarray fold': t.keyword
});

/**
 * The classes of `classHighlighter`, but none for plain names, which have no colour: with every character that is deleted, the editor
 * draws the marked names of all lines below anew (`RangeSet` of @codemirror/state 6.7 compares their ends at the wrong places).
 */
export const classes: Highlighter = {
  style: tags => {
    const found = classHighlighter.style(tags);
    return found === 'tok-variableName' ? null : found;
  }
};
