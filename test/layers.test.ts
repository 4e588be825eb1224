import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../src/package-root.js';

/**
 * The layers of src, the lowest first: a file may import from its own layer and from lower ones. `ground` are the files
 * directly in src, except index.ts, which is `library`.
 */
const SRC_LAYERS = [
  ['ground'],
  ['address', 'range', 'country'],
  ['rangefile', 'mirror'],
  ['compact'],
  ['database', 'report'],
  ['history'],
  ['lookup'],
  ['enrich', 'export'],
  ['page'],
  ['api'],
  ['stream'],
  ['library', 'client'],
  ['cli'],
];

/** The layers of the pipeline, the lowest first: folders, and files directly in it. */
const PIPELINE_LAYERS = [
  ['stage.ts', 'config', 'merging'],
  ['fetching', 'source-formats', 'release-id.ts', 'release-mirror.ts', 'compact-release.ts'],
  ['operations'],
  ['gates', 'explain', 'distribution'],
  ['checking'],
  ['stages'],
  ['publish-gated.ts'],
  ['build.ts', 'pull.ts'],
  ['index.ts'],
];

/** The layers of the API server, the lowest first: folders of src/api, and files directly in it. */
const API_LAYERS = [
  ['log.ts', 'routes.ts', 'responses.ts', 'body.ts', 'caller.ts', 'include.ts'],
  ['rates'],
  ['keys', 'releases'],
  ['openapi.ts', 'metrics.ts', 'forward-auth.ts'],
  ['page'],
  ['http-server.ts', 'host.ts'],
  ['handlers'],
  ['app.ts'],
  ['server.ts'],
  ['cluster.ts'],
  ['service.ts'],
];

/** The files of src/enrich that the kernel may import besides its own. */
const BELOW_KERNEL = [
  'address-cipher.ts',
  'address-names.ts',
  'counts.ts',
  'field-path.ts',
  'inline.ts',
  'options.ts',
  'query.ts',
  'members.ts',
  'ranges.ts',
  'redaction.ts',
  'formats/results.ts',
];

function srcGroup(file: string): string {
  const [top, ...rest] = file.split('/');
  if (rest.length > 0) return top!;
  return file === 'index.ts' ? 'library' : 'ground';
}

/** The folder of a file, or the file if it is in none; relative to the pipeline or to the API server. */
function topEntry(file: string): string {
  return file.split('/')[0]!;
}

/** Returns the layer of a group. A group in no layer is an error, so that new folders are added above. */
function layerOf(layers: readonly string[][], group: string): number {
  const layer = layers.findIndex((groups) => groups.includes(group));
  if (layer < 0) throw new Error(`${group} is in no layer`);
  return layer;
}

/** TypeScript files of a folder, relative to it, without the AssemblyScript of the kernel. */
function filesIn(folder: string): string[] {
  return readdirSync(join(packageRoot(), folder), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.includes('assembly'),
  );
}

/** The relative imports of a file, types included, data not, as paths of `.ts` files from the root of the package. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(packageRoot(), file), 'utf8');
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, specifier]) => specifier!);
  const code = specifiers.filter((specifier) => !specifier.endsWith('.json'));
  return code.map((specifier) => join(dirname(file), specifier).replace(/\.js$/, '.ts'));
}

/** Returns an import cycle as a list of files, or undefined. */
function findCycle(files: readonly string[], targets: (file: string) => readonly string[]): string[] | undefined {
  const finished = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (finished.has(file)) return undefined;
    path.push(file);
    for (const target of targets(file)) {
      const cycle = visit(target);
      if (cycle !== undefined) return cycle;
    }
    path.pop();
    finished.add(file);
    return undefined;
  };
  for (const file of files) {
    const cycle = visit(file);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

/** Returns the imports of the files of a folder that are not allowed, each as a sentence. */
function wrongImports(folder: string, isAllowed: (target: string, file: string) => boolean): string[] {
  const files = filesIn(folder).map((file) => join(folder, file));
  expect(files.length).toBeGreaterThan(5);
  return files.flatMap((file) =>
    importsOf(file).flatMap((target) => (isAllowed(target, file) ? [] : `${file} imports ${target}`)),
  );
}

const srcLayer = (file: string): number => layerOf(SRC_LAYERS, srcGroup(relative('src', file)));
const layerIn = (folder: string, layers: readonly string[][], file: string): number =>
  layerOf(layers, topEntry(relative(folder, file)));

describe('imports', () => {
  it('of src point to the same or lower layers; only the command line has one of the pipeline', () => {
    const wrong = wrongImports('src', (target, file) =>
      target.startsWith('pipeline/')
        ? target === 'pipeline/index.ts' && dirname(file) === 'src/cli'
        : srcLayer(target) <= srcLayer(file),
    );
    expect(wrong).toEqual([]);
  });

  it('of the pipeline point to the same or lower layers', () => {
    const wrong = wrongImports('pipeline', (target, file) =>
      target.startsWith('src/')
        ? srcLayer(target) <= layerOf(SRC_LAYERS, 'history')
        : layerIn('pipeline', PIPELINE_LAYERS, target) <= layerIn('pipeline', PIPELINE_LAYERS, file),
    );
    expect(wrong).toEqual([]);
  });

  it('of the server point to the same or lower layers of it', () => {
    const wrong = wrongImports(
      'src/api',
      (target, file) =>
        !target.startsWith('src/api/') ||
        layerIn('src/api', API_LAYERS, target) <= layerIn('src/api', API_LAYERS, file),
    );
    expect(wrong).toEqual([]);
  });

  it('of the kernel do not point to the rest of the engine', () => {
    const wrong = wrongImports(
      'src/enrich/kernel',
      (target) =>
        !target.startsWith('src/enrich/') ||
        target.startsWith('src/enrich/kernel/') ||
        BELOW_KERNEL.includes(relative('src/enrich', target)),
    );
    expect(wrong).toEqual([]);
  });

  it('have no cycle among files', () => {
    const files = ['src', 'pipeline'].flatMap((folder) => filesIn(folder).map((file) => join(folder, file)));
    expect(findCycle(files, (file) => importsOf(file).filter((target) => files.includes(target)))).toBeUndefined();
  });
});

describe('the search for cycles', () => {
  it.each<[Record<string, string[]>, string[] | undefined]>([
    [{ a: ['b'], b: ['c'], c: [] }, undefined],
    [{ a: ['b', 'c'], b: ['c'], c: [] }, undefined],
    [{ a: ['a'] }, ['a', 'a']],
    [{ a: ['b'], b: ['c'], c: ['b'] }, ['b', 'c', 'b']],
  ])('%j: %j', (graph, expected) => {
    expect(findCycle(Object.keys(graph), (file) => graph[file]!)).toEqual(expected);
  });
});
