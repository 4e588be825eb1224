import { describe, expect, it } from 'vitest';
import { EACH, type PathStep } from '../../src/enrich/field-path.js';
import { parseFields } from '../../src/enrich/options.js';

describe('a field', () => {
  it.each<[spec: string, path: PathStep[], target: string[] | string]>([
    ['ip', ['ip'], 'geo'],
    ['client.ip', ['client', 'ip'], 'geo'],
    ['client.ip=where', ['client', 'ip'], 'where'],
    ['ip=a=b', ['ip'], 'a=b'],
    ['client\\.ip', ['client.ip'], 'geo'],
    ['a.client\\.ip.b=x\\.y', ['a', 'client.ip', 'b'], 'x.y'],
    ['a.client\\.ip.b=a.client\\.ip.y', ['a', 'client.ip', 'b'], ['a', 'client.ip', 'y']],
    ['hops[0]', ['hops', 0], 'geo'],
    ['hops[]', ['hops', EACH], 'geo'],
    ['a.hops[12][].ip=where', ['a', 'hops', 12, EACH, 'ip'], 'where'],
    ['a[x]', ['a[x]'], 'geo'],
    ['a\\[0\\]', ['a[0]'], 'geo'],
    ['a.b[0]=a.c', ['a', 'b', 0], ['a', 'c']],
    ['a\\=b', ['a=b'], 'geo'],
    ['a\\\\.b', ['a\\', 'b'], 'geo'],
    ['a\\b', ['a\\b'], 'geo'],
    ['a\\', ['a\\'], 'geo'],
    ['ключ.😀', ['ключ', '😀'], 'geo'],
  ])('%s', (spec, path, given) => {
    const target = typeof given === 'string' ? [given] : given;
    expect(parseFields([spec])).toEqual([{ path, others: [], resultPath: target, name: target.join('.') }]);
  });

  it('has a name of its own if there are several', () => {
    const names = parseFields(['client.ip', 'server\\.ip', 'x=y', 'a[0].b', 'a[]']).map(({ name }) => name);
    expect(names).toEqual(['client_ip_geo', 'server_ip_geo', 'y', 'a_0_b_geo', 'a_geo']);
  });

  it.each(['', '.', 'a.', '.a', 'a..b', '=x', 'a='])('%j has an empty key', (spec) => {
    expect(() => parseFields([spec])).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
  });
});
