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
  'address-names.ts',
  'counts.ts',
  'field-path.ts',
  'options.ts',
  'query.ts',
  'members.ts',
  'ranges.ts',
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

describe('imports', () => {
  it.each(filesIn('src'))('of src/%s point to the same or lower layers', (file) => {
    for (const target of importsOf(join('src', file))) {
      if (target.startsWith('pipeline/')) {
        // The only import of the pipeline is by the command line.
        expect([target, dirname(file)]).toEqual(['pipeline/index.ts', 'cli']);
        continue;
      }
      const layer = layerOf(SRC_LAYERS, srcGroup(relative('src', target)));
      expect(layer, `src/${file} imports ${target}`).toBeLessThanOrEqual(layerOf(SRC_LAYERS, srcGroup(file)));
    }
  });

  it.each(filesIn('pipeline'))('of pipeline/%s point to the same or lower layers', (file) => {
    for (const target of importsOf(join('pipeline', file))) {
      const inSrc = target.startsWith('src/');
      const [targetLayer, limit] = inSrc
        ? [layerOf(SRC_LAYERS, srcGroup(relative('src', target))), layerOf(SRC_LAYERS, 'history')]
        : [layerOf(PIPELINE_LAYERS, topEntry(relative('pipeline', target))), layerOf(PIPELINE_LAYERS, topEntry(file))];
      expect(targetLayer, `pipeline/${file} imports ${target}`).toBeLessThanOrEqual(limit);
    }
  });

  it.each(filesIn('src/api'))('of src/api/%s point to the same or lower layers of the server', (file) => {
    for (const target of importsOf(join('src/api', file))) {
      const inServer = relative('src/api', target);
      if (inServer.startsWith('..')) continue;
      const layer = layerOf(API_LAYERS, topEntry(inServer));
      expect(layer, `src/api/${file} imports ${target}`).toBeLessThanOrEqual(layerOf(API_LAYERS, topEntry(file)));
    }
  });

  it.each(filesIn('src/enrich/kernel'))('of the kernel file %s do not point to the rest of the engine', (file) => {
    for (const target of importsOf(join('src/enrich/kernel', file))) {
      const inEnrich = relative('src/enrich', target);
      if (inEnrich.startsWith('..') || inEnrich.startsWith('kernel/')) continue;
      expect(BELOW_KERNEL, `${file} imports ${target}`).toContain(inEnrich);
    }
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
