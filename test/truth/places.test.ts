import { isIPv4, isIPv6 } from 'node:net';
import { describe, expect, it } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { formatAddress } from '../../src/address/format.js';
import { parseAddress } from '../../src/address/parse.js';
import { countryTable } from '../../src/country/country.js';
import { isHeldOut, readPlaces } from '../../truth/places.js';

const places = readPlaces();
const COLUMNS = ['address', 'class', 'country', 'date', 'file', 'operator', 'url'];
const CLASSES = ['research', 'nic', 'ixp', 'measurement', 'vpn', 'cloud'];

describe('known places', () => {
  it('has at least 500 addresses in each family', () => {
    expect(places.filter(({ address }) => isIPv4(address)).length).toBeGreaterThanOrEqual(500);
    expect(places.filter(({ address }) => isIPv6(address)).length).toBeGreaterThanOrEqual(500);
  });

  it('has every class in both families', () => {
    for (const name of CLASSES) {
      const addresses = places.filter((place) => place.class === name).map(({ address }) => address);
      expect(addresses.filter(isIPv4).length, name).toBeGreaterThan(0);
      expect(addresses.filter(isIPv6).length, name).toBeGreaterThan(0);
    }
  });

  it('has only valid rows', () => {
    const countries = countryTable(loadReference(), '2026-06-17');
    const words = new Uint32Array(4);
    for (const place of places) {
      const row = JSON.stringify(place);
      expect(Object.keys(place).sort(), row).toEqual(COLUMNS);
      const family = parseAddress(place.address, words);
      expect(family === 0 ? '' : formatAddress(family, words), row).toBe(place.address);
      expect(countries.has(place.country), row).toBe(true);
      expect(CLASSES, row).toContain(place.class);
      expect(place.operator.trim(), row).toMatch(/./);
      expect(new URL(place.url).protocol, row).toBe('https:');
      expect(new Date(`${place.date}T00:00:00Z`).toISOString().slice(0, 10), row).toBe(place.date);
    }
  });

  it('lists each address once', () => {
    const addresses = places.map(({ address }) => address);
    expect(addresses.filter((address, index) => addresses.indexOf(address) !== index)).toEqual([]);
  });

  it('holds out about a third, whole operators at a time', () => {
    const heldOut = places.filter(({ operator }) => isHeldOut(operator));
    expect(heldOut.length / places.length).toBeGreaterThan(0.25);
    expect(heldOut.length / places.length).toBeLessThan(0.42);
  });
});
