/** The files of JSONTestSuite, see test/enrich/fixtures/README.md. */
import { join } from 'node:path';
import { list } from 'tar';

export interface SuiteFile {
  /** For example `y_array_empty.json`: y must be accepted, n must be refused, i may be either. */
  name: string;
  folder: 'test_parsing' | 'test_transform';
  /** One character for each byte. */
  text: string;
}

const ARCHIVE = join(import.meta.dirname, '../enrich/fixtures/json-test-suite.tar.gz');

/** Returns all files, in the order of their names. */
export async function jsonTestSuite(): Promise<SuiteFile[]> {
  const files: SuiteFile[] = [];
  const reading: Promise<void>[] = [];
  await list({
    file: ARCHIVE,
    onReadEntry: (entry) => {
      const [, folder, name] = entry.path.split('/');
      if (name === undefined || !name.endsWith('.json')) return;
      reading.push(
        entry.concat().then((bytes) => {
          files.push({ name, folder: folder as SuiteFile['folder'], text: Buffer.from(bytes).toString('latin1') });
        }),
      );
    },
  });
  await Promise.all(reading);
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}
