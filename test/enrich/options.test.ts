import { describe, expect, it } from 'vitest';
import { parseFields } from '../../src/enrich/options.js';

describe('a field', () => {
  it.each<[spec: string, path: string[], name: string]>([
    ['ip', ['ip'], 'geo'],
    ['client.ip', ['client', 'ip'], 'geo'],
    ['client.ip=where', ['client', 'ip'], 'where'],
    ['ip=a=b', ['ip'], 'a=b'],
    ['client\\.ip', ['client.ip'], 'geo'],
    ['a.client\\.ip.b=x.y', ['a', 'client.ip', 'b'], 'x.y'],
    ['a\\=b', ['a=b'], 'geo'],
    ['a\\\\.b', ['a\\', 'b'], 'geo'],
    ['a\\b', ['a\\b'], 'geo'],
    ['a\\', ['a\\'], 'geo'],
    ['ключ.😀', ['ключ', '😀'], 'geo'],
  ])('%s', (spec, path, name) => {
    expect(parseFields([spec])).toEqual([{ path, name }]);
  });

  it('has a name of its own if there are several', () => {
    const names = parseFields(['client.ip', 'server\\.ip', 'x=y']).map(({ name }) => name);
    expect(names).toEqual(['client_ip_geo', 'server_ip_geo', 'y']);
  });

  it.each(['', '.', 'a.', '.a', 'a..b', '=x', 'a='])('%j has an empty key', (spec) => {
    expect(() => parseFields([spec])).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
  });
});
