/**
 * Switches the language features of an editor on and off as the first lines of its cell change.
 *
 * One `Compartment` per editor; a transaction extender compares the language before and after each change of the document and
 * reconfigures when it differs. A cell in another language holds an empty compartment and pays only for reading its first line.
 */
import { Compartment, EditorState, Prec, Text, type Extension } from '@codemirror/state';
import { EditorView, ViewPlugin } from '@codemirror/view';
import { readCell } from './cells.js';
import { colours } from './colours.js';
import { completion, signatureHelp } from './complete.js';
import { diagnostics } from './diagnostics.js';
import { cellContext, knownField, versionField, type CellContext } from './document.js';
import { cellLanguages, type LanguageName } from './grammar/language.js';
import { inlayHints } from './hints.js';
import { hover } from './hover.js';

function features(context: CellContext, language: LanguageName): Extension {
  const { settings } = context.session;
  return [
    cellContext.of(context),
    versionField,
    knownField,
    EditorView.editorAttributes.of({ class: 'tc-editor' }),
    settings.highlighting ? [Prec.highest(cellLanguages[language].extension), colours(language)] : [],
    settings.diagnostics ? diagnostics(settings.delay, settings.gutter) : [],
    settings.hover ? hover() : [],
    completion(language, settings.completion),
    settings.signatureHelp ? signatureHelp() : [],
    settings.inlayHints ? inlayHints() : []
  ];
}

export function tcEditor(context: CellContext, source: string): Extension {
  const compartment = new Compartment();
  const content = (language: LanguageName | null): Extension => (language === null ? [] : features(context, language));
  const languageIn = (doc: Text): LanguageName | null => context.file ?? readCell(doc)?.language ?? null;
  return [
    compartment.of(content(languageIn(Text.of(source.split('\n'))))),
    EditorState.transactionExtender.of(tr => {
      const before = tr.docChanged ? languageIn(tr.startState.doc) : null;
      const after = tr.docChanged ? languageIn(tr.newDoc) : null;
      return before === after ? null : { effects: compartment.reconfigure(content(after)) };
    }),
    ViewPlugin.define(view => follow(view, context, () => compartment.reconfigure(content(languageIn(view.state.doc)))))
  ];
}

// settings of the user, and the type of a file
function follow(view: EditorView, context: CellContext, effect: () => ReturnType<Compartment['reconfigure']>): { destroy: () => void } {
  let file = context.file;
  const onSettings = (): void => view.dispatch({ effects: effect() });
  const onType = (): void => {
    if (context.file !== file) {
      file = context.file;
      onSettings();
    }
  };
  // a type that was set between the making of the extensions and of the view
  if (file !== null) {
    queueMicrotask(onSettings);
  }
  context.session.settingsChanged.connect(onSettings);
  context.typeChanged.connect(onType);
  return {
    destroy: () => {
      context.session.settingsChanged.disconnect(onSettings);
      context.typeChanged.disconnect(onType);
    }
  };
}
