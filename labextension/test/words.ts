/** Writes the words that the editor knows of both languages, for the comparison with the Python tables. */
import { vocabularies } from '../src/grammar/vocabulary.js';

process.stdout.write(JSON.stringify(vocabularies));
