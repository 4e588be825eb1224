/** What a program gets from the two libraries, as JSON. */
import { load } from '@ipatlas/lookup';
import { createEnricher, openDatabase } from 'ipatlas';

const database = openDatabase('data');
console.log(JSON.stringify([database.lookup('50.0.0.1'), (await load()).lookup('8.8.8.8')]));
console.log(typeof createEnricher);
