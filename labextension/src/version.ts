/** Version of the front end; a test compares it with package.json. */
export const PACKAGE = '0.1.0';
