/** The files of the documentation whose console blocks are run. */
export const FILES = [
  'README.md',
  'docs/rebuild.md',
  'docs/history.md',
  'docs/bulk.md',
  'docs/logs.md',
  'docs/redact.md',
  'docs/api.md',
  'docs/library.md',
  'docs/exports.md',
  'docs/distribution.md',
];
